package conn

import (
	"syscall"
	"time"
	"unsafe"
)

// The clocks of clock_gettime(2).
const (
	clockMonotonic = 1 // stands still while the machine is suspended
	clockBoottime  = 7 // runs while the machine is suspended
)

// suspendedSinceBoot returns how long the machine has been suspended since its boot.
func suspendedSinceBoot() time.Duration { return difference(reading) }

// difference returns the difference of the two clocks. If the process was paused between the readings, it
// reads them again.
func difference(reading func(clock uintptr) (at time.Duration, known bool)) time.Duration {
	for {
		before, known := reading(clockBoottime)
		awake, _ := reading(clockMonotonic)
		after, _ := reading(clockBoottime)
		if !known {
			return 0 // the kernel is too old or forbids the call
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
