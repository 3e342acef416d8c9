//go:build linux

package ensemble

import (
	"syscall"
	"unsafe"
)

// childAttributes keeps the terminal's interrupt from the child, so that the parent decides when it ends, and has the
// kernel kill it when the parent is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopped says whether the process has come to a stop since it was last asked. A signal is sent before it is obeyed, and the
// threads of a process stop one after the other: only the kernel knows when all have. It says so once.
func stopped(pid int) (bool, error) {
	const (
		byPID   = 1 // P_PID
		noHang  = 1 // WNOHANG
		forStop = 2 // WSTOPPED: leaves the process's end to whoever waits for that
	)
	var info [128]byte // siginfo_t; its signal number comes first, and stays 0 if nothing has happened
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), noHang|forStop, 0, 0)
	if errno != 0 {
		return false, errno
	}
	return info != [128]byte{}, nil
}
