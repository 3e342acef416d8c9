package child

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// Group is a set of child processes that are numbered from 1. Their jobs differ only by the number.
// It is safe for concurrent use.
type Group[J any] struct {
	job  func(number int) J
	fail func(error)

	mu      sync.Mutex
	all     []*Process // in the order in which they were started; the last one of a number is the current one
	stopped bool
}

// NewGroup returns a group without processes. The group calls fail, from another goroutine, if a
// process ends that was neither stopped nor killed.
func NewGroup[J any](job func(number int) J, fail func(error)) *Group[J] {
	return &Group[J]{job: job, fail: fail}
}

// Start starts the process of a number, for the first time or again.
func (g *Group[J]) Start(number int) error {
	p, err := Start(number, os.Stderr, g.ended)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.all = append(g.all, p)
	g.mu.Unlock()
	return p.SendJob(g.job(number))
}

func (g *Group[J]) ended(p *Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopped && !p.killed.Load() && !p.asked.Load() {
		g.fail(fmt.Errorf("process %d has ended: %s", p.Number, p.cmd.ProcessState))
	}
}

// Process returns the current process of a number, nil if there is none.
func (g *Group[J]) Process(number int) *Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range slices.Backward(g.all) {
		if p.Number == number {
			return p
		}
	}
	return nil
}

// Stop stops all processes, waits until they have ended, and returns the errors of those that
// failed.
func (g *Group[J]) Stop() error {
	g.mu.Lock()
	g.stopped = true
	all := slices.Clone(g.all)
	g.mu.Unlock()
	StopAll(all)
	var errs []error
	for _, p := range all {
		if err := p.Err(); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", p.Number, err))
		}
	}
	return errors.Join(errs...)
}
