//go:build unix && !linux

package ensemble

import "syscall"

// childAttributes keeps the terminal's interrupt from the child, so that the parent decides when
// the child ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// stopped assumes that a delivered signal has taken effect, because there is no portable way to
// ask.
func stopped(int) (bool, error) { return true, nil }
