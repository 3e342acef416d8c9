// Package child is for examples that need several processes. The program starts itself again as its
// own child processes. Each child gets a job from the parent and sends requests to it over HTTP. No
// child outlives its parent.
package child

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// childEnv marks a process of this program as a child.
const childEnv = "DOCENT_EXAMPLE_CHILD"

// IsChild reports whether this process was started by Start.
func IsChild() bool { return os.Getenv(childEnv) != "" }

// Process is a child process, for its parent.
type Process struct {
	Number int

	cmd    *exec.Cmd
	stdin  io.WriteCloser // the process ends when this is closed, which the end of the parent does, too
	killed atomic.Bool
	asked  atomic.Bool   // Stop was called
	done   chan struct{} // closed when the process has ended
	err    error         // how it ended; valid after done
}

// Start runs this program again, as a child, and calls ended when that process has ended.
func Start(number int, stderr io.Writer, ended func(*Process)) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childEnv+"=1")
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

// SendJob sends the job, with which the process begins. Its stdin stays open: the child takes the
// end of stdin for the end of its parent.
func (p *Process) SendJob(job any) error {
	if err := json.NewEncoder(p.stdin).Encode(job); err != nil {
		return fmt.Errorf("give process %d its job: %w", p.Number, err)
	}
	return nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Err waits for the end of the process. It returns nil if the process exited with 0 or was ended by
// Kill.
func (p *Process) Err() error {
	<-p.done
	if p.killed.Load() {
		return nil
	}
	return p.err
}

// Kill ends the process as a crash would, with kill -9 where the system has it, and waits for its
// end.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if the process has ended already
	<-p.done
}

// Stop ends the process by closing its stdin, and waits for its end. It returns an error as Err does.
func (p *Process) Stop() error {
	p.asked.Store(true)
	StopAll([]*Process{p})
	return p.Err()
}

// StopAll closes the stdin of all processes and waits for their end. It kills those that do not
// end.
func StopAll(processes []*Process) {
	for _, p := range processes {
		_ = p.stdin.Close()
	}
	timer := time.NewTimer(2 * Grace)
	defer timer.Stop()
	for _, p := range processes {
		select {
		case <-p.done:
		case <-timer.C:
			timer.Reset(0) // do not wait for the remaining ones either
			p.Kill()
		}
	}
}
