package chaos

import (
	"syscall"
	"time"
	"unsafe"
)

// now is a moment in nanoseconds that all processes of the machine can compare. Nothing sets this
// clock, and it does not stop.
func now() int64 {
	const boottime = 7 // CLOCK_BOOTTIME
	var reading syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, boottime, uintptr(unsafe.Pointer(&reading)), 0)
	if errno != 0 {
		return time.Now().UnixNano()
	}
	return reading.Nano()
}
