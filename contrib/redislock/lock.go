package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/measure"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
)

// Lock is a lock between processes, and between the goroutines of one process. A Lock has no state of
// its own: all Lock values of one kind and name are the same lock. It is safe for concurrent use.
type Lock struct {
	c      *Client
	name   string
	key    string
	kind   kind
	as     string // what the owners begin with
	ch     string // on which releases are published
	queues bool   // each waiter has a channel of its own: ch and its owner

	reentry any   // identifies its holds in contexts; nil: it does not re-enter
	other   *Lock // the other side of a read-write lock
}

var _ recipes.Locker = (*Lock)(nil)

// LockOption configures a Lock.
type LockOption func(*lockConfig) error

type lockConfig struct{ fair bool }

// WithFairQueue lets the waiters of all clients acquire the lock in the order in which they came. A
// waiter that crashed delays those behind it by the time to live at most, as a holder does that crashed.
// Each waiter asks at intervals (WithPollInterval), and has a channel of its own, on which it is told that
// it is its turn. Locks of one name with and without the option exclude each other, but those without it
// do not queue: the lock is fair if all programs use the option. A release of the one kind of lock does not
// wake the waiters of the other kind: they find the lock free when they ask.
func WithFairQueue() LockOption {
	return func(c *lockConfig) error {
		c.fair = true
		return nil
	}
}

// New returns the lock of a name, which one hold has at a time. It makes no request. It returns an
// error for a nil or zero client, and for a name that is empty or contains a brace: a Redis Cluster has
// the keys of a lock on one server because the names of the others have the key in braces.
func New(c *Client, name string, opts ...LockOption) (*Lock, error) {
	l, keys, err := newLock(c, name, "queue", "alive")
	if err != nil {
		return nil, err
	}
	var cfg lockConfig
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	s := &single{
		c: c, keys: keys, channel: l.ch,
		acquireScript: acquireScript, renewScript: renewScript, releaseScript: releaseScript,
	}
	if cfg.fair {
		s.channel, s.records = l.beside("turn:"), true
		s.acquireScript, s.releaseScript = acquireFairScript, releaseFairScript
		l.ch, l.queues = s.channel, true
	}
	l.kind = s
	return l, nil
}

// newLock returns a lock that re-enters, without its kind, and its keys, in one hash slot: the lock, the
// counter of tokens, the owners that were released, and one for each further name.
func newLock(c *Client, name string, further ...string) (*Lock, []string, error) {
	switch {
	case c == nil:
		return nil, nil, errors.New("redislock: the client is nil")
	case c.open == nil:
		return nil, nil, fmt.Errorf("redislock: the client: %w", framework.ErrZeroValue)
	case name == "":
		return nil, nil, errors.New("redislock: the name of the lock is empty")
	case strings.ContainsAny(name, "{}"):
		return nil, nil, fmt.Errorf("redislock: the name %q of the lock contains a brace", name)
	}
	l := &Lock{c: c, name: name, key: c.cfg.prefix + name}
	l.ch, l.reentry = l.beside("released"), reentry{c, "", l.key}
	keys := []string{l.key}
	for _, name := range append([]string{"token", "done"}, further...) {
		keys = append(keys, l.beside(name))
	}
	return l, keys, nil
}

// beside returns a key in the hash slot of the lock.
func (l *Lock) beside(name string) string { return "{" + l.key + "}:" + name }

// reentry identifies the holds of a lock, or of a side of one, in contexts.
type reentry struct {
	c         *Client
	side, key string
}

// Acquire waits until the lock is acquired or ctx ends. With the context of a valid hold of the same
// lock and Client (see recipes.Hold.Context) it re-enters: it returns another hold of what that hold
// has, without a request, and the last release releases it. Acquiring again with the outer context
// waits until ctx ends. ctx limits only the wait, not the hold. Acquire fails
//
//   - when ctx ends. The error matches those of ctx, and recipes.ErrNotAcquired if another holder
//     was seen;
//   - with ErrClosed when the client is closed;
//   - when Redis refuses the request. An answer that passes, such as LOADING in a start or READONLY
//     in a failover, and a lost connection do not end the wait.
//
// An Acquire that fails leaves nothing: a key that it may have set, and the record of a waiter, are
// deleted in the background. If Redis cannot be reached for that, they expire after the time to live.
func (l *Lock) Acquire(ctx context.Context) (*recipes.Hold, error) { return l.acquire(ctx, true) }

// TryAcquire is Acquire that does not wait for other holders: it fails with recipes.ErrNotAcquired.
// It still waits for a connection until ctx ends.
func (l *Lock) TryAcquire(ctx context.Context) (*recipes.Hold, error) { return l.acquire(ctx, false) }

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

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.name }

// Key returns the key of the lock in Redis: the prefix and the name.
func (l *Lock) Key() string { return l.key }

func (l *Lock) acquire(ctx context.Context, wait bool) (*recipes.Hold, error) {
	switch {
	case l.c == nil:
		return nil, framework.ErrZeroValue
	case ctx == nil:
		return nil, framework.ErrNilContext
	}
	if hold, err := l.reenter(ctx); hold != nil || err != nil {
		return hold, err
	}
	hold, err := measure.Acquire(l.c.cfg.metrics, l.Key(), func(w *measure.Waiter) (*recipes.Hold, error) {
		return l.acquired(ctx, w, wait)
	})
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", l.Key(), err)
	}
	return hold, nil
}

// reenter returns another hold of what a hold in ctx has, and nil if ctx carries none.
func (l *Lock) reenter(ctx context.Context) (*recipes.Hold, error) {
	hold, ok := recipes.Reenter(ctx, l.reentry)
	if !ok && l.other != nil {
		hold, ok = recipes.Reenter(ctx, l.other.reentry)
		if ok && l.as == writer {
			return nil, errors.Join(fmt.Errorf("acquire %s: %w", l.key, ErrUpgrade), hold.Release())
		}
	}
	return hold, nil
}

func (l *Lock) acquired(ctx context.Context, count *measure.Waiter, wait bool) (*recipes.Hold, error) {
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	if err := l.c.enter(); err != nil {
		return nil, err
	}
	defer l.c.leave()
	a := &attempt{Lock: l, owner: l.as + l.c.newOwner(), count: count}
	won := false
	defer func() { a.end(won) }() // also if code of the program ends the goroutine
	g, begun, err := a.run(ctx, wait)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	won = true
	return l.hold(g, begun)
}

// attempt is an acquire. All of its requests have the same owner, so a repeated one finds that the
// one before has set the key.
type attempt struct {
	*Lock
	owner string

	pending  <-chan result[grant] // a request that was not waited for
	leftover string               // an owner that may have something; "": there is none
	held     bool                 // another holder was seen
	last     error                // of a request
	waiter   *waiter              // nil: not waiting for another holder yet
	count    *measure.Waiter
}

// run asks until the lock is acquired. It returns when the request was sent that has acquired it.
func (a *attempt) run(ctx context.Context, wait bool) (grant, time.Time, error) {
	for failures := 0; ; {
		g, begun, err := a.ask(ctx, wait)
		pause := jitter(a.c.cfg.poll)
		switch {
		case err == nil && g.granted:
			return g, begun, nil
		case err == nil && !wait:
			return g, begun, recipes.ErrNotAcquired
		case err == nil:
			failures = 0
			if a.beginWait() && a.c.redis != nil {
				continue // a release since the answer was not heard
			}
			if g.left >= 0 {
				pause = min(pause, g.left+time.Millisecond+jitter(expirySpread))
			}
			if g.owner != "" { // the record of the waiter must be renewed
				pause = min(pause, a.c.cfg.ttl/3)
			}
		case a.pending != nil || isAnswer(err):
			return g, begun, err
		default:
			failures++
			pause = min(pause, backoff(failures))
		}
		if err := a.pause(ctx, pause); err != nil {
			return g, begun, err
		}
	}
}

// ask makes a request and waits for the answer. It returns when the request was sent.
func (a *attempt) ask(ctx context.Context, wait bool) (grant, time.Time, error) {
	begun := time.Now()
	results := start(context.WithoutCancel(ctx), a.c, func(ctx context.Context) (grant, error) {
		return a.kind.acquire(ctx, a.owner, wait)
	})
	select {
	case r := <-results:
		err := a.read(r, a.c.until(begun))
		return r.answer, begun, err
	case <-ctx.Done():
		a.pending = results
		return grant{}, begun, ctxerr.Of(ctx)
	case <-a.c.open.Done():
		a.pending = results
		return grant{}, begun, ErrClosed
	}
}

// read notes what an answer says.
func (a *attempt) read(r result[grant], until time.Time) error {
	err := r.err
	if err == nil && r.answer.granted && !time.Now().Before(until) {
		err = fmt.Errorf("%w: the answer took longer than the key lives", context.DeadlineExceeded)
	}
	if r.answer.owner != "" {
		a.leftover = r.answer.owner
	}
	a.held, a.last = a.held || err == nil && !r.answer.granted, err
	return err
}

// beginWait has the attempt woken by releases. It reports whether that was not so before.
func (a *attempt) beginWait() bool {
	if a.waiter != nil {
		return false
	}
	ch := a.ch
	if a.queues {
		ch += a.owner
	}
	a.waiter = a.c.wakeups.wait(ch)
	a.count.Begin()
	return true
}

// end ends the attempt.
func (a *attempt) end(won bool) {
	if a.waiter != nil {
		a.waiter.leave()
	}
	if !won {
		a.undo()
	}
}

// expirySpread is the time in which waiters ask after a key has expired.
const expirySpread = 10 * time.Millisecond

// backoff returns the pause after a number of failures in a row.
func backoff(failures int) time.Duration {
	return jitter(min(time.Second, 10*time.Millisecond<<min(failures, 10)))
}

// pause waits for d, or until the waiter is woken. One that is not the first, and has an answer, waits for that alone.
func (a *attempt) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	due := timer.C
	var woken <-chan struct{}
	if a.waiter != nil {
		woken = a.waiter.woken
		if !a.waiter.first() && a.last == nil {
			due = nil // after a failure it asks again: it may have the lock
		}
	}
	select {
	case <-woken:
	case <-due:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-a.c.open.Done():
		return ErrClosed
	}
	return nil
}

// failed returns the error of an acquire that ended with err.
func (a *attempt) failed(ctx context.Context, err error) error {
	switch {
	case a.last == nil || errors.Is(err, a.last):
	case errors.Is(a.last, context.DeadlineExceeded) || errors.Is(a.last, context.Canceled): // of a request
		err = fmt.Errorf("%w: %v", err, a.last)
	default:
		err = fmt.Errorf("%w: %w", err, a.last)
	}
	if a.held && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = errtext.Because(recipes.ErrNotAcquired, err)
	}
	return err
}

// undo deletes in the background what the attempt may have left.
func (a *attempt) undo() {
	pending, owner := a.pending, a.leftover
	if pending == nil && owner == "" {
		return
	}
	a.c.work.Go(func() {
		if pending != nil {
			owner = cmp.Or((<-pending).answer.owner, owner)
		}
		if owner != "" {
			a.clean(owner)
		}
	})
}
