package supervise

import (
	"syscall"
	"unsafe"
)

const clockBoottime = 7 // of clock_gettime(2)

// now returns the time since the machine has started, suspensions included.
func now() moment {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("supervise: clock_gettime: " + errno.Error()) // the clock is older than Go's oldest kernel
	}
	return moment(ts.Nano())
}
