package simulation_test

import (
	"context"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/zktest"
)

// gate is the node of a barrier.
type gate struct {
	mu      sync.Mutex
	closed  bool
	changes int
}

// commit records a transaction. The server's lock is held.
func (g *gate) commit(changes []zktest.Change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range changes {
		if c.Path == gatePath {
			g.closed, g.changes = c.Kind != zktest.NodeDeleted, g.changes+1
		}
	}
}

func (g *gate) state() (closed bool, changes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed, g.changes
}

// open opens the gate for those that still wait.
func (g *gate) open(run *simulation) { _ = run.srv.Delete(gatePath) }

func (w *worker) setGate(l *locks) error {
	ctx, cancel := w.patience()
	defer cancel()
	return l.gate.Set(ctx)
}

func (w *worker) openGate(l *locks) error {
	ctx, cancel := w.patience()
	defer cancel()
	return l.gate.Remove(ctx)
}

// passGate waits until the gate is open, as long as that takes.
func (w *worker) passGate(*locks) error {
	w.later("gate", func(w *worker, l *locks) error {
		closed, before := w.gate.state()
		err := l.gate.Wait(w.all)
		if _, after := w.gate.state(); err == nil && closed && before == after {
			w.errorf("%s has passed the gate, which is closed", w.id)
		}
		return err
	})
	return nil
}

// countDown is the counts of a latch.
type countDown struct {
	mu        sync.Mutex
	n         int
	begun     int
	uncertain int // counts by clients that were closed
}

func (c *countDown) add(begun, uncertain int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.uncertain = c.begun+begun, c.uncertain+uncertain
}

func (c *countDown) state() (begun, uncertain int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun, c.uncertain
}

// countDown counts once, however often that fails.
func (w *worker) countDown(l *locks) error {
	if begun, _ := w.counts.state(); begun >= w.counts.n-1 {
		return nil // the last one is for the end
	}
	w.counts.add(1, 0)
	for {
		ctx, cancel := context.WithTimeout(w.all, upTo(w.random, 5*time.Second))
		err := l.countDown.CountDown(ctx)
		cancel()
		switch {
		case err == nil:
			return nil
		case w.all.Err() != nil || oneOf(err, framework.ErrClosed):
			w.counts.add(0, 1)
			return err
		case !oneOf(err, context.DeadlineExceeded):
			return err
		}
	}
}

// awaitCounts waits for all counts, as long as that takes.
func (w *worker) awaitCounts(*locks) error {
	w.later("counts", func(w *worker, l *locks) error {
		err := l.countDown.Wait(w.all)
		if begun, _ := w.counts.state(); err == nil && begun < w.counts.n {
			w.errorf("%s: the latch is open after %d of %d counts", w.id, begun, w.counts.n)
		}
		return err
	})
	return nil
}

// open makes the counts that are missing.
func (c *countDown) open(run *simulation) {
	if !run.has("count-down") {
		return
	}
	latch := run.calm.current().countDown
	begun, uncertain := c.state()
	left, err := latch.Count(run.all)
	if err != nil || left > c.n-begun+uncertain || left < c.n-begun {
		run.errorf("%d of %d counts are missing, and %d were made, %d of them uncertain: %v",
			left, c.n, begun, uncertain, err)
	}
	for range left {
		c.add(1, 0)
		if err := latch.CountDown(run.all); err != nil {
			run.errorf("count down: %v", err)
		}
	}
	c.add(c.n, 0) // uncertain ones may have counted instead
}

// parties is the model of a cyclic barrier.
type parties struct {
	mu     sync.Mutex
	n      int
	begun  int // calls that may be counted
	passed map[int64]int
}

func (w *worker) awaitParties(l *locks) error {
	ctx, cancel := context.WithTimeout(w.all, upTo(w.random, 5*time.Second))
	defer cancel()
	p := &w.parties
	p.mu.Lock()
	p.begun++
	p.mu.Unlock()
	g, err := l.cyclic.Await(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if framework.OutcomeOf(err) == framework.NotApplied {
			p.begun--
		}
		return err
	}
	if p.passed == nil {
		p.passed = map[int64]int{}
	}
	p.passed[g]++
	if p.passed[g] > p.n || p.begun < int(g+1)*p.n {
		w.errorf("%s passes generation %d as number %d of %d, and %d have come",
			w.id, g, p.passed[g], p.n, p.begun)
	}
	return nil
}

// meet enters the double barrier with the other clients, and leaves it. A member that others have
// counted although its call failed may miss the round, so it gives up after some time.
func (w *worker) meet() {
	defer w.running(w.id + " double barrier")()
	time.Sleep(upTo(w.random, 2*time.Second))
	m := &w.meeting
	m.do(func() { m.begun++ })
	end := time.Now().Add(longest / 4)
	for time.Now().Before(end) && w.all.Err() == nil {
		ctx, cancel := context.WithDeadline(w.all, end)
		if w.random.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, upTo(w.random, longest/4))
		}
		entry, err := w.current().double.Enter(ctx)
		cancel()
		if err == nil {
			m.do(func() {
				if m.entered++; m.begun < w.plan.members {
					w.errorf("%s has entered when %d have come", w.id, m.begun)
				}
			})
			w.leave(entry)
			return
		}
		m.do(func() { m.failed = m.failed || time.Now().Before(end) }) // the others may have counted it
		w.checkError("enter", err)
		time.Sleep(upTo(w.random, 50*time.Millisecond))
	}
	m.do(func() {
		if !m.failed {
			w.errorf("%s hangs in Enter, and no call has failed", w.id)
		}
	})
}

func (w *worker) leave(entry *barrier.Entry) {
	time.Sleep(upTo(w.random, time.Second))
	ctx, cancel := context.WithTimeout(w.all, longest/2)
	defer cancel()
	if err := entry.Leave(ctx); err != nil {
		w.checkError("leave", err)
		if ctx.Err() != nil {
			w.errorf("%s hangs in Leave", w.id)
		}
	}
}

// meeting is one round of the double barrier.
type meeting struct {
	mu             sync.Mutex
	begun, entered int
	failed         bool
}

func (m *meeting) do(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
}
