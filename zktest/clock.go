package zktest

import (
	"container/heap"
	"time"
)

// clock is a server's time and what it has to do when. All of it is guarded by the server's mutex.
type clock struct {
	ahead  time.Duration // of package time
	alarms alarms
	set    int           // how many alarms there have been
	wake   chan struct{} // of capacity 1: there is an earlier alarm
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
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(s.untilNext())
		select {
		case <-timer.C:
		case <-s.clock.wake:
		case <-l.done:
			return
		}
	}
}

// untilNext does what is due and says how long there is nothing to do.
func (s *Server) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	const long = time.Hour
	if s.paused.Closed() || s.life == nil {
		return long // whoever changes that wakes the clock
	}
	next := s.clock.run(s.clock.now())
	if next.IsZero() {
		return long
	}
	return next.Sub(s.clock.now())
}

// Advance moves the server's clock on: sessions that nobody is heard of expire, TTL nodes are deleted, each at its time, before
// Advance returns. The clocks of the clients stay, so a client that pings once in a while loses its session if d is longer than
// its timeout. In a bubble of testing/synctest there is no need of it: sleep.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.advance(max(d, 0))
}
