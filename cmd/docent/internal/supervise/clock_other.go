//go:build !linux

package supervise

import "time"

var started = time.Now()

// now returns the time since the process has started.
func now() moment { return moment(time.Since(started)) }
