//go:build unix && !linux

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// group is the process group of a command.
type group struct {
	cmd      *exec.Cmd
	terminal bool // the command is in the group of this process
}

// newGroup gives the command a process group of its own, unless there is a terminal.
func newGroup(cmd *exec.Cmd) group {
	g := group{cmd, hasTerminal()}
	if !g.terminal {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	return g
}

func (g group) signal(s syscall.Signal) {
	pid := g.cmd.Process.Pid
	if !g.terminal {
		pid = -pid
	}
	_ = syscall.Kill(pid, s)
}

func (g group) terminate() { g.signal(syscall.SIGTERM); g.signal(syscall.SIGCONT) }
func (g group) kill()      { g.signal(syscall.SIGKILL) }

// sweep kills what the command has left running in its group.
func (g group) sweep() {
	if !g.terminal {
		g.kill()
	}
}

func (g group) pass(s os.Signal) {
	if passedOn(s, g.terminal) {
		_ = g.cmd.Process.Signal(s)
	}
}

// code returns the code of the ending of the command.
func (g group) code(state *os.ProcessState) int { return codeOf(state.Sys().(syscall.WaitStatus)) }
