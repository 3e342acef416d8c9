package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/recipes"
)

// fleet is the programs that share the resource.
type fleet struct {
	services services
	resource *resource
	report   *program.Reporter
	running  [programs]*running
	started  int
}

// running is a program that runs.
type running struct {
	holds  release
	cancel context.CancelFunc
	writes atomic.Int64
	ended  chan struct{}
	err    error // set before ended is closed
}

func newFleet(s services, r *resource, report *program.Reporter) *fleet {
	return &fleet{services: s, resource: r, report: report}
}

// replaceAll replaces the programs one by one by their next release. The next one is replaced when all
// programs have written beside the one before.
func (f *fleet) replaceAll(ctx context.Context, r release) error {
	for i := range f.running {
		if err := f.replace(ctx, i, r); err != nil {
			return err
		}
		if err := f.awaitWrites(ctx); err != nil {
			return err
		}
	}
	t := f.resource.last()
	f.report.Line("all programs hold %v; the last tokens are %#x of Redis and %#x of ZooKeeper",
		r, t.redis, t.zookeeper)
	return nil
}

// replace ends a program, if it runs, and starts its next release.
func (f *fleet) replace(ctx context.Context, i int, r release) error {
	if p := f.running[i]; p != nil {
		if err := p.stop(); err != nil {
			return err
		}
		f.report.Line("program %d: holds %v instead of %v", i, r, p.holds)
	}
	c, err := f.services.open(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &running{holds: r, cancel: cancel, ended: make(chan struct{})}
	f.running[i] = p
	f.started++
	go func() {
		defer close(p.ended)
		p.err = errors.Join(p.work(ctx, c, f.resource), c.close())
	}()
	return nil
}

// writesEach is how often each program writes beside the others before one is replaced.
const writesEach = 3

// awaitWrites waits until each program has written a few times more.
func (f *fleet) awaitWrites(ctx context.Context) error {
	var wanted [programs]int64
	for i, p := range f.running {
		if p != nil {
			wanted[i] = p.writes.Load() + writesEach
		}
	}
	for i, p := range f.running {
		if p == nil {
			continue
		}
		done := func() bool { return p.writes.Load() >= wanted[i] || p.hasEnded() }
		if err := program.Wait(ctx, fmt.Sprintf("program %d has not written", i), done); err != nil {
			return err
		}
		if p.hasEnded() {
			return errors.Join(context.Cause(ctx), fmt.Errorf("program %d has ended", i), p.err)
		}
	}
	return nil
}

// require has the resource require another token. All programs send both by then.
func (f *fleet) require(s service) error {
	f.resource.require(s)
	f.report.Line("the resource requires a token of %s", s)
	return nil
}

// refused makes a write that the resource must refuse with an error.
func (f *fleet) refused(what string, t tokens, want error) error {
	err := f.resource.write(t)
	if unexpected := program.Expect(err, want); unexpected != nil {
		return fmt.Errorf("%s: %w", what, unexpected)
	}
	f.report.Line("%s is refused: %v", what, err)
	return nil
}

// stop ends all programs.
func (f *fleet) stop() error {
	var errs []error
	for i, p := range f.running {
		if p != nil {
			errs = append(errs, p.stop())
			f.running[i] = nil
		}
	}
	return errors.Join(errs...)
}

// stop ends the program and waits for that.
func (p *running) stop() error {
	p.cancel()
	<-p.ended
	return p.err
}

func (p *running) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// work uses the resource again and again until ctx ends.
func (p *running) work(ctx context.Context, c clients, r *resource) error {
	lock, err := newLock(p.holds, c.zk, c.locks)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
			return r.use(ctx, tokensOf(p.holds, hold))
		})
		switch stopped := ctx.Err() != nil && errors.Is(err, ctx.Err()); {
		case err == nil:
			p.writes.Add(1)
		case !stopped:
			return err
		}
		pause(ctx, 3*time.Millisecond) // other programs come first
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
