//go:build !linux

package conn

import "time"

// suspendedSinceBoot returns how much more time has passed by the wall clock than by the monotonic
// clock. This system has no clock that counts suspensions. So a wall clock that is set forward
// looks like a suspension.
func suspendedSinceBoot() time.Duration { return wallAhead(time.Now()) }
