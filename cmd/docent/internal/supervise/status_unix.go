//go:build unix

package supervise

import "syscall"

// codeOf returns the code of the ending of a command with the given status.
func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
