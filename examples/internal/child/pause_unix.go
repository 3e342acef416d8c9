//go:build unix

package child

import "syscall"

// CanPause reports whether processes can be paused on this system.
const CanPause = true

// Pause suspends the process with kill -STOP. The process may run for a moment after Pause returns.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume continues the process.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
