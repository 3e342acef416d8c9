// Package crew is for examples whose story takes several processes: this program starts itself again, as the members of its crew, who do
// what they are told and report to it over HTTP. None of them survives it.
package crew

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// memberEnv marks a process of this program as a member.
const memberEnv = "DOCENT_EXAMPLE_MEMBER"

// IsMember reports whether this process was started by Start.
func IsMember() bool { return os.Getenv(memberEnv) != "" }

// Process is a member as its parent sees it.
type Process struct {
	Number int

	cmd    *exec.Cmd
	stdin  io.WriteCloser // it ends when this is closed, by us or by our own end
	killed atomic.Bool
	done   chan struct{} // closed when the process is gone
	err    error         // how it ended; to be read after done
}

// Start runs this program again, as a member, and calls ended when that is gone.
func Start(number int, stderr io.Writer, ended func(*Process)) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), memberEnv+"=1")
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start process %d: %w", number, err)
	}
	p := &Process{Number: number, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
		ended(p)
	}()
	return p, nil
}

// Give lets the process begin. Its stdin stays open: the end of it would mean that we are gone.
func (p *Process) Give(job any) error {
	if err := json.NewEncoder(p.stdin).Encode(job); err != nil {
		return fmt.Errorf("give process %d its job: %w", p.Number, err)
	}
	return nil
}

// PID is the number that the system knows it by.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Failed is how the process ended, when it has: nil if that was well, or by Kill.
func (p *Process) Failed() error {
	<-p.done
	if p.killed.Load() {
		return nil
	}
	return p.err
}

// Kill ends the process as a crash would, with kill -9 where there is such a thing, and returns when it is gone.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has ended already
	<-p.done
}

// StopAll ends the processes in good order, and those that do not end by force.
func StopAll(crew []*Process) {
	for _, p := range crew {
		_ = p.stdin.Close()
	}
	timer := time.NewTimer(2 * Grace)
	defer timer.Stop()
	for _, p := range crew {
		select {
		case <-p.done:
		case <-timer.C:
			timer.Reset(0) // no patience with the others either
			p.Kill()
		}
	}
}
