package peer

import "time"

// Now is a moment in nanoseconds that all processes of the machine can compare: the wall clock, which
// programs in all languages can read. Only hand-overs are measured with it.
func Now() int64 { return time.Now().UnixNano() }
