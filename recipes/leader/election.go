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
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/retry"
)

// Election is a candidate that leads by running a function. Each Election value is one candidate
// for its path, in any number of processes. Safe for concurrent use. Curator: LeaderSelector.
type Election struct {
	*candidate // nil in the zero value
	requeue    func(error) bool
	warnAfter  time.Duration // the interval of warnings of a function that does not return; 0: none

	mu      sync.Mutex
	running bool
	call    *leadCall // nil unless the function runs
}

// leadCall is a call of the function.
type leadCall struct {
	term      *Term
	interrupt context.CancelCauseFunc
}

// New returns a candidate for path, which must be a node of its own: the candidates' nodes are its
// children, and other children are ignored. Run creates missing nodes as containers. New makes no
// request. It returns an error for a nil or unusable client, an invalid path, and "/".
//
// The election is a mutex (package mutex) on the same path, and its holder leads. Acquiring that
// mutex with the context of the function re-enters: the leader's node is deleted only when that
// hold is released, too.
func New(c *framework.Client, path string, opts ...Option) (*Election, error) {
	cfg, err := newConfig(opts)
	if err == nil {
		err = check.Path(c, path)
	}
	if err != nil {
		return nil, fmt.Errorf("new election: %w", err)
	}
	rules := electionRules
	if cfg.kazoo {
		rules = rules.WithKind(queue.KazooLock)
	}
	cand, err := newCandidate(c, "election", path, rules, cfg)
	if err != nil {
		return nil, fmt.Errorf("new election: %w", err)
	}
	return &Election{candidate: cand, requeue: cfg.requeue, warnAfter: bridge.Of(c).WaitWarning()}, nil
}

// Run stands for election until ctx ends, and calls lead each time that it is elected. When lead
// returns, Run resigns and stands for election again at the end of the queue (see WithRequeue): at
// once after nil or the loss of the leadership, after a growing pause of up to ten seconds if lead
// keeps failing within a minute. Run logs the errors of lead, unless it returns them. If there is no
// other candidate, a function that returns nil at once leads again at once, thousands of times a
// second. So lead should return only when its context has ended.
//
// The context of lead ends with ctx, with the term and by Interrupt. lead should return soon then.
// The cause of the context is the reason. A timer ends the context, so in a process that was paused
// Term.Err reports the loss of the leadership first: check both before each action that cannot be
// fenced.
//
// Calls of lead never overlap. After a loss of the leadership Run stands for election again only
// when lead has returned, but another candidate does not wait for that. Meanwhile a warning is
// logged at the interval of framework.WithWaitWarning. If lead panics, or ends the goroutine, Run
// resigns, and the panic reaches the caller of Run.
//
// When Run returns, lead does not run, and the candidate's node is deleted, or is being deleted in
// the background. Run returns
//
//   - when ctx ends: its error, joined with that of lead if it is a different one. A candidate in
//     the queue returns within a second, a leader when lead and Term.Resign have returned;
//   - with framework.ErrClosed when the client is closed;
//   - with errors that do not pass by themselves: zk.ErrNoAuth, framework.ErrAuthFailed,
//     framework.ErrTooLarge, ...;
//   - what lead returned, also nil, if WithRequeue says so;
//   - with ErrRunning if another Run of this Election runs, and with an error if ctx or lead is
//     nil.
//
// Run does not return because no server can be reached, at the beginning or later. Curator:
// LeaderSelector.start and LeaderSelectorListener.takeLeadership. The end of ctx is close. A
// LeaderSelectorListenerAdapter cancels the leadership whenever the connection is suspended; a
// client with framework.WithLossPolicy(framework.Strict) does the same.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if err := check.Call(ctx, "leader", "Election", e.candidate != nil); err != nil {
		return err
	}
	if lead == nil {
		return errors.New("leader: nil function")
	}
	if !e.begin() {
		return ErrRunning
	}
	defer e.end()
	ctx = retry.Ungoverned(ctx) // a retry.Do of the caller does not govern what lead does
	for failures := 0; ; {
		t, err := e.untilLeading(ctx)
		if err != nil {
			return fmt.Errorf("run %s: %w", e.Path(), err)
		}
		begun := time.Now()
		led, end, err := e.runLead(ctx, t, lead)
		if time.Since(begun) > longTerm {
			failures = 0
		}
		switch {
		case ctx.Err() != nil:
			return e.endError(ctx, err)
		case !led:
			continue
		case e.requeue != nil && !e.requeue(err):
			return err
		case end != failedInTerm:
			failures = 0
			e.logEnd(end, err)
			continue
		}
		wait := min(firstFailure<<failures, lastFailure)
		failures = min(failures+1, maxDoublings)
		e.log.Warn("leader function failed: enqueueing again", zap.Error(err), zap.Duration("pause", wait))
		if err := e.pause(ctx, wait); err != nil {
			return fmt.Errorf("run %s: %w", e.Path(), err)
		}
	}
}

// logEnd logs what a call of lead returned that did not fail in its term.
func (e *Election) logEnd(end leadEnd, err error) {
	switch {
	case end == failedAfterTerm:
		e.log.Info("leader function failed after its term: enqueueing again", zap.Error(err))
	case err != nil:
		e.log.Info("leader function ended with its term: enqueueing again", zap.Error(err))
	}
}

// The pauses after calls of lead that failed.
const (
	firstFailure = 100 * time.Millisecond
	lastFailure  = 10 * time.Second
	maxDoublings = 10          // more than lastFailure needs
	longTerm     = time.Minute // a failure after it counts as the first
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

// endError returns the error of a Run with a context that has ended, after lead returned err.
func (e *Election) endError(ctx context.Context, err error) error {
	reason := ctxerr.Of(ctx)
	if err == nil || errors.Is(reason, err) { // err adds nothing. One that matches reason may add something
		return fmt.Errorf("run %s: %w", e.Path(), reason)
	}
	return fmt.Errorf("run %s: %w: %w", e.Path(), reason, err)
}

// leadEnd says how a call of lead ended.
type leadEnd int

const (
	ended           leadEnd = iota // without an error, or with that of its context
	failedInTerm                   // for a reason of its own
	failedAfterTerm                // with another error after its context had ended
)

// runLead calls lead, unless the term has ended already, and resigns when lead has returned or
// panicked. led reports whether it called lead.
func (e *Election) runLead(
	ctx context.Context, t *Term, lead func(context.Context, *Term) error,
) (led bool, end leadEnd, err error) {
	ctx, interrupt := context.WithCancelCause(t.Context(ctx))
	defer interrupt(nil)
	e.setCall(&leadCall{t, interrupt})
	defer e.setCall(nil)
	// The context of lead reports a loss. A failed deletion continues in the background.
	defer func() { _ = t.Resign() }()
	defer e.watch(ctx)()
	if t.Err() != nil || ctx.Err() != nil {
		return false, ended, nil
	}
	err = lead(ctx, t)
	return true, endOf(ctx, err), err
}

// endOf says how lead, which returned err, ended. A function that has called Resign may go on and
// fail, too.
func endOf(ctx context.Context, err error) leadEnd {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return ended
	case cause == nil:
		return failedInTerm
	case errors.Is(err, ctx.Err()) || errors.Is(err, cause):
		return ended
	case errors.Is(cause, recipes.ErrNotHeld):
		return failedInTerm
	}
	return failedAfterTerm
}

func (e *Election) setCall(c *leadCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.call = c
}

// watch starts to log warnings when ctx has ended and lead has not returned. stop ends them.
func (e *Election) watch(ctx context.Context) (stop func()) {
	if e.warnAfter == 0 {
		return func() {}
	}
	returned := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { e.warnUntil(ctx, returned) })
	return func() { close(returned); running.Wait() }
}

// warnUntil waits until ctx ends, and then logs a warning at each interval until returned is
// closed.
func (e *Election) warnUntil(ctx context.Context, returned <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-returned:
		return
	}
	timer := time.NewTicker(e.warnAfter)
	defer timer.Stop()
	for ended := time.Now(); ; {
		select {
		case <-timer.C:
			e.log.Warn("leader function still running after its term",
				zap.Duration("since_end", time.Since(ended).Round(time.Millisecond)),
				zap.NamedError("cause", context.Cause(ctx)))
		case <-returned:
			return
		}
	}
}

// Term returns the current term, or nil if this candidate does not lead. Curator:
// LeaderSelector.hasLeadership.
func (e *Election) Term() *Term {
	if c := e.current(); c != nil {
		return c.term
	}
	return nil
}

// Interrupt ends the context of the function that leads, with ErrInterrupted as its cause. It
// reports whether this candidate leads. The term lasts until the function has returned. After
// Term.Resign, in contrast, another candidate can lead before that. Curator: interruptLeadership.
func (e *Election) Interrupt() bool {
	c := e.current()
	if c != nil {
		c.interrupt(ErrInterrupted)
	}
	return c != nil
}

// current returns the call of the function, if its term is valid.
func (e *Election) current() *leadCall {
	e.mu.Lock()
	c := e.call
	e.mu.Unlock()
	if c == nil || c.term.Err() != nil {
		return nil
	}
	return c
}
