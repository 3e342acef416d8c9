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
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/retry"
)

// Election is a candidate that leads by running a function. Any number of Election values, in any number of processes, stand for the same
// path; each is one candidate. Safe for concurrent use. Curator: LeaderSelector.
type Election struct {
	*candidate // nil in the zero value
	again      func(error) bool
	patience   time.Duration // until we warn of a leader that does not go; 0: never

	mu      sync.Mutex
	running bool
	reign   *reign // nil unless leading
}

// reign is the time in which the function runs.
type reign struct {
	term      *Term
	interrupt context.CancelCauseFunc
}

// New makes a candidate for path, which is a node of its own: the candidates' nodes are its children, and other children are ignored. It is a
// mutex (package mutex) on the same path, whose holder leads; acquired under the context of lead, that mutex is another level of the
// leadership, whose node stays until it is released, too. Missing nodes are created as containers by Run. New asks no server;
// it refuses a nil or zero client, a path that is none, and "/", and says why.
func New(c *framework.Client, path string, opts ...Option) (*Election, error) {
	cfg, err := newConfig(opts)
	if err == nil && cfg.mode != Silent {
		err = fmt.Errorf("an Election has no listeners to close: WithCloseMode(%v) is for a Latch", cfg.mode)
	}
	if err == nil {
		err = queue.CheckPath(c, path)
	}
	if err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	rules := electionRules
	if cfg.kazoo {
		rules = rules.WithName(queue.KazooLock)
	}
	cand, err := newCandidate(c, "election", path, rules, cfg)
	if err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	return &Election{candidate: cand, again: cfg.requeue, patience: bridge.Of(c).WaitWarning()}, nil
}

// Run stands for election until ctx ends, and calls lead each time that we are elected. The context of lead ends with ctx, with the term and by
// Interrupt: lead should return soon then, its cause says why. It ends by a timer, so a process that was paused learns of the loss of
// the leadership from Term.Err first: ask both before each deed that cannot be fenced. When lead returns, we step down, and stand
// again at the end of the line (see WithRequeue): at once after nil or the loss of the leadership, after a growing pause of up to ten
// seconds if lead keeps failing within a minute. The errors that lead returns are logged, unless Run returns them.
//
// Calls of lead never overlap: after the loss of the leadership we stand again only when lead has returned, and a warning is
// logged each time that this takes as long as framework.WithWaitWarning says. Another candidate does not wait for that. If lead
// panics, or ends the goroutine, we step down, and the panic is the caller's.
//
// Run returns, with no call of lead running and our node deleted, or about to be in the background:
//
//   - when ctx ends: its error, with that of lead if it is another one. In line this takes a second at most, and for a leader as long as
//     lead and Term.Resign do;
//   - with framework.ErrClosed when the client is closed;
//   - with what does not pass by itself: zk.ErrNoAuth, framework.ErrAuthFailed, framework.ErrTooLarge, ...;
//   - if the option says so, with what lead returned, nil too;
//   - with ErrRunning if another Run of this Election runs, and if ctx or lead is nil.
//
// That no server can be reached, at the beginning or later, is no reason to return. Curator: LeaderSelector.start and
// LeaderSelectorListener.takeLeadership; close is to end ctx. A LeaderSelectorListenerAdapter, which cancels the leadership whenever the
// connection is suspended, is a client with framework.WithLossPolicy(framework.Strict).
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if err := queue.CheckCall(ctx, "leader", "Election", e != nil && e.candidate != nil); err != nil {
		return err
	}
	if lead == nil {
		return errors.New("leader: nil function")
	}
	if !e.begin() {
		return ErrRunning
	}
	defer e.end()
	ctx = retry.Ungoverned(ctx) // what lead does is no part of somebody's loop of attempts
	for failures := 0; ; {
		t, err := e.stand(ctx)
		if err != nil {
			return fmt.Errorf("leader: %w", err)
		}
		begun := time.Now()
		led, failed, err := e.govern(ctx, t, lead)
		if time.Since(begun) > longTerm {
			failures = 0
		}
		switch {
		case ctx.Err() != nil:
			return ended(ctx, err)
		case !led:
			continue
		case e.again != nil && !e.again(err):
			return err
		case !failed:
			if failures = 0; err != nil {
				e.log.Info("the leader returned after its time: standing again", zap.Error(err))
			}
			continue
		}
		wait := min(firstFailure<<failures, lastFailure)
		failures = min(failures+1, maxDoublings)
		e.log.Warn("the leader failed: standing again", zap.Error(err), zap.Duration("pause", wait))
		if err := e.pause(ctx, wait); err != nil {
			return fmt.Errorf("leader: %w", err)
		}
	}
}

// The pauses after calls of lead that failed.
const (
	firstFailure = 100 * time.Millisecond
	lastFailure  = 10 * time.Second
	maxDoublings = 10          // enough to get there
	longTerm     = time.Minute // after which a failure is the first
)

func (e *Election) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return false
	}
	e.running = true
	return true
}

func (e *Election) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
}

// ended is the error of a Run whose context has ended, while lead returned err.
func ended(ctx context.Context, err error) error {
	over := ctxerr.Of(ctx)
	if err == nil || errors.Is(over, err) { // it says nothing more; one that matches over may
		return fmt.Errorf("leader: %w", over)
	}
	return fmt.Errorf("leader: %w: %w", over, err)
}

// govern calls lead, if there is time for it, and steps down when it has returned, or panicked. Failed means that lead returned err for a
// reason of its own.
func (e *Election) govern(ctx context.Context, t *Term, lead func(context.Context, *Term) error) (led, failed bool, err error) {
	ctx, interrupt := context.WithCancelCause(t.Context(ctx))
	defer interrupt(nil)
	e.reigns(&reign{t, interrupt})
	defer e.reigns(nil)
	defer func() { _ = t.Resign() }() // lead knows of a loss by its context, and what cannot be deleted at once is deleted in the background
	defer e.watch(ctx)()
	if t.Err() != nil || ctx.Err() != nil {
		return false, false, nil
	}
	err = lead(ctx, t)
	return true, failure(ctx, err), err
}

// failure reports whether lead returned err for a reason of its own, and not because its context had ended. One that has resigned may go on
// and fail, too.
func failure(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return false
	case errors.Is(cause, recipes.ErrNotHeld):
		return !errors.Is(err, ctx.Err()) && !errors.Is(err, cause)
	}
	return cause == nil
}

func (e *Election) reigns(r *reign) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reign = r
}

// watch warns of a leader that does not go when its time is over, until stop is called.
func (e *Election) watch(ctx context.Context) (stop func()) {
	if e.patience == 0 {
		return func() {}
	}
	gone := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { e.waitFor(ctx, gone) })
	return func() { close(gone); watching.Wait() }
}

func (e *Election) waitFor(ctx context.Context, gone <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-gone:
		return
	}
	timer := time.NewTicker(e.patience)
	defer timer.Stop()
	for over := time.Now(); ; {
		select {
		case <-timer.C:
			e.log.Warn("the leader still works although its time is over", zap.Duration("over", time.Since(over).Round(time.Millisecond)),
				zap.NamedError("cause", context.Cause(ctx)))
		case <-gone:
			return
		}
	}
}

// Term is the present term, nil unless we lead. Curator: LeaderSelector.hasLeadership.
func (e *Election) Term() *Term {
	if r := e.present(); r != nil {
		return r.term
	}
	return nil
}

// Interrupt ends the context of the function that leads, with ErrInterrupted as its cause, and reports whether we lead. The term lasts until
// that function has returned: unlike with Term.Resign nobody else leads before. Curator: interruptLeadership.
func (e *Election) Interrupt() bool {
	r := e.present()
	if r != nil {
		r.interrupt(ErrInterrupted)
	}
	return r != nil
}

// present is the reign, if its term is valid.
func (e *Election) present() *reign {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	r := e.reign
	e.mu.Unlock()
	if r == nil || r.term.Err() != nil {
		return nil
	}
	return r
}
