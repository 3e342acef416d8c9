package conn

import (
	"sync/atomic"
	"time"
)

// Stamp is a moment, with how long the machine had been suspended until then: the monotonic clock may stand still while a machine is
// suspended. The time that has passed since a Stamp includes the suspensions.
type Stamp struct {
	at        time.Time
	suspended time.Duration
}

// Now is the present moment.
func Now() Stamp {
	suspended := suspended() // first: a pause between the two then only makes Elapsed say more
	return Stamp{at: time.Now(), suspended: suspended}
}

// Elapsed is how much time has passed since s.
func (s Stamp) Elapsed() time.Duration {
	now := time.Now()
	return Stamp{at: now, suspended: suspended()}.Since(s)
}

// Since is how much later s is than other, suspensions included.
func (s Stamp) Since(other Stamp) time.Duration {
	return s.awake(other) + max(0, s.suspended-other.suspended)
}

// awake is how much later s is than other by the monotonic clock.
func (s Stamp) awake(other Stamp) time.Duration { return s.at.Sub(other.at) }

// Add is the moment that is d later.
func (s Stamp) Add(d time.Duration) Stamp { return Stamp{s.at.Add(d), s.suspended} }

// Time is the moment as a time.Time.
func (s Stamp) Time() time.Time { return s.at }

// IsZero reports whether s was never set.
func (s Stamp) IsZero() bool { return s.at.IsZero() }

// After reports whether s is later than other.
func (s Stamp) After(other Stamp) bool { return s.Since(other) > 0 }

// pretended is how long tests pretend that the machine has been suspended.
var pretended atomic.Int64

// PretendSuspension makes it look as if the machine had just been suspended for d. It is for tests.
func PretendSuspension(d time.Duration) { pretended.Add(int64(d)) }

func suspended() time.Duration { return suspendedSinceBoot() + time.Duration(pretended.Load()) }
