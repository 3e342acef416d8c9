//go:build !linux

package service

import "syscall"

// child keeps the terminal's interrupt from a child.
func child(c *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: c}
}

// Child is child for a process of this account.
func Child() *syscall.SysProcAttr { return child(nil) }
