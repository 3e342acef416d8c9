//go:build unix

package ensemble

import (
	"context"
	"os"
	"syscall"
	"time"
)

const pauseBound = 10 * time.Second

// terminate also resumes a paused process, which would not see the request before.
func terminate(p *os.Process) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Signal(syscall.SIGCONT)
}

// pause returns when the process has stopped.
func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), pauseBound)
	defer cancel()
	return poll(ctx, func(context.Context) (bool, error) {
		done, err := stopped(p.Pid)
		return done || err != nil, err
	})
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
