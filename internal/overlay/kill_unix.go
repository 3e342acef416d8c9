//go:build unix

package overlay

import (
	"os/exec"
	"syscall"
)

// killTogether has c killed with its children, by a process group of its own.
func killTogether(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
