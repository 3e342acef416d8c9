package ensemble

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is a running or ended child. Its launcher must wait until done is closed before it drops
// the process.
type process struct {
	os   *os.Process
	from int64         // length of the log at the start: what follows is this process's
	done chan struct{} // closed by run once the child has been reaped
	err  error         // how the child ended; written before done is closed
}

func launch(cmd *exec.Cmd, from int64) (*process, error) {
	p := &process{from: from, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run keeps its operating system thread as long as the child lives. Some systems kill a child when
// its parent dies. There the kernel counts the thread that started the child as the parent, and the
// runtime may end an idle thread at any time.
func (p *process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.os = cmd.Process
	started <- nil
	p.err = cmd.Wait()
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ending returns how the process ended. It must be called after done is closed.
func (p *process) ending() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// terminate asks the process to end and kills it after grace.
func (p *process) terminate(grace time.Duration) error {
	if err := terminate(p.os); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if p.await(grace) {
		return nil
	}
	return p.kill()
}

func (p *process) kill() error {
	if err := p.os.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if !p.await(killBound) {
		return fmt.Errorf("process %d still there %v after it was killed", p.os.Pid, killBound)
	}
	return nil
}

func (p *process) await(bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}
