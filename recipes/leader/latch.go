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
	"github.com/docent-zk/docent/internal/listen"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Latch is a candidate that stands in the background, from Start to Close, and can be asked whether
// it leads. Any number of Latch values, in any number of processes, stand for the same path; each
// is one candidate, and is used once. Safe for concurrent use. Curator: LeaderLatch.
type Latch struct {
	*candidate // nil in the zero value
	client     *framework.Client
	listeners  listen.Listeners[Change]
	done       chan struct{} // closed when nothing of it runs any more

	mu      sync.Mutex
	stop    context.CancelFunc // nil before Start
	closed  bool
	mode    CloseMode
	term    *Term         // the last one
	refused error         // why the servers did not let us stand, the last time
	times   int           // that they did not
	over    error         // why it stands no more
	left    error         // what became of the last term's node
	changed chan struct{} // closed, and replaced, whenever one of term, times and over changes
}

// Change is what the listeners of a Latch hear of.
type Change struct {
	Term *Term
	Err  error // nil: the term has begun; otherwise it has ended, for this reason
}

// NewLatch makes a candidate for path, which is a node of its own: the candidates' nodes are its
// children, and other children are ignored. Missing nodes are created as containers. NewLatch asks
// no server; it refuses a nil or zero client, a path that is none, and "/", and says why.
func NewLatch(c *framework.Client, path string, opts ...Option) (*Latch, error) {
	cfg, err := newConfig(opts)
	if err == nil && cfg.requeue != nil {
		err = errors.New("a Latch always stands again: WithRequeue is for an Election")
	}
	if err == nil && cfg.kazoo {
		err = errors.New("kazoo has no Latch: WithKazooNames is for an Election")
	}
	if err == nil {
		err = queue.CheckPath(c, path)
	}
	if err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	cfg.nameless = true
	cand, err := newCandidate(c, "latch", path, latchRules, cfg)
	if err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	return &Latch{candidate: cand, client: c, mode: cfg.mode, done: make(chan struct{}), changed: make(chan struct{})}, nil
}

func (l *Latch) made() bool { return l != nil && l.candidate != nil }

// Start stands for election in the background until ctx ends, or Close. It returns at once, whether
// there are servers or not: with an error if the Latch was started before (ErrRunning), is over
// (ErrLatchClosed), or the client is closed (framework.ErrClosed), and if ctx is nil or has ended.
// After an error it has started nothing, so Close need not be called for its sake, nor for that of
// listeners. Curator: start.
func (l *Latch) Start(ctx context.Context) error {
	if err := queue.CheckCall(ctx, "leader", "Latch", l.made()); err != nil {
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
		return fmt.Errorf("leader: %w", framework.ErrClosed)
	}
	l.stop = stop
	return nil
}

// refusedPause is the pause after the servers did not let us stand, and have to be asked again.
const refusedPause = 2 * time.Second

// run stands for election until ctx has ended, or the client is closed.
func (l *Latch) run(ctx context.Context) {
	why := errGoroutineEnded
	defer func() { l.finish(why) }()
	why = l.standUntil(ctx)
}

// errGoroutineEnded: code of the program's, such as a logger, has ended the latch's goroutine.
var errGoroutineEnded = errors.New("leader: code of the program ended the goroutine of the latch")

// standUntil returns why the latch does not stand any more.
func (l *Latch) standUntil(ctx context.Context) error {
	for ctx.Err() == nil {
		t, err := l.stand(ctx)
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

// lead lasts as long as the term does, and until whoever resigns is done with it.
func (l *Latch) lead(ctx context.Context, t *Term) {
	l.update(func() { l.term = t })
	l.listeners.Tell(Change{Term: t})
	quiet := false
	select {
	case <-t.Done():
	case <-ctx.Done():
		quiet = l.resign(t)
	}
	if !quiet {
		l.listeners.Tell(Change{t, t.Err()})
	}
	t.settle(ctx) // not to stand behind ourselves
}

// resign ends the last term, and says whether the listeners are not to hear of it.
func (l *Latch) resign(t *Term) (quiet bool) {
	err := t.Resign()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !errors.Is(err, recipes.ErrNotHeld) { // then somebody else has resigned, and knows what became of it
		l.left = err
	}
	return l.mode == Silent
}

func (l *Latch) refuse(err error) {
	l.log.Warn("the servers do not let us stand for election: trying again", zap.Error(err))
	l.update(func() { l.refused, l.times = err, l.times+1 })
}

func (l *Latch) finish(err error) {
	defer close(l.done)
	defer l.listeners.Close(listenersPatience)
	l.update(func() {
		if l.over = ErrLatchClosed; !l.closed {
			l.over = fmt.Errorf("%w: %w", l.over, err)
		}
		l.closed = true
		l.stop()
	})
}

// listenersPatience bounds how long Close waits for listeners that do not return.
const listenersPatience = time.Second

// update changes what Await looks at.
func (l *Latch) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Await returns the present term, as soon as there is one. It fails
//
//   - when ctx ends, and if it has ended;
//   - with ErrNotStarted before Start;
//   - with ErrLatchClosed when the Latch is closed, and, matching the reason too, when the context of Start ends or the client is closed;
//   - with what keeps the candidate from standing and does not pass by itself: zk.ErrNoAuth, framework.ErrAuthFailed, ... The Latch goes on
//     trying, every two seconds, and so does a further Await.
//
// That no server can be reached is no such reason. Curator: await.
func (l *Latch) Await(ctx context.Context) (*Term, error) {
	if err := queue.CheckCall(ctx, "leader", "Latch", l.made()); err != nil {
		return nil, err
	}
	since := l.refusals()
	for {
		t, changed, err := l.look(since)
		if t != nil || err != nil {
			return t, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("leader: await %s: %w", l.path(), ctxerr.Of(ctx))
		}
	}
}

func (l *Latch) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// look is what Await sees: the term, or an error, or when to look again. A refusal counts if it is
// not among those that were there before.
func (l *Latch) look(before int) (*Term, <-chan struct{}, error) {
	l.mu.Lock()
	term, changed, err := l.term, l.changed, l.trouble(before)
	l.mu.Unlock()
	if term.Err() == nil && !errors.Is(err, ErrLatchClosed) {
		return term, nil, nil
	}
	return nil, changed, err
}

// trouble is why there is no point in waiting. It needs mu.
func (l *Latch) trouble(before int) error {
	switch {
	case l.over != nil:
		return fmt.Errorf("await %s: %w", l.path(), l.over)
	case l.closed:
		return fmt.Errorf("await %s: %w", l.path(), ErrLatchClosed)
	case l.stop == nil:
		return fmt.Errorf("await %s: %w", l.path(), ErrNotStarted)
	case l.times > before:
		return fmt.Errorf("leader: %w", l.refused)
	}
	return nil
}

// Term is the present term, nil unless we lead. Curator: hasLeadership.
func (l *Latch) Term() *Term {
	if !l.made() {
		return nil
	}
	l.mu.Lock()
	t := l.term
	l.mu.Unlock()
	if t.Err() != nil {
		return nil
	}
	return t
}

// Listen calls fn for each term that begins and that ends, in order, until stop is called or the
// Latch is over. Each listener has a goroutine of its own, from the first term on: a slow one
// delays nobody, and hears of things when they are no longer true: ask the Term. Of a term that
// began before it hears only the end. It does nothing if fn is nil or the Latch is over. Curator:
// LeaderLatchListener, which is called under the latch's lock.
func (l *Latch) Listen(fn func(Change)) (stop func()) {
	if !l.made() || fn == nil {
		return func() {}
	}
	return l.listeners.Listen(fn)
}

// Close leaves the line, or resigns, and waits until nothing of the Latch runs any more; a listener
// that does not return is waited for one second. It returns what Term.Resign returned if we led,
// otherwise nil, and the same when called again. A Latch cannot be started again. The listeners
// hear of the end of the term as WithCloseMode says. Curator: close.
func (l *Latch) Close() error {
	if !l.made() {
		return fmt.Errorf("leader: %w: Latch", framework.ErrZeroValue)
	}
	l.mu.Lock()
	mode := l.mode
	l.mu.Unlock()
	return l.CloseWith(mode)
}

// CloseWith is Close with another mode. Curator: close(CloseMode).
func (l *Latch) CloseWith(mode CloseMode) error {
	if !l.made() {
		return fmt.Errorf("leader: %w: Latch", framework.ErrZeroValue)
	}
	if err := mode.check(); err != nil {
		return fmt.Errorf("leader: %w", err)
	}
	if l.close(mode) {
		<-l.done
	} else {
		l.listeners.Close(listenersPatience)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// close reports whether the Latch was started, and has to be waited for.
func (l *Latch) close(mode CloseMode) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed, l.mode = true, mode
	}
	if l.stop == nil {
		return false
	}
	l.stop()
	return true
}
