package safety

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/service"
	"github.com/docent-zk/docent/test/compare/worker"
)

// Runner runs scenes. Safe for concurrent use.
type Runner struct {
	launcher *worker.Launcher
	slots    chan struct{} // scenes at a time
	log      func(format string, args ...any)
	number   atomic.Int64
}

// NewRunner returns a Runner that runs so many scenes at a time, unless a fault is for all of a service.
func NewRunner(l *worker.Launcher, atATime int, log func(format string, args ...any)) *Runner {
	return &Runner{launcher: l, slots: make(chan struct{}, atATime), log: log}
}

// Wanted tells which rows are run.
type Wanted func(k peer.Kind, f Fault) bool

// Run runs all wanted rows of a service.
func (r *Runner) Run(ctx context.Context, name string, wanted Wanted) (rows []Row, err error) {
	kinds := slices.DeleteFunc(slices.Clone(peer.Kinds), func(k peer.Kind) bool { return k.Service != name })
	local, err := r.local(ctx, name, kinds, wanted)
	if err != nil {
		return nil, err
	}
	rows = local
	for _, f := range Faults {
		hit := slices.DeleteFunc(slices.Clone(kinds), func(k peer.Kind) bool { return !wanted(k, f) })
		if !f.ofServer() || len(hit) == 0 {
			continue
		}
		more, err := r.ofServer(ctx, name, f, hit)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// tries is how often a scene is run for which the machine is too slow.
const tries = 3

// local runs the faults of programs, many at a time, with one service.
func (r *Runner) local(ctx context.Context, name string, kinds []peer.Kind, wanted Wanted) ([]Row, error) {
	var scenes []*scene
	for _, f := range Faults {
		for _, k := range kinds {
			if !f.ofServer() && wanted(k, f) {
				scenes = append(scenes, r.newScene(k, f, nil))
			}
		}
	}
	if len(scenes) == 0 {
		return nil, nil
	}
	s, err := service.Start(ctx, name, service.Options{})
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(scenes))
	errs := make([]error, len(scenes))
	var running sync.WaitGroup
	for i, c := range scenes {
		running.Go(func() {
			r.slots <- struct{}{}
			defer func() { <-r.slots }()
			rows[i], errs[i] = r.repeat(ctx, c.kind, c.fault, func(again *scene) ([]*scene, error) {
				again.service = s
				return []*scene{again}, nil
			})
		})
	}
	running.Wait()
	return rows, errors.Join(append(errs, s.Close())...)
}

// repeat runs one scene until the machine is fast enough.
func (r *Runner) repeat(ctx context.Context, k peer.Kind, f Fault, place func(*scene) ([]*scene, error)) (Row, error) {
	for n := 1; ; n++ {
		all, err := place(r.newScene(k, f, nil))
		if err != nil {
			return Row{}, err
		}
		r.play(ctx, all, nil)
		row, err := r.outcome(all[0])
		if !errors.Is(err, errLate) || n == tries {
			return row, err
		}
	}
}

// outcome returns the row of a scene, with a reason if it cannot be run.
func (r *Runner) outcome(s *scene) (Row, error) {
	row := Row{Kind: s.kind.Name, Fault: s.fault}
	switch {
	case errors.Is(s.err, service.ErrUnsupported):
		row.Reason = s.err.Error()
		return row, nil
	case s.err != nil:
		return row, fmt.Errorf("%s, %s: %w", s.kind.Name, s.fault, s.err)
	}
	row = s.result()
	r.log("%s", row)
	return row, nil
}

// ofServer runs a fault of a service, with all kinds of locks at a time.
func (r *Runner) ofServer(ctx context.Context, name string, f Fault, kinds []peer.Kind) ([]Row, error) {
	for n := 1; ; n++ {
		rows, err := r.together(ctx, name, f, kinds)
		if !errors.Is(err, errLate) || n == tries {
			return rows, err
		}
		var wrong []error // what must never happen has happened, however slow the machine is
		for _, row := range rows {
			wrong = append(wrong, contradicts(row, Never)...)
		}
		if len(wrong) > 0 {
			return rows, errors.Join(append(wrong, err)...)
		}
	}
}

func (r *Runner) together(ctx context.Context, name string, f Fault, kinds []peer.Kind) (rows []Row, err error) {
	s, err := service.Start(ctx, name, service.Options{Replicas: f == Failover, Clock: f == ServerClock})
	if errors.Is(err, service.ErrUnsupported) {
		for _, k := range kinds {
			rows = append(rows, Row{Kind: k.Name, Fault: f, Reason: err.Error()})
		}
		return rows, nil
	}
	if err != nil {
		return nil, err
	}
	var scenes []*scene
	for _, k := range kinds {
		scenes = append(scenes, r.newScene(k, f, s))
	}
	r.play(ctx, scenes, s)
	var errs []error
	for _, c := range scenes {
		row, err := r.outcome(c)
		rows, errs = append(rows, row), append(errs, err)
	}
	return rows, errors.Join(append(errs, s.Close())...)
}

// play runs scenes at the same time. The fault is one of a service, if there is one.
func (r *Runner) play(ctx context.Context, scenes []*scene, s service.Service) {
	each := func(step func(*scene) error) {
		var running sync.WaitGroup
		for _, c := range scenes {
			if c.err == nil {
				running.Go(func() { c.err = step(c) })
			}
		}
		running.Wait()
	}
	defer each(func(c *scene) error { return c.err })
	defer func() {
		for _, c := range scenes {
			c.close()
		}
	}()
	each(func(c *scene) error { return c.possible() })
	each(func(c *scene) error { return c.begin(ctx) })
	if s != nil {
		if err := s.Lag(ctx); err != nil {
			each(func(*scene) error { return err })
		}
	}
	each(func(c *scene) error { return c.hold(ctx) })
	each(func(c *scene) error { return c.strike(ctx) })
	if s != nil {
		if err := r.fail(ctx, s, scenes); err != nil {
			each(func(*scene) error { return err })
		}
	}
	each(func(c *scene) error { return c.observe(ctx) })
}

// possible returns an error if the fault cannot be brought about for the kind of lock.
func (s *scene) possible() error {
	if s.fault == ClockAhead && s.kind.Command == "" && !s.kind.Clock {
		return fmt.Errorf("%w: a program in Go does not ask the C library for the time",
			service.ErrUnsupported)
	}
	return nil
}

// fail has the fault of a service happen.
func (r *Runner) fail(ctx context.Context, s service.Service, scenes []*scene) (err error) {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	switch scenes[0].fault {
	case Restart:
		err = s.Restart(ctx, false)
	case Wipe:
		err = s.Restart(ctx, true)
	case Failover:
		err = s.Failover(ctx)
	case ServerClock:
		err = s.SetClock()
	case Delete:
		for _, c := range scenes {
			err = errors.Join(err, s.Delete(ctx, c.lock))
		}
	}
	return err
}

// String returns the row for people that wait.
func (r Row) String() string {
	count := func(n *int) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	text := fmt.Sprintf("%-14s %-13s lost %s, token %s, guard %s", r.Kind, r.Fault, count(r.Plain), count(r.Token),
		count(r.Guard))
	for name, is := range map[string]bool{"double": r.Double, "kept": r.Kept, "stuck": r.Stuck, "refused": r.Refused} {
		if is {
			text += ", " + name
		}
	}
	return fmt.Sprintf("%s, free after %v", text, r.Free.Round(10*time.Millisecond))
}
