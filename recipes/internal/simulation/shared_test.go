package simulation_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/history"
	"github.com/docent-zk/docent/recipes"
)

// sum is the number in ZooKeeper that workers add to.
type sum struct {
	history history.Recorder

	mu   sync.Mutex
	adds int
}

// delta returns what the next update adds: no two sums of different updates are equal. It returns 0
// after some updates.
func (s *sum) delta() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adds == 20 {
		return 0
	}
	s.adds++
	return 1 << (2 * s.adds)
}

// count adds to the number, or compares and sets it, or reads it.
func (w *worker) count(l *locks) error {
	ctx, cancel := w.patience()
	defer cancel()
	h, delta := &w.sum.history, w.sum.delta()
	if delta != 0 && w.random.IntN(3) > 0 {
		call := h.Call()
		result, err := l.counter.Add(ctx, delta)
		return w.updated(call, delta, history.Add{Delta: delta, Sum: result, Known: true}, true, err)
	}
	call := h.Call()
	now, err := l.counter.Get(ctx)
	if err != nil {
		return err
	}
	if w.plan.followers == 0 { // otherwise it may be an older value
		h.Return(call, history.Get{Value: now})
	}
	if delta == 0 {
		return nil
	}
	call = h.Call()
	wrote, err := l.counter.CompareAndSet(ctx, now, now+delta)
	return w.updated(call, delta, history.Swap{Old: now, New: now + delta}, wrote, err)
}

// updated records an update by its outcome. what is the update if there was no error.
func (w *worker) updated(call, delta int64, what any, wrote bool, err error) error {
	h, outcome := &w.sum.history, framework.OutcomeOf(err)
	switch {
	case err == nil && !wrote:
	case err == nil:
		h.Return(call, what)
	case outcome == framework.Applied:
		h.Return(call, history.Add{Delta: delta})
	case outcome == framework.Unknown:
		h.Unknown(call, history.Add{Delta: delta})
		return nil
	}
	return err
}

func (s *sum) check(run *simulation) {
	call := s.history.Call()
	s.history.Return(call, history.Get{Value: run.numberAt(counterPath)})
	if err := s.history.Check(history.Counter{}); err != nil {
		run.errorf("the history of the counter: %v", err)
	}
}

// shop is a stock of goods. It belongs to the holder of a mutex, and a condition says that there is
// something.
type shop struct {
	mu     sync.Mutex
	stock  int
	takers int // that have not given up
}

// change adds to the stock, unless the hold has ended or nothing is there to be taken.
func (s *shop) change(hold *recipes.Hold, by int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hold.Err() != nil || s.stock+by < 0 {
		return false
	}
	s.stock += by
	return true
}

func (s *shop) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stock == 0
}

// come counts a taker until leave is called.
func (s *shop) come() (leave func()) {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.takers += n
	}
	add(1)
	return func() { add(-1) }
}

// take takes something, and gives up after some time.
func (w *worker) take(l *locks) error {
	ctx, cancel := context.WithTimeout(w.all, upTo(w.random, 2*time.Second))
	defer cancel()
	return w.takeUnder(ctx, l)
}

// takeLater waits for something as long as it takes.
func (w *worker) takeLater(*locks) error {
	w.later("take", func(w *worker, l *locks) error { return w.takeUnder(w.all, l) })
	return nil
}

// takeUnder takes something, or gives up when ctx ends. After a signal it does not give up, because the
// signal would be lost for the others.
func (w *worker) takeUnder(ctx context.Context, l *locks) error {
	defer w.shop.come()()
	for signaled := false; ; time.Sleep(10 * time.Millisecond) {
		if signaled {
			ctx, l = w.all, w.current()
		}
		hold, err := l.shop.Acquire(ctx)
		if err != nil {
			if ctx.Err() != nil || !signaled && errors.Is(err, framework.ErrClosed) {
				return err
			}
			continue
		}
		w.begin(hold, exclusive, shopPath, nil)
		for err == nil && w.shop.empty() {
			if hold, err = w.waitForGoods(ctx, l, hold); err == nil {
				signaled = true
				w.begin(hold, exclusive, shopPath, nil)
			}
		}
		taken := err == nil && w.shop.change(hold, -1)
		_ = hold.Release()
		if taken || ctx.Err() != nil && !signaled {
			return nil
		}
	}
}

func (w *worker) waitForGoods(ctx context.Context, l *locks, hold *recipes.Hold) (*recipes.Hold, error) {
	if w.random.IntN(3) > 0 {
		return l.waits.Wait(ctx, hold)
	}
	next, _, err := l.waits.WaitWithin(ctx, hold, upTo(w.random, time.Minute))
	return next, err
}

// put adds something and signals it, as often as it takes.
func (w *worker) put(l *locks) error {
	for added := false; w.all.Err() == nil; time.Sleep(10 * time.Millisecond) {
		hold, err := l.shop.Acquire(w.all)
		if errors.Is(err, framework.ErrClosed) {
			l = w.current()
			continue
		}
		if err != nil {
			continue
		}
		w.begin(hold, exclusive, shopPath, nil)
		added = added || w.shop.change(hold, 1)
		if added {
			err = l.waits.Signal(w.all, hold)
		}
		_ = hold.Release()
		if added && err == nil {
			return nil
		}
	}
	return w.all.Err()
}

// fill adds what the takers that still wait need, until none is left and no more come.
func (s *shop) fill(run *simulation, closed <-chan struct{}) {
	for open := true; run.all.Err() == nil; {
		s.mu.Lock()
		takers, needed := s.takers, s.takers-s.stock
		s.mu.Unlock()
		if takers == 0 && !open {
			return
		}
		select {
		case <-closed:
			open = false
		default:
		}
		for range needed {
			_ = run.calm.worker("put").act(action{"put", (*worker).put})
		}
		time.Sleep(time.Second)
	}
}
