package ensemble

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is a running or ended child. Whoever launched it must see done closed before letting go of it.
type process struct {
	os   *os.Process
	from int64         // length of the log when it started: what follows is its own
	done chan struct{} // closed by run once the child has been reaped
	err  error         // how it ended; written before done is closed
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

// run keeps its operating system thread for as long as the child lives: where a child is killed when its parent dies,
// the kernel takes the thread that started it for the parent, and the runtime ends idle threads at will.
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

// ending says how the process ended. Only valid after done.
func (p *process) ending() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// terminate asks first and kills after grace.
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
