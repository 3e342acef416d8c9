//go:build !linux

package conn

import "time"

var started = time.Now()

// suspendedSinceBoot is how much more the wall clock says has passed than the monotonic clock. Where the system has no clock that counts
// suspensions, one that is set forward looks like a suspension.
func suspendedSinceBoot() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(started.Round(0)) - now.Sub(started)
}
