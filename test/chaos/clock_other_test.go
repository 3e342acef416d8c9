//go:build !linux

package chaos

import "time"

// now is a moment in nanoseconds that all processes of the machine can compare.
func now() int64 { return time.Now().UnixNano() }
