package zktest

import (
	"container/heap"
	"fmt"
	"time"
)

// clock is a server's time and what it has to do when. All of it is guarded by the server's mutex.
type clock struct {
	ahead  time.Duration // of package time
	alarms alarms
	set    int           // how many alarms there have been
	wake   chan struct{} // of capacity 1: there is an earlier alarm
	seeded bool          // alarms have instants of their own
}

// alarm calls do, with the server's mutex held.
type alarm struct {
	at     time.Time
	number int
	do     func()
}

// alarms is a heap of them: the earliest first, of those for one instant the one that was set first.
type alarms []alarm

func (a alarms) Len() int      { return len(a) }
func (a alarms) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)   { *a = append(*a, x.(alarm)) }

func (a alarms) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].number < a[j].number
}

func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = alarm{}
	*a = (*a)[:len(*a)-1]
	return last
}

func (c *clock) now() time.Time { return time.Now().Add(c.ahead) }

// at sets an alarm.
func (c *clock) at(t time.Time, do func()) {
	if c.seeded {
		t = serverSlot(t)
	}
	c.set++
	heap.Push(&c.alarms, alarm{t, c.set, do})
	if c.alarms[0].number == c.set {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// run does what is due by t, and says when it has to be called again; the zero time is never.
func (c *clock) run(t time.Time) (next time.Time) {
	for len(c.alarms) > 0 {
		if c.alarms[0].at.After(t) {
			return c.alarms[0].at
		}
		heap.Pop(&c.alarms).(alarm).do()
	}
	return time.Time{}
}

// advance moves the clock on, past every alarm on the way at its own time.
func (c *clock) advance(d time.Duration) {
	end := c.now().Add(d)
	for len(c.alarms) > 0 && !c.alarms[0].at.After(end) {
		c.ahead += max(0, c.alarms[0].at.Sub(c.now()))
		c.run(c.now())
	}
	c.ahead += max(0, end.Sub(c.now()))
	select {
	case c.wake <- struct{}{}: // all alarms are nearer now
	default:
	}
}

// keepTime is the goroutine that a running server has for its clock.
func (s *Server) keepTime(l *lifetime) {
	for s.pauseUntilNext(l) {
	}
}

// pauseUntilNext does what is due and waits for what comes next. Where that is nothing there is no timer: a bubble of testing/synctest
// in which everything waits can tell that it is stuck. It reports false when the server has stopped.
func (s *Server) pauseUntilNext(l *lifetime) bool {
	var due <-chan time.Time
	if wait, ok := s.untilNext(); ok {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-s.clock.wake:
	case <-l.done:
		return false
	}
	return true
}

// untilNext does what is due and says how long there is nothing to do; false is until the clock is woken.
func (s *Server) untilNext() (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused.Closed() || s.life == nil {
		return 0, false
	}
	next := s.clock.run(s.clock.now())
	return next.Sub(s.clock.now()), !next.IsZero()
}

// Advance moves the server's clock on: sessions that nobody is heard of expire, TTL nodes are deleted, each at its time, before
// Advance returns. While the server is paused the clock moves, and what is due waits for [Server.Resume]. The clocks of the clients stay,
// so a client that pings once in a while loses its session if d is longer than its timeout; nor does Advance shorten [Delay]. In a
// bubble of testing/synctest there is no need of it: sleep.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(fmt.Sprintf("clock advanced by %v", d))
	if s.paused.Closed() {
		s.clock.ahead += max(d, 0)
		return
	}
	s.clock.advance(max(d, 0))
}

// inBubble reports whether t was told by the clock of a bubble of testing/synctest, which begins with the year 2000.
func inBubble(t time.Time) bool { return t.Year() < 2010 }
