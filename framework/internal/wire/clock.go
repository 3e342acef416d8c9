package wire

import "time"

// Stamp is a moment on both clocks. The monotonic clock may stop while a machine is suspended, and the wall clock may be
// set; the time that has passed since a Stamp is the larger of what the two say, so that whoever slept too long knows.
type Stamp struct{ at time.Time }

// Now is the present moment.
func Now() Stamp { return Stamp{time.Now()} }

// Elapsed says how much time has passed since s, by the clock that says more.
func (s Stamp) Elapsed() time.Duration {
	now := time.Now()
	return max(now.Sub(s.at), now.Round(0).Sub(s.at.Round(0)))
}

// Time is the moment as a time.Time.
func (s Stamp) Time() time.Time { return s.at }

// IsZero reports whether s was never set.
func (s Stamp) IsZero() bool { return s.at.IsZero() }

// After reports whether s is later than other.
func (s Stamp) After(other Stamp) bool { return s.at.After(other.at) }
