//go:build !unix

package supervise

import (
	"os"
	"os/exec"
)

// group is a command: the system has no process groups.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) group { return group{cmd} }

func (g group) terminate() {} // the system has no such signal
func (g group) kill()      { _ = g.cmd.Process.Kill() }

func (g group) sweep() {} // nothing is known of what the command has left running

func (g group) pass(os.Signal) {} // they reach the command by themselves

// code returns the code of the ending of the command.
func (g group) code(state *os.ProcessState) int { return state.ExitCode() }
