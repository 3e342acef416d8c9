//go:build unix

package crew

import "syscall"

// CanPause tells whether processes can be paused on this system.
const CanPause = true

// Pause stops the process where it stands, with kill -STOP, a moment later at most.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
