package counter

import (
	"context"
	"slices"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/mutexlock"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/mutex"
)

// update is an update that a caller waits for.
type update struct {
	op    string // for errors
	lock  *mutex.Mutex
	seed  []byte
	alone bool // it shares no transaction with other updates, because it depends on the version
	// apply returns the data to write, or false if the update changes nothing. Its last call counts.
	apply func(reading) (next []byte, write bool)

	// Guarded by mu of the writer. The caller reads err and after once done is closed.
	phase  phase
	writes bool
	after  version
	err    error
	done   chan struct{}
}

// phase is how far an update is.
type phase int

const (
	waiting   phase = iota // nothing was sent
	taken                  // it is in the batch, which may have been sent
	finished               // done is closed
	abandoned              // the caller has left
)

// batch is updates that are written in one transaction.
type batch struct {
	updates []*update
	writes  bool
	from    reading // the transaction is applied only if the node is still so
	data    []byte
	number  uint64 // in the marker
	marker  *marker
	// former means that an earlier attempt had another marker, so the marker does not tell everything.
	former bool
	// unknown is the error of an attempt whose outcome is not known. While it is not nil, the batch
	// must not be composed anew.
	unknown error
}

// pending has the updates of one writer. It is safe for concurrent use.
type pending struct {
	mu      sync.Mutex
	waiting []*update
}

func (p *pending) add(u *update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u.done = make(chan struct{})
	p.waiting = append(p.waiting, u)
}

// abandon ends an update because its caller leaves with err, and returns its outcome. If the update
// has finished meanwhile, it returns that result.
func (p *pending) abandon(u *update, err error) (framework.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := u.phase
	switch before {
	case finished:
		return framework.Unknown, u.err
	case waiting:
		p.waiting = slices.DeleteFunc(p.waiting, func(other *update) bool { return other == u })
	}
	u.phase = abandoned
	if before == taken && u.writes {
		return framework.Unknown, err
	}
	return framework.NotApplied, err
}

func (p *pending) isFinished(u *update) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return u.phase == finished
}

// take returns a batch of the updates that wait, or nil if there are none. An update that must be
// alone is, and the others keep their order.
func (p *pending) take() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.waiting)
	if n == 0 {
		return nil
	}
	if i := slices.IndexFunc(p.waiting, func(u *update) bool { return u.alone }); i >= 0 {
		n = max(i, 1)
	}
	b := &batch{updates: slices.Clone(p.waiting[:n])}
	p.waiting = slices.Delete(p.waiting, 0, n)
	for _, u := range b.updates {
		u.phase = taken
	}
	return b
}

// compose applies the updates of a batch that was not sent, one after the other, to what was read.
func (p *pending) compose(b *batch, from reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.updates = slices.DeleteFunc(b.updates, func(u *update) bool { return u.phase == abandoned })
	b.from, b.data, b.writes = from, from.data, false
	for _, u := range b.updates {
		var next []byte
		if next, u.writes = u.apply(reading{b.data, from.version}); u.writes {
			b.data, b.writes = next, true
		}
	}
}

// finish ends the updates of a batch. after is the version that it has written. With an error, those
// that write nothing wait again: it does not concern them.
func (p *pending) finish(b *batch, after version, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var again []*update
	for _, u := range b.updates {
		switch {
		case u.phase != taken:
		case err != nil && !u.writes:
			u.phase = waiting
			again = append(again, u)
		default:
			u.phase, u.after, u.err = finished, after, err
			close(u.done)
		}
	}
	p.waiting = append(again, p.waiting...)
}

// requeue makes the updates of a batch wait again, because it was not applied and never will be.
func (p *pending) requeue(b *batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var again []*update
	for _, u := range b.updates {
		if u.phase == taken {
			u.phase = waiting
			again = append(again, u)
		}
	}
	p.waiting = append(again, p.waiting...)
}

// wanted reports whether a caller waits for an update of the batch.
func (p *pending) wanted(b *batch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(b.updates, func(u *update) bool { return u.phase == taken })
}

// do makes an update. It returns when the update is finished, or when ctx ends. One goroutine at a
// time makes requests, for all updates that wait. It uses its own context. If it leaves while the
// outcome of a batch is unknown, the next one continues with that batch.
//
// Only one goroutine waits for the lock. One that holds the lock does not wait for it.
func (w *writer) do(ctx context.Context, u *update) (framework.Outcome, error) {
	w.add(u)
	first := w.first
	if _, held := ownership.Current(ctx, mutexlock.Of(u.lock).LockKey()); held {
		first = make(chan struct{}, 1)
	}
	for {
		select {
		case <-u.done:
			return framework.Unknown, u.err
		case <-ctx.Done():
			return w.abandon(u, ctxerr.Of(ctx))
		case first <- struct{}{}:
			if err := w.lead(ctx, u, first); err != nil {
				return w.abandon(u, ctxerr.With(ctx, err))
			}
		}
	}
}

func (w *writer) lead(ctx context.Context, u *update, first chan struct{}) error {
	defer func() { <-first }()
	return w.drive(ctx, u)
}
