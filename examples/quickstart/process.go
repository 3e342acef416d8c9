package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// workerEnv marks a process of this program as a worker.
const workerEnv = "DOCENT_QUICKSTART_WORKER"

func isWorker() bool { return os.Getenv(workerEnv) != "" }

// process is a worker as its parent sees it.
type process struct {
	worker int
	cmd    *exec.Cmd
	stdin  io.WriteCloser // it ends when this is closed, by us or by our own end
	killed atomic.Bool
	done   chan struct{} // closed when the process is gone
	err    error         // how it ended; to be read after done
}

// startProcess runs this program again, as a worker, and sends the process to ended when it is gone.
func startProcess(worker int, stderr io.Writer, ended chan<- *process) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker %d: %w", worker, err)
	}
	p := &process{worker: worker, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
		ended <- p
	}()
	return p, nil
}

// give lets the worker begin. Its stdin stays open: the end of it would mean that we are gone.
func (p *process) give(j job) error {
	if err := json.NewEncoder(p.stdin).Encode(j); err != nil {
		return fmt.Errorf("give worker %d its job: %w", p.worker, err)
	}
	return nil
}

// kill ends the process as a crash would, with kill -9 where there is such a thing, and returns when it is gone.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has ended already
	<-p.done
}

// stopAll ends the processes in good order, and those that do not end by force.
func stopAll(crew []*process) {
	for _, p := range crew {
		_ = p.stdin.Close()
	}
	timer := time.NewTimer(2 * grace)
	defer timer.Stop()
	for _, p := range crew {
		select {
		case <-p.done:
		case <-timer.C:
			timer.Reset(0) // no patience with the others either
			p.kill()
		}
	}
}
