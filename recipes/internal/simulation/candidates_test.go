package simulation_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

// lead checks a term.
func (w *worker) lead(t *leader.Term, path string) {
	w.checker.begin(&record{
		valid: t, kind: exclusive, owner: w.id, lock: path, nodes: []string{t.Path()}, token: t.Token(),
	})
}

// elect runs elections until ctx ends.
func (w *worker) elect(ctx context.Context) {
	var inside atomic.Int32
	for ctx.Err() == nil {
		var opts []leader.Option
		if w.random.IntN(3) == 0 {
			opts = append(opts, leader.WithLockDelay(500*time.Millisecond))
		}
		election := must(leader.New(w.current().client, electionPath, opts...))
		err := election.Run(ctx, func(ctx context.Context, t *leader.Term) error {
			if inside.Add(1) > 1 {
				w.errorf("%s: calls overlap", w.id)
			}
			defer inside.Add(-1)
			w.lead(t, electionPath)
			select {
			case <-time.After(upTo(w.random, 2*time.Second)):
			case <-ctx.Done():
				time.Sleep(upTo(w.random, 300*time.Millisecond))
			}
			if w.random.IntN(3) == 0 {
				_ = t.Resign()
				time.Sleep(upTo(w.random, 300*time.Millisecond))
			}
			return nil
		})
		if ctx.Err() == nil && !oneOf(err, framework.ErrClosed) {
			w.errorf("%s: Run returned %v", w.id, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// latch starts one latch after another until ctx ends.
func (w *worker) latch(ctx context.Context) {
	for ctx.Err() == nil {
		l := must(leader.NewLatch(w.current().client, latchPath))
		heard := w.listen(l)
		if err := l.Start(ctx); err == nil {
			w.serve(ctx, l)
		}
		_ = l.Close()
		if heard.Load() != nil {
			w.errorf("%s: the end of a term was not reported", w.id)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// listen checks that the begin and the end of each term are reported alternately. The returned
// pointer has the term without a reported end.
func (w *worker) listen(l *leader.Latch) *atomic.Pointer[leader.Term] {
	var open atomic.Pointer[leader.Term]
	l.Listen(func(c leader.Change) {
		begins, is := c.Err == nil, open.Load()
		switch {
		case begins && is != nil, !begins && is != c.Term:
			w.errorf("%s: a term is reported (begins: %v) while another has not ended: %v", w.id, begins, is != nil)
		case !begins && c.Term.Err() == nil:
			w.errorf("%s: the end of a valid term is reported", w.id)
		}
		if open.Store(nil); begins {
			open.Store(c.Term)
		}
	})
	return &open
}

func (w *worker) serve(ctx context.Context, l *leader.Latch) {
	ctx, cancel := context.WithTimeout(ctx, upTo(w.random, 10*time.Second))
	defer cancel()
	var last *leader.Term // Await returns it again
	for ctx.Err() == nil {
		t, err := l.Await(ctx)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if t != last {
			w.lead(t, latchPath)
		}
		last = t
		select {
		case <-time.After(upTo(w.random, 2*time.Second)):
		case <-t.Done():
		case <-ctx.Done():
		}
		if w.random.IntN(2) == 0 {
			_ = t.Resign()
		}
	}
}

// observer has the node of the leader that was reported last.
type observer struct{ node atomic.Pointer[string] }

// observe follows the leader at a path until ctx ends.
func observe(ctx context.Context, c *framework.Client, path string) *observer {
	var o observer
	go func() {
		for participant, err := range leader.Observe(ctx, c, path) {
			node := participant.Node
			if err != nil {
				node = err.Error()
			}
			o.node.Store(&node)
		}
	}()
	return &o
}
