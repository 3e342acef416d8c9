package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// The kinds of nodes, as in Curator.
var (
	electionRules = queue.Exclusive
	latchRules    = queue.Rules{Name: "latch-", Conflicting: []string{"latch-"}}
)

// candidate stands for election.
type candidate struct {
	lock   *queue.Lock
	ledger *ledger // nil: there is none
	log    *zap.Logger
	last   *Term // whose node may still be there; only for the goroutine that stands
}

func newCandidate(c *framework.Client, recipe, path string, rules queue.Rules, cfg config) (*candidate, error) {
	data, err := cfg.data()
	if err != nil {
		return nil, err
	}
	lock := queue.New(queue.Spec{
		Client:  c,
		Recipe:  recipe,
		Paths:   []string{path},
		Queues:  []*queue.Queue{queue.NewQueue(c, path, rules, data)},
		Standby: true,
	})
	cand := &candidate{lock: lock, log: c.Logger().Named(recipe).With(zap.String("path", path))}
	if cfg.delay > 0 {
		cand.ledger = &ledger{path + ledgerSuffix, cfg.delay, c.Logger().Named(recipe)}
	}
	return cand, nil
}

func (c *candidate) path() string { return c.lock.Paths[0] }

// The pauses between attempts to get in line, while nothing can be done: short enough to lead soon after an outage.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// stand returns when we lead. It goes on through everything that may pass, and fails when ctx ends and with what does not.
func (c *candidate) stand(ctx context.Context) (*Term, error) {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		t, err := c.campaign(ctx)
		switch {
		case err == nil:
			return t, nil
		case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
			return nil, fmt.Errorf("%w: %w", ctxerr.Of(ctx), err)
		case ctx.Err() != nil || !passes(err):
			return nil, err
		}
		c.log.Warn("not in line for the leadership: standing again", zap.Error(err))
		if err := c.pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// campaign is one attempt at it.
func (c *candidate) campaign(ctx context.Context) (*Term, error) {
	if err := c.clear(ctx); err != nil {
		return nil, err
	}
	hold, err := c.lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	t, leads := &Term{hold: hold}, false
	c.last = t
	defer func() {
		if !leads {
			giveBack(t)
		}
	}()
	t.page, err = c.ledger.open(ctx, hold, c.lock.LockKey())
	if leads = err == nil; !leads {
		return nil, cmp.Or(t.Err(), err)
	}
	return t, nil
}

// patience bounds how long a candidate that leaves waits to see its node gone.
const patience = time.Second

// giveBack resigns a term that nobody has had, in the background if it takes long.
func giveBack(t *Term) {
	done := make(chan struct{})
	hosted := bridge.OfSession(t.hold.Session()).Go(func() {
		defer close(done)
		_ = t.Resign()
	})
	if !hosted {
		return // the term is over with its session
	}
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// clear deletes the node of the last term, if that is still to be done: where the servers refuse it, we would stand behind our own node for as
// long as the session lasts, and so would everybody else.
func (c *candidate) clear(ctx context.Context) error {
	session := c.last.remains(ctx)
	if ctx.Err() != nil {
		return ctxerr.Of(ctx) // whoever resigns may not be done
	}
	if session.Err() != nil {
		return nil
	}
	err := session.DeleteGuaranteed(ctx, c.last.Path())
	if err == nil || ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		c.last = nil
		return nil
	}
	return err
}

// passing is what may be over the next time, besides trouble with the connection: parents can be deleted faster than they are made.
var passing = []error{framework.ErrSessionLost, framework.ErrSuspended, recipes.ErrNodeDeleted, zk.ErrNoNode}

// final is what is over for good, whatever else an error says that tells of it.
var final = []error{framework.ErrClosed, framework.ErrAuthFailed}

// passes reports whether there is a point in standing again after err.
func passes(err error) bool {
	is := func(target error) bool { return errors.Is(err, target) }
	return !slices.ContainsFunc(final, is) && (framework.IsTransient(err) || slices.ContainsFunc(passing, is))
}

// pause waits, unless ctx ends first, with which it fails, or the client is closed, which the next attempt finds out.
func (c *candidate) pause(ctx context.Context, d time.Duration) error {
	return pause(ctx, c.lock.Client.Done(), d)
}

func pause(ctx context.Context, over <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	return nil
}
