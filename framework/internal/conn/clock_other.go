//go:build !linux

package conn

import "time"

var started = time.Now()

// suspendedSinceBoot returns how much more time has passed by the wall clock than by the monotonic
// clock. This system has no clock that counts suspensions. So a wall clock that is set forward
// looks like a suspension.
func suspendedSinceBoot() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(started.Round(0)) - now.Sub(started)
}
