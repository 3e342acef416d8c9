package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/measure"
	"github.com/docent-zk/docent/recipes"
)

// Lock is a mutex in etcd. Locks of the same name exclude each other, in all processes. It does not
// re-enter. Safe for concurrent use. The zero value is not usable.
type Lock struct {
	c    *Client
	name string
	dir  string
}

var _ recipes.Locker = (*Lock)(nil)

// New returns a lock. Its keys are directly below name and a slash. Another lock may have a name
// below it. The mutex of etcd's own package concurrency has its keys there, too: a lock and a mutex
// of the same name exclude each other.
//
// New makes no request. It returns an error if c is nil or a zero value, or if name is empty, is not
// UTF-8 or ends with a slash.
func New(c *Client, name string) (*Lock, error) {
	switch {
	case c == nil:
		return nil, errors.New("etcdlock: nil client")
	case c.close == nil:
		return nil, fmt.Errorf("etcdlock: client: %w", framework.ErrZeroValue)
	case name == "" || strings.HasSuffix(name, "/") || !utf8.ValidString(name):
		return nil, fmt.Errorf("etcdlock: the name %q is empty, ends with a slash, or is not UTF-8", name)
	}
	return &Lock{c, name, name + "/"}, nil
}

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.name }

// Acquire waits until the lock is acquired. The waiters of all processes acquire it in the order in
// which their keys were created. Each one waits for the deletion of the key before its own. Acquire
// goes on when there is no connection. When the lease is lost, it goes on behind the other waiters.
//
// ctx limits the wait, not the hold. The error matches
//
//   - the error of ctx when it has ended, and recipes.ErrNotAcquired if other holders or waiters were
//     seen. Nothing is left behind: the key is deleted in the background;
//   - ErrClosed when the client is closed;
//   - an error of etcd that a repetition would not change, such as a permission that is missing, or
//     that the client of etcd is closed.
func (l *Lock) Acquire(ctx context.Context) (*recipes.Hold, error) { return l.acquire(ctx, false) }

// TryAcquire is Acquire that does not wait for other holders or waiters: it fails with
// recipes.ErrNotAcquired. It waits until ctx ends for a connection, and for the deletion of a key that
// it has created itself with a lease that is lost.
func (l *Lock) TryAcquire(ctx context.Context) (*recipes.Hold, error) { return l.acquire(ctx, true) }

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin.
func (l *Lock) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, l, d)
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, l, fn)
}

func (l *Lock) acquire(ctx context.Context, try bool) (*recipes.Hold, error) {
	switch {
	case l.c == nil:
		return nil, fmt.Errorf("etcdlock: %w", framework.ErrZeroValue)
	case ctx == nil:
		return nil, framework.ErrNilContext
	}
	return measure.Acquire(l.c.conf.metrics, l.name, func(w *measure.Waiter) (*recipes.Hold, error) {
		return l.acquireUntil(ctx, &attempts{try: try, waiter: w})
	})
}

// acquireUntil makes attempts until one succeeds or ctx ends.
func (l *Lock) acquireUntil(ctx context.Context, all *attempts) (*recipes.Hold, error) {
	if ctx.Err() != nil {
		return nil, l.failed(ctxerr.Of(ctx))
	}
	for {
		hold, again, err := l.attempt(ctx, all)
		switch {
		case err == nil:
			return hold, nil
		case errors.Is(err, errBusy):
			return nil, l.failed(fmt.Errorf("%w: %w", recipes.ErrNotAcquired, err))
		case l.c.ctx.Err() != nil:
			return nil, l.failed(ErrClosed)
		case ctx.Err() != nil && all.seen:
			return nil, l.failed(fmt.Errorf("%w: %w", recipes.ErrNotAcquired, ctxerr.Of(ctx)))
		case ctx.Err() != nil:
			return nil, l.failed(ctxerr.With(ctx, err))
		case l.c.etcd.Ctx().Err() != nil:
			return nil, l.failed(errClosedBelow)
		case !again:
			return nil, l.failed(err)
		}
		pause(ctx, jitter(min(l.c.conf.ttl/20, time.Second)))
	}
}

func (l *Lock) failed(err error) error { return fmt.Errorf("acquire %s: %w", l.name, err) }

// attempt acquires the lock in one session. It reports whether another attempt may succeed.
func (l *Lock) attempt(ctx context.Context, all *attempts) (hold *recipes.Hold, again bool, err error) {
	s, err := l.c.session(ctx)
	if err != nil {
		return nil, transient(err) || errors.Is(err, ErrLeaseLost), err
	}
	r := newRecord(s, l.dir)
	defer func() { // also if code of the program ends the goroutine
		if hold == nil {
			r.leave()
		}
	}()
	if err = r.first(ctx, all); err == nil {
		if hold, err = r.toHold(l.name); err == nil {
			return hold, false, nil
		}
	}
	all.keys = append(all.keys, r.key)
	return nil, s.over() || errors.Is(err, ErrKeyDeleted) || errors.Is(err, errFormer), err
}

// first waits until the key of r is the first of its queue.
func (r *record) first(ctx context.Context, all *attempts) error {
	predecessor, err := r.enqueue(ctx, all.try)
	for err == nil && predecessor != "" {
		if err := all.meet(predecessor); err != nil {
			return err
		}
		r.await(ctx, predecessor)
		predecessor, err = r.look(ctx)
	}
	return err
}

// attempts are those of one acquire.
type attempts struct {
	try  bool     // do not wait for other clients
	seen bool     // another client was before one of them
	keys []string // of those that have failed; the keys may still be there

	waiter *measure.Waiter
}

var (
	errBusy   = errors.New("held by another client")
	errFormer = errors.New("the key of a former attempt is not deleted yet")
)

// meet returns an error if the current attempt must not wait for the deletion of the key.
func (a *attempts) meet(key string) error {
	if slices.Contains(a.keys, key) {
		if a.try {
			return errFormer
		}
		return nil
	}
	a.seen = true
	if a.try {
		return errBusy
	}
	a.waiter.Begin()
	return nil
}
