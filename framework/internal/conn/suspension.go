package conn

import (
	"sync/atomic"
	"time"
)

// suspensions knows for how long this machine has been suspended.
var suspensions = suspensionClock{total: suspendedSinceBoot}

// suspensionClock has the last reading of a clock that counts suspensions. Such a reading takes
// system calls, and each request needs the time twice. A suspension also puts the wall clock ahead of
// the monotonic clock, by its length. Both are read without a system call. As long as neither is
// ahead of the other by more than it was, the last reading still holds.
//
// A wall clock that is set makes a further reading necessary, no more. It can hide a suspension
// only if it is set back by the length of that suspension, between two uses of the clock.
type suspensionClock struct {
	total func() time.Duration // reads the clock
	last  atomic.Pointer[suspensionReading]
}

// suspensionReading is a reading of the clock.
type suspensionReading struct {
	ahead time.Duration // wallAhead, just before the reading
	total time.Duration
}

// suspensionNoise is how much wallAhead may differ without a suspension: time.Now reads two clocks
// one after the other.
const suspensionNoise = 5 * time.Millisecond

// now returns the current moment.
func (c *suspensionClock) now() Stamp {
	now := time.Now()
	suspended, known := c.until(now)
	if !known {
		suspended = c.read(now)
		now = time.Now() // later than suspended: a pause in between only makes Elapsed larger
	}
	return Stamp{at: now, suspended: suspended}
}

// until returns for how long the machine had been suspended until now, if the last reading says it.
// now must have been read from the clock.
func (c *suspensionClock) until(now time.Time) (total time.Duration, known bool) {
	last := c.last.Load()
	if last == nil || (wallAhead(now)-last.ahead).Abs() > suspensionNoise {
		return 0, false
	}
	return last.total, true
}

// read reads the clock. now must have been read before.
func (c *suspensionClock) read(now time.Time) time.Duration {
	r := &suspensionReading{ahead: wallAhead(now), total: c.total()}
	c.last.Store(r)
	return r.total
}

var started = time.Now()

// wallAhead returns how much more time has passed by the wall clock than by the monotonic clock since
// the start of the process.
func wallAhead(now time.Time) time.Duration {
	return now.Round(0).Sub(started.Round(0)) - now.Sub(started)
}
