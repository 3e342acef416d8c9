package leader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/pause"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/recipes/internal/report"
)

// The kinds of nodes, as in Curator.
var (
	electionRules = queue.Exclusive
	latchRules    = queue.Rules{Kind: "latch-", Conflicting: []string{"latch-"}}
)

// candidate waits in the queue of an election until it leads.
type candidate struct {
	lock    *queue.Lock
	reports *report.Reporter
	record  *termRecord // nil: there is none
	log     *zap.Logger
	last    *Term // the last term; its node may still exist. Only for the goroutine of untilLeading
}

func newCandidate(c *framework.Client, recipe, path string, rules queue.Rules, cfg config) (*candidate, error) {
	data, err := cfg.data()
	if err != nil {
		return nil, err
	}
	lock := queue.Single(c, recipe, path, rules, data)
	cand := &candidate{
		lock:    lock,
		reports: report.New(lock).Standby(),
		log:     c.Logger().Named(recipe).With(zap.String("path", path)),
	}
	if cfg.delay > 0 {
		cand.record = &termRecord{path + recordSuffix, cfg.delay, c.Logger().Named(recipe)}
	}
	return cand, nil
}

// Path returns the path of the election, and "" for the zero value.
func (c *candidate) Path() string {
	if c == nil {
		return ""
	}
	return c.lock.Paths[0]
}

// untilLeading waits until the candidate leads. It repeats attempts that fail with an error that
// may pass by itself. It fails when ctx ends, and with any other error.
func (c *candidate) untilLeading(ctx context.Context) (*Term, error) {
	for failures := 0; ; failures++ {
		t, err := c.attempt(ctx)
		switch {
		case err == nil:
			return t, nil
		case ctx.Err() != nil || !isTransient(err):
			return nil, ctxerr.With(ctx, err)
		}
		c.log.Warn("attempt to lead failed: enqueueing again", zap.Error(err))
		if err := c.pause(ctx, pause.After(failures)); err != nil {
			return nil, err
		}
	}
}

// attempt is one attempt to lead. It deletes the node of the last term first.
func (c *candidate) attempt(ctx context.Context) (*Term, error) {
	if err := c.deleteLastNode(ctx); err != nil {
		return nil, err
	}
	hold, err := c.reports.Acquire(ctx, c.lock)
	if err != nil {
		return nil, err
	}
	t, leads := &Term{hold: hold}, false
	c.last = t
	defer func() {
		if !leads {
			resignUnused(t)
		}
	}()
	if c.record != nil {
		t.record, err = c.record.open(ctx, hold, c.lock.LockKey())
	}
	if leads = err == nil; !leads {
		return nil, cmp.Or(t.Err(), err)
	}
	return t, nil
}

// leaveTimeout bounds how long a candidate that leaves the queue waits until its node is deleted.
const leaveTimeout = time.Second

// resignUnused resigns a term that was not returned to the program. If that takes long it continues
// in the background.
func resignUnused(t *Term) {
	done := make(chan struct{})
	started := bridge.OfSession(t.hold.Session()).Go(func() {
		defer close(done)
		_ = t.Resign()
	})
	if !started {
		return // the term has ended with its session
	}
	select {
	case <-done:
	case <-time.After(leaveTimeout):
	}
}

// deleteLastNode deletes the node of the last term, if it may still exist. If the servers refuse
// the deletion, a new node would wait behind the old one as long as the session lasts, and so would
// all other candidates.
func (c *candidate) deleteLastNode(ctx context.Context) error {
	if c.last == nil {
		return nil
	}
	session := c.last.sessionOfNode(ctx)
	if ctx.Err() != nil {
		return ctxerr.Of(ctx) // Resign may not have returned
	}
	if session == nil || session.Err() != nil {
		return nil
	}
	err := session.DeleteGuaranteed(ctx, c.last.Path())
	if err == nil || ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		c.last = nil
		return nil
	}
	return err
}

// transient are the errors that may pass by themselves, besides those of the connection. ErrNoNode
// is one of them: parents can be deleted right after they are created.
var transient = []error{framework.ErrSessionLost, framework.ErrSuspended, recipes.ErrNodeDeleted, zk.ErrNoNode}

// final are the errors that do not pass, whatever other errors are joined with them.
var final = []error{framework.ErrClosed, framework.ErrAuthFailed}

// isTransient reports whether another attempt may succeed after err.
func isTransient(err error) bool {
	is := func(target error) bool { return errors.Is(err, target) }
	return !slices.ContainsFunc(final, is) && (framework.IsTransient(err) || slices.ContainsFunc(transient, is))
}

// pause waits for d. It fails when ctx ends. It returns nil early when the client is closed: the
// next attempt fails then.
func (c *candidate) pause(ctx context.Context, d time.Duration) error {
	return pause.For(ctx, c.lock.Client.Done(), d)
}
