package peer

import "time"

// Now is a moment in nanoseconds that all processes of the machine can compare: the wall clock. What is
// measured with it lasts milliseconds, and a run in which the clock is set is measured again.
func Now() int64 { return time.Now().UnixNano() }
