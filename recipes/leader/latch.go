package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/listen"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
)

// Latch is a candidate in the background, from Start to Close. It can be asked whether it leads.
// Each Latch value is one candidate for its path, in any number of processes, and is used once.
// Safe for concurrent use. Curator: LeaderLatch.
type Latch struct {
	*candidate // nil in the zero value
	client     *framework.Client
	listeners  listen.Listeners[Change]
	done       chan struct{} // closed when no goroutine of the Latch runs any more

	mu      sync.Mutex
	stop    context.CancelFunc // nil before Start
	closed  bool
	term    *Term         // the last term
	refused error         // the last error for which the candidate could not stand for election
	times   int           // the number of such errors
	end     error         // why the Latch does not stand for election any more
	left    error         // what Resign of the last term returned
	changed chan struct{} // closed and replaced when term, times or end changes
}

// Change is the begin or the end of a term, for the listeners of a Latch.
type Change struct {
	Term *Term
	Err  error // nil if the term has begun; the reason if it has ended
}

// NewLatch returns a candidate for path, which must be a node of its own: the candidates' nodes are
// its children, and other children are ignored. Missing nodes are created as containers. NewLatch
// makes no request. It returns an error for a nil or unusable client, an invalid path, and "/".
func NewLatch(c *framework.Client, path string, opts ...Option) (*Latch, error) {
	cfg, err := newConfig(opts)
	if err == nil && cfg.requeue != nil {
		err = errors.New("WithRequeue is for an Election: a Latch always enqueues again")
	}
	if err == nil && cfg.kazoo {
		err = errors.New("WithKazooNames is for an Election: kazoo has no Latch")
	}
	if err == nil {
		err = check.Path(c, path)
	}
	if err != nil {
		return nil, fmt.Errorf("new latch: %w", err)
	}
	cfg.emptyID = true
	cand, err := newCandidate(c, "latch", path, latchRules, cfg)
	if err != nil {
		return nil, fmt.Errorf("new latch: %w", err)
	}
	return &Latch{
		candidate: cand,
		client:    c,
		done:      make(chan struct{}),
		changed:   make(chan struct{}),
	}, nil
}

func (l *Latch) made() bool { return l.candidate != nil }

// Start stands for election in the background until ctx ends or Close is called. It returns at
// once, also when no server can be reached. It fails with ErrRunning if the Latch was started
// before, with ErrLatchClosed if it is closed, with framework.ErrClosed if the client is closed,
// and if ctx is nil or has ended. After an error nothing runs, and Close is not needed. Curator:
// start.
func (l *Latch) Start(ctx context.Context) error {
	if err := check.Call(ctx, "leader", "Latch", l.made()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrLatchClosed
	case l.stop != nil:
		return ErrRunning
	}
	ctx, stop := context.WithCancel(ctx)
	if !bridge.Of(l.client).Go(func() { l.run(ctx) }) {
		stop()
		return fmt.Errorf("start %s: %w", l.Path(), framework.ErrClosed)
	}
	l.stop = stop
	return nil
}

// refusedPause is the pause after an error that does not pass by itself.
const refusedPause = 2 * time.Second

// run stands for election until ctx ends or the client is closed.
func (l *Latch) run(ctx context.Context) {
	reason := errGoroutineEnded
	defer func() { l.finish(reason) }()
	reason = l.runUntil(ctx)
}

// errGoroutineEnded means that code of the program, such as metrics, has ended the latch's
// goroutine.
var errGoroutineEnded = errors.New("leader: code of the program ended the goroutine of the latch")

// runUntil stands for election until ctx ends or the client is closed, and returns the reason.
func (l *Latch) runUntil(ctx context.Context) error {
	for ctx.Err() == nil {
		t, err := l.untilLeading(ctx)
		switch {
		case err == nil:
			l.lead(ctx, t)
		case ctx.Err() != nil:
		case errors.Is(err, framework.ErrClosed):
			return err
		default:
			l.refuse(err)
			_ = l.pause(ctx, refusedPause)
		}
	}
	return ctxerr.Of(ctx)
}

// lead waits until the term ends, and until a running Resign has returned.
func (l *Latch) lead(ctx context.Context, t *Term) {
	l.update(func() { l.term = t })
	l.listeners.Tell(Change{Term: t})
	select {
	case <-t.Done():
	case <-ctx.Done():
		l.resign(t)
	}
	l.listeners.Tell(Change{t, t.Err()})
	t.awaitResign(ctx) // so that the next node does not wait behind that of t
}

// resign ends the last term.
func (l *Latch) resign(t *Term) {
	err := t.Resign()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !errors.Is(err, recipes.ErrNotHeld) { // otherwise the program has called Resign, and has its error
		l.left = err
	}
}

// refuse notes an error that does not pass by itself, for Await.
func (l *Latch) refuse(err error) {
	l.log.Warn("the servers refuse the candidate: trying again", zap.Error(err))
	l.update(func() { l.refused, l.times = err, l.times+1 })
}

// finish notes that the Latch is closed because of err.
func (l *Latch) finish(err error) {
	defer close(l.done)
	defer l.listeners.Close(listen.Wait)
	l.update(func() {
		if l.end = ErrLatchClosed; !l.closed {
			l.end = errtext.Because(l.end, err)
		}
		l.closed = true
		l.stop()
	})
}

// update changes the state that Await reads, and wakes it.
func (l *Latch) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Await waits until there is a current term, and returns it. It fails
//
//   - when ctx ends, and if it has ended;
//   - with ErrNotStarted before Start;
//   - with ErrLatchClosed when the Latch is closed, when the context of Start ends, and when the
//     client is closed. In the last two cases the error also matches the reason;
//   - with an error that keeps the candidate from standing for election and does not pass by
//     itself: zk.ErrNoAuth, framework.ErrAuthFailed, ... The Latch tries again every two seconds.
//     So Await can be called again.
//
// Await does not fail because no server can be reached. Curator: await.
func (l *Latch) Await(ctx context.Context) (*Term, error) {
	if err := check.Call(ctx, "leader", "Latch", l.made()); err != nil {
		return nil, err
	}
	since := l.refusals()
	for {
		t, changed, err := l.awaited(since)
		if t != nil || err != nil {
			return t, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("await %s: %w", l.Path(), ctxerr.Of(ctx))
		}
	}
}

func (l *Latch) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// awaited returns the current term, or an error, or otherwise a channel that is closed when they
// may have changed. It ignores the first before refusals.
func (l *Latch) awaited(before int) (*Term, <-chan struct{}, error) {
	l.mu.Lock()
	term, changed, err := l.term, l.changed, l.awaitErrLocked(before)
	l.mu.Unlock()
	if term.valid() && !errors.Is(err, ErrLatchClosed) {
		return term, nil, nil
	}
	return nil, changed, err
}

// awaitErrLocked returns the error for which Await does not wait.
func (l *Latch) awaitErrLocked(before int) error {
	switch {
	case l.end != nil:
		return fmt.Errorf("await %s: %w", l.Path(), l.end)
	case l.closed:
		return fmt.Errorf("await %s: %w", l.Path(), ErrLatchClosed)
	case l.stop == nil:
		return fmt.Errorf("await %s: %w", l.Path(), ErrNotStarted)
	case l.times > before:
		return fmt.Errorf("await %s: %w", l.Path(), l.refused)
	}
	return nil
}

// Term returns the current term, or nil if this candidate does not lead. Curator: hasLeadership.
func (l *Latch) Term() *Term {
	if !l.made() {
		return nil
	}
	l.mu.Lock()
	t := l.term
	l.mu.Unlock()
	if !t.valid() {
		return nil
	}
	return t
}

// Listen calls fn for each term that begins and that ends, in order, until stop is called or the
// Latch is closed. It reports also the end of a term that Close or the end of the context of Start
// ends. After stop no further call begins. Each listener has a goroutine of its own, from the first
// term on. A slow listener does not delay others, but is called when a change is no longer true: ask
// the Term. For a term that has already begun it reports only the end. Listen does nothing if the
// Latch is closed, and panics if fn is nil. Curator: LeaderLatchListener, which is called under the latch's lock.
func (l *Latch) Listen(fn func(Change)) (stop func()) {
	if fn == nil {
		panic("leader: Listen: nil function")
	}
	if !l.made() {
		return func() {}
	}
	return l.listeners.Listen(fn)
}

// Close leaves the queue, or resigns, and waits until no goroutine of the Latch runs any more. It
// waits at most one second for listeners. It returns what Term.Resign returned if this candidate
// led, otherwise nil, and the same when called again. A Latch cannot be started again. Curator:
// close with CloseMode.NOTIFY_LEADER. Its default, SILENT, is to stop the listeners before Close.
func (l *Latch) Close() error {
	if !l.made() {
		return fmt.Errorf("close: %w: leader.Latch", framework.ErrZeroValue)
	}
	if l.close() {
		<-l.done
	} else {
		l.listeners.Close(listen.Wait)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// close notes that the Latch is closed, and reports whether it was started, so that its end must be
// awaited.
func (l *Latch) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.stop == nil {
		return false
	}
	l.stop()
	return true
}
