package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/measure"
	"github.com/docent-zk/docent/recipes"
)

// engine acquires one lock, of any kind.
type engine struct {
	c    *Client
	kind kind
	name string
}

// kind is what kinds of locks differ in.
type kind struct {
	open  func() table  // returns the table for one acquire and its hold
	waits time.Duration // how long the database keeps an acquire waiting; 0: not at all
	limit time.Duration // how long a renewal or a release may take
	gates *gates        // where waiters wait for their turn
}

func (e engine) acquire(ctx context.Context, how func(*attempt, context.Context) error) (*recipes.Hold, error) {
	if err := e.check(ctx); err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	hold, err := measure.Acquire(e.c.metrics, e.name, func(w *measure.Waiter) (*recipes.Hold, error) {
		return e.acquireFor(ctx, w, how)
	})
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", e.name, err)
	}
	return hold, nil
}

// check returns an error if the lock is a zero value or ctx is nil.
func (e engine) check(ctx context.Context) error {
	switch {
	case e.c == nil:
		return fmt.Errorf("%w: sqllock: call its constructor", framework.ErrZeroValue)
	case ctx == nil:
		return framework.ErrNilContext
	}
	return nil
}

func (e engine) acquireFor(
	caller context.Context, waiter *measure.Waiter, how func(*attempt, context.Context) error,
) (*recipes.Hold, error) {
	c := e.c
	if err := c.begin(); err != nil {
		return nil, err
	}
	defer c.busy.Done()
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()

	a := &attempt{c: c, kind: e.kind, table: e.kind.open(), waiter: waiter}
	a.request.name, a.request.owner = e.name, c.newOwner()
	err := a.make(ctx, how)
	var hold *recipes.Hold
	if err == nil {
		hold, err = c.hold(a)
	}
	if err == nil {
		return hold, nil
	}
	switch end := endOf(caller); {
	case end != nil:
		err = a.ended(end)
	case c.ctx.Err() != nil:
		err = ErrClosed
	}
	return nil, err
}

// endOf returns the error of a context that has ended, and nil before. A driver has a timer of its own for
// the deadline, and may return before the context has ended.
func endOf(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if ok && !time.Now().Before(deadline) {
		select {
		case <-ctx.Done(): // its error may have a cause
		case <-time.After(deadlineDelay):
			return context.DeadlineExceeded
		}
	}
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	return nil
}

// deadlineDelay is how long a context may last after its deadline.
const deadlineDelay = 100 * time.Millisecond

// attempt is one call of Acquire or TryAcquire.
type attempt struct {
	c       *Client
	kind    kind
	table   table
	request request
	// unknown says that the request may be applied, now or later.
	unknown bool
	lost    time.Time // when the last answer was lost
	// contended says that others have or want the lock.
	contended bool
	waiter    *measure.Waiter
	answered  bool      // a read has succeeded
	failure   error     // of the last look; nil if it has succeeded
	failing   time.Time // since when looks fail
	failures  int       // how many have failed since then
	until     time.Time // the end of the lease, after the request was applied
}

// make makes the attempt, and deletes in the background what it may have left: also if code of the program
// ends the goroutine.
func (a *attempt) make(ctx context.Context, how func(*attempt, context.Context) error) (err error) {
	won := false
	defer func() { a.leave(won) }()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = how(a, ctx)
	won = err == nil
	return err
}

// ended returns the error of an attempt whose context has ended.
func (a *attempt) ended(err error) error {
	if a.failure != nil {
		err = fmt.Errorf("%w: %v", err, a.failure) // not wrapped: it may be of another context
	}
	if a.contended {
		err = errtext.Because(recipes.ErrNotAcquired, err)
	}
	return err
}

// meet notes that others have or want the lock.
func (a *attempt) meet() {
	a.contended = true
	if a.request.waiting {
		a.waiter.Begin()
	}
}

// try makes one attempt. It makes another one if the row has changed meanwhile, which is so after
// requests of others that failed, and two if the reply was lost. If the row looks free and is not, a
// transaction has locked it. That may be the lost request, and then try returns the error of the reply.
// Otherwise others have the lock, one after the other, if it looks so for mostTries times.
func (a *attempt) try(ctx context.Context) error {
	var lost error
	refused := false // the request after it
	for tries, seen := 1, int64(-1); ; tries, seen = tries+1, a.request.seen {
		won, left, err := a.once(ctx)
		switch {
		case won:
			return nil
		case err != nil && a.unknown && lost == nil && ctx.Err() == nil && !isFinal(err):
			lost = err
		case err != nil:
			return err
		case left > 0 || !a.unknown && (a.request.seen == seen || tries == mostTries):
			return recipes.ErrNotAcquired
		case a.unknown && refused:
			return lost
		default:
			refused = a.unknown // the next look may find that the lost one was applied
		}
	}
}

// mostTries is how many requests of a TryAcquire may find that the row has changed.
const mostTries = 4

// minPause is the first pause of a waiter.
const minPause = 4 * time.Millisecond

// wait makes attempts until one succeeds or ctx ends.
func (a *attempt) wait(ctx context.Context) error {
	a.request.waiting = true
	bell, leave, err := a.kind.gates.enter(ctx, a.request.name, a.meet)
	if err != nil {
		return err
	}
	defer leave()
	for pause := minPause; ; {
		asked := time.Now()
		won, left, err := a.once(ctx)
		switch {
		case won:
			return nil
		case err == nil:
			a.failure = nil
		case ctx.Err() != nil:
			return err
		case a.fails(err, asked):
			return err
		}
		if left <= 0 { // after an error, or if a transaction has the row: its rollback wakes no waiter
			left = a.c.lease / 3
		}
		length := min(jitter(min(pause, a.c.poll)), left)
		if err == nil && a.kind.waits > 0 { // the database has kept it waiting, or will
			length = 0
		}
		select {
		case <-bell:
			pause = minPause
		case <-time.After(length):
			pause = min(2*pause, a.c.poll)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fails reports whether an error ends the wait: that of the first read does, one after which no acquire can
// succeed, and the last one of a lease in which all looks have failed, three or more. Two may have got dead
// connections of the pool.
func (a *attempt) fails(err error, asked time.Time) bool {
	if !a.answered || isFinal(err) {
		return true
	}
	if a.failure == nil {
		a.failing, a.failures = asked, 0
		a.c.logger.Named("sqllock").Warn("an acquire has failed and goes on",
			zap.String("name", a.request.name), zap.Error(err))
	}
	a.failure = err
	a.failures++
	return a.failures >= 3 && time.Since(a.failing) > a.c.lease
}

// isFinal reports whether no acquire can succeed after an error.
func isFinal(err error) bool { return errors.Is(err, errAltered) || errors.Is(err, errLastToken) }

// once reads the row and acquires the lock if it is free. Otherwise left is how long the lease of the
// holder lasts at most, or 0 if the row could not be changed.
func (a *attempt) once(ctx context.Context) (won bool, left time.Duration, err error) {
	r, err := a.read(ctx)
	if err != nil {
		if !r.free() && r.owner != a.request.owner {
			a.meet()
		}
		return false, 0, err
	}
	switch {
	case a.unknown && r.owner == a.request.owner && r.fence == a.request.next && r.left > 0:
		won, err = a.ask(ctx, 0, a.table.renew) // its lease may have almost ended
		return won, 0, err
	case a.unknown && r.fence != a.request.seen:
		a.unknown = false // it can change nothing any more
	}
	if !r.free() {
		a.meet()
		return false, r.left, nil
	}
	if !a.unknown {
		if err := r.checkNext(); err != nil {
			return false, 0, err
		}
		a.request.seen, a.request.next = r.fence, r.next
	}
	return a.send(ctx)
}

// one makes one request, for which the database may wait. It may need a new connection, so it may take
// longer than a renewal.
func (a *attempt) one(ctx context.Context, waits time.Duration, fn func(ctx context.Context) error) error {
	return within(ctx, waits+min(a.c.lease/2, 5*time.Second), fn)
}

// read reads the row, and inserts it before if it is missing.
func (a *attempt) read(ctx context.Context) (row, error) {
	for range mostInserts {
		var r row
		err := a.one(ctx, 0, func(ctx context.Context) (err error) {
			r, err = a.table.read(ctx, a.request)
			return err
		})
		if r.there {
			a.answered = true
		}
		if err != nil || r.there {
			return r, err
		}
		err = a.one(ctx, 0, func(ctx context.Context) error { return a.table.insert(ctx, a.request.name) })
		if err != nil {
			return row{}, err
		}
	}
	return row{}, errNotFound
}

// mostInserts is how often a row is inserted that is not found. It may be deleted meanwhile.
const mostInserts = 4

var errNotFound = errors.New("the row is not found after its insert: the table has altered its name, " +
	"the reads are those of a replica, or the row is deleted again and again")

// send sends the request.
func (a *attempt) send(ctx context.Context) (won bool, _ time.Duration, err error) {
	repeated, waits := a.unknown, time.Duration(0)
	if a.request.waiting {
		waits = a.kind.waits
	}
	a.unknown = true
	won, err = a.ask(ctx, waits, a.table.acquire)
	switch {
	case err != nil:
		a.lost = time.Now()
	case !won:
		a.unknown = repeated // an earlier one may have the row, now or later, but for no longer than a lease
		if !repeated || time.Since(a.lost) > 2*a.c.lease {
			a.meet()
		}
	}
	return won, 0, err
}

// ask makes a request that acquires the lock or renews its lease.
func (a *attempt) ask(
	ctx context.Context, waits time.Duration, fn func(context.Context, request) (time.Duration, error),
) (won bool, err error) {
	var left time.Duration
	sent := time.Now()
	err = a.one(ctx, waits, func(ctx context.Context) (err error) {
		left, err = fn(ctx, a.request)
		return err
	})
	if err != nil || left <= 0 {
		return false, err
	}
	a.unknown = false
	a.until = a.c.deadline(sent, left)
	return true, nil
}

// leave leaves nothing of an attempt in the database that has ended, but a lock that it has won. Both
// parts begin at once, so that Close waits no longer than for one.
func (a *attempt) leave(won bool) {
	if a.unknown {
		a.c.busy.Go(a.undo)
	}
	a.c.busy.Go(func() {
		_ = a.c.cleanup(a.kind.limit, func(ctx context.Context) error { return a.table.leave(ctx, a.request, won) })
	})
}

// undo has the request change nothing any more.
func (a *attempt) undo() {
	q := a.request
	err := a.c.cleanup(a.kind.limit, func(ctx context.Context) error { return a.table.undo(ctx, q) })
	if err != nil {
		a.c.logger.Named("sqllock").Warn(
			"an acquire without an answer could not be undone: if it was applied, it ends with its lease",
			zap.String("name", q.name), zap.Int64("token", q.next), zap.Error(err))
		return
	}
	a.kind.gates.wake(q.name)
}
