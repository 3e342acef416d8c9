//go:build linux

package ensemble

import (
	"syscall"
	"unsafe"
)

// childAttributes keeps the terminal's interrupt from the child, so that the parent decides when
// the child ends. It also makes the kernel kill the child when the parent is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether the process has stopped since the last call. A signal takes effect after
// it is sent, and the threads of a process stop one after the other. Only the kernel knows when all
// have stopped. The kernel reports it once.
func stopped(pid int) (bool, error) {
	const (
		byPID   = 1 // P_PID
		noHang  = 1 // WNOHANG
		forStop = 2 // WSTOPPED: does not reap the process, which run does
	)
	var info [128]byte // siginfo_t; its signal number comes first, and stays 0 if nothing has happened
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID,
		byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), noHang|forStop, 0, 0)
	if errno != 0 {
		return false, errno
	}
	return info != [128]byte{}, nil
}
