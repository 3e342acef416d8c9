//go:build unix

package supervise

import "syscall"

// endingOf returns the ending of a command with the given status.
func endingOf(status syscall.WaitStatus, cut bool) Ending {
	if status.Signaled() {
		return Ending{Code: 128 + int(status.Signal()), Cut: cut}
	}
	return Ending{Code: status.ExitStatus(), Cut: cut}
}
