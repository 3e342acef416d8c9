package conn

import (
	"syscall"
	"time"
	"unsafe"
)

// The clocks of clock_gettime(2).
const (
	clockMonotonic = 1 // stands still while the machine is suspended
	clockBoottime  = 7 // does not
)

// suspendedSinceBoot is how long the machine has been suspended since it was booted: how much more one clock says than the other. Readings
// between which the process was paused are taken again.
func suspendedSinceBoot() time.Duration {
	for {
		before, known := reading(clockBoottime)
		awake, _ := reading(clockMonotonic)
		after, _ := reading(clockBoottime)
		if !known {
			return 0 // an older kernel, or one that forbids it
		}
		if after-before < 5*time.Millisecond {
			return (before - awake).Round(10 * time.Millisecond)
		}
	}
}

func reading(clock uintptr) (at time.Duration, known bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
