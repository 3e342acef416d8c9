package conn

import (
	"sync/atomic"
	"time"
)

// Stamp is a moment together with the time that the machine had been suspended until then. The
// monotonic clock may stand still while a machine is suspended. The time since a Stamp includes
// suspensions.
type Stamp struct {
	at        time.Time
	suspended time.Duration
}

// Now returns the current moment.
func Now() Stamp {
	pretended := time.Duration(pretendedSuspension.Load())
	now := suspensions.now()
	now.suspended += pretended
	return now
}

// Elapsed returns the time since s, suspensions included.
func (s Stamp) Elapsed() time.Duration { return Now().Since(s) }

// SuspendedSince returns for how long the machine has been suspended since s.
func (s Stamp) SuspendedSince() time.Duration { return max(0, Now().suspended-s.suspended) }

// Since returns how much later s is than other, suspensions included.
func (s Stamp) Since(other Stamp) time.Duration {
	return s.sinceAwake(other) + max(0, s.suspended-other.suspended)
}

// sinceAwake returns how much later s is than other by the monotonic clock.
func (s Stamp) sinceAwake(other Stamp) time.Duration { return s.at.Sub(other.at) }

// Add returns the moment d later than s.
func (s Stamp) Add(d time.Duration) Stamp { return Stamp{s.at.Add(d), s.suspended} }

// Time returns the moment as a time.Time.
func (s Stamp) Time() time.Time { return s.at }

// IsZero reports whether s was never set.
func (s Stamp) IsZero() bool { return s.at.IsZero() }

// After reports whether s is later than other.
func (s Stamp) After(other Stamp) bool { return s.Since(other) > 0 }

// pretendedSuspension is the sum of the suspensions that tests pretend, in nanoseconds.
var pretendedSuspension atomic.Int64

// PretendSuspension pretends that the machine has just been suspended for d. It is for tests.
func PretendSuspension(d time.Duration) { pretendedSuspension.Add(int64(d)) }
