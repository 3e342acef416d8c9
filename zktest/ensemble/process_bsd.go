//go:build unix && !linux

package ensemble

import "syscall"

// childAttributes keeps the terminal's interrupt from the child, so that the parent decides when it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// stopped takes the signal's delivery for its effect: there is no portable way to ask.
func stopped(int) (bool, error) { return true, nil }
