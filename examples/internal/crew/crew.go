package crew

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// Crew is processes that are numbered from 1 and have the same job, but for the number. Safe for concurrent use.
type Crew[J any] struct {
	job  func(number int) J
	fail func(error)

	mu        sync.Mutex
	all       []*Process // in the order in which they were started; the last one of a number is who has it
	dismissed bool
}

// New is a crew without anybody. It calls fail, from another goroutine, if a process ends that should not.
func New[J any](job func(number int) J, fail func(error)) *Crew[J] {
	return &Crew[J]{job: job, fail: fail}
}

// Hire starts the process of a number, or starts it anew.
func (c *Crew[J]) Hire(number int) error {
	p, err := Start(number, os.Stderr, c.ended)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.all = append(c.all, p)
	c.mu.Unlock()
	return p.Give(c.job(number))
}

func (c *Crew[J]) ended(p *Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dismissed && !p.killed.Load() {
		c.fail(fmt.Errorf("process %d has ended: %s", p.Number, p.cmd.ProcessState))
	}
}

// Member is the process that has a number now, nil if there is none.
func (c *Crew[J]) Member(number int) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.all) {
		if p.Number == number {
			return p
		}
	}
	return nil
}

// Dismiss ends all processes and says if one of them did not end well.
func (c *Crew[J]) Dismiss() error {
	c.mu.Lock()
	c.dismissed = true
	all := slices.Clone(c.all)
	c.mu.Unlock()
	StopAll(all)
	var errs []error
	for _, p := range all {
		if err := p.Failed(); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", p.Number, err))
		}
	}
	return errors.Join(errs...)
}
