package zktest

import (
	"container/heap"
	"fmt"
	"time"
)

// clock is the time of a server with its alarms. The server's mutex guards all of it.
type clock struct {
	ahead  time.Duration // added to the time of package time
	alarms alarms
	set    int           // number of alarms set so far
	wake   chan struct{} // of capacity 1: receives a value when the earliest alarm has changed
	seeded bool          // alarms are set in the slots of the server, see serverSlot
}

// alarm is a call of do at a time. The caller of do holds the server's mutex.
type alarm struct {
	at     time.Time
	number int
	do     func()
}

// alarms is a heap of alarms: the earliest first, and of two for the same time the one that was set
// first.
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

// run calls the alarms that are due by t. It returns the time of the next alarm, or the zero time
// if there is none.
func (c *clock) run(t time.Time) (next time.Time) {
	for len(c.alarms) > 0 {
		if c.alarms[0].at.After(t) {
			return c.alarms[0].at
		}
		heap.Pop(&c.alarms).(alarm).do()
	}
	return time.Time{}
}

// advance moves the clock on by d. Each alarm on the way is called at its own time.
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

// keepTime calls alarms as they fall due. It is the clock goroutine of a running server.
func (s *Server) keepTime(l *lifetime) {
	for s.pauseUntilNext(l) {
	}
}

// pauseUntilNext calls the alarms that are due and waits for the next one. Without a next one it
// sets no timer, so that a bubble of testing/synctest in which everything waits can detect a
// deadlock. It reports false when the server has stopped.
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

// untilNext calls the alarms that are due and returns the time until the next one. It reports false
// if there is no alarm to wait for.
func (s *Server) untilNext() (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused.Closed() || s.life == nil {
		return 0, false
	}
	next := s.clock.run(s.clock.now())
	return next.Sub(s.clock.now()), !next.IsZero()
}

// Advance moves the server's clock on by d. Before it returns, it expires each session that is not
// heard from and deletes each TTL node, all at their own times. While the server is paused only the
// clock moves, and what is due waits for [Server.Resume]. The clients' clocks do not move, so a
// client that pings periodically loses its session if d is longer than its timeout. Advance does
// not shorten a fault.Delay. In a bubble of testing/synctest it is not needed: sleep instead.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traceTest(fmt.Sprintf("clock advanced by %v", d))
	if s.paused.Closed() {
		s.clock.ahead += max(d, 0)
		return
	}
	s.clock.advance(max(d, 0))
}

// inBubble reports whether t comes from the clock of a bubble of testing/synctest, which starts in
// the year 2000.
func inBubble(t time.Time) bool { return t.Year() < 2010 }
