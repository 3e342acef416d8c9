package service

import "syscall"

// child keeps the terminal's interrupt from a child, and has the kernel kill it with its parent.
func child(c *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: c}
}

// Child is child for a process of this account.
func Child() *syscall.SysProcAttr { return child(nil) }
