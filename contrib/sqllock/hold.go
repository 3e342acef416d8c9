package sqllock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/recipes"
)

// grant is a request that was applied. It is renewed until the hold ends.
type grant struct {
	c       *Client
	kind    kind
	table   table
	request request
	until   atomic.Pointer[time.Time]
	stop    func()
	stopped chan struct{} // closed when the hold is released, or lost
	ended   chan struct{} // closed when release has returned
	pending bool          // release has failed; set before
	doubt   atomic.Bool   // a release without an answer may have been applied
	lost    chan struct{} // closed when the row is no longer of this hold
	reason  error         // why; set before
}

// hold makes the hold of an attempt that has won. Its caller has begun an operation.
func (c *Client) hold(a *attempt) (*recipes.Hold, error) {
	q, token := a.request, a.table.tokenOf(a.request)
	g := &grant{
		c: c, kind: a.kind, table: a.table, request: q,
		stopped: make(chan struct{}), ended: make(chan struct{}), lost: make(chan struct{}),
	}
	g.stop = sync.OnceFunc(func() { close(g.stopped) })
	g.until.Store(&a.until)
	c.busy.Go(g.keep)
	return recipes.HoldForeign(recipes.ForeignHold{
		Name: q.name, Token: token,
		Until:   func() time.Time { return *g.until.Load() },
		Lost:    g.lost,
		Reason:  func() error { return g.reason },
		Release: g.release, Within: min(c.lease, 10*time.Second),
		Go: c.background, Closed: c.ctx.Done(), Logger: c.logger, Metrics: c.metrics,
	})
}

// keep renews the lease, and then waits for the release, which is made after a loss, too. When the client
// is closed it releases the lock.
func (g *grant) keep() {
	g.renewals()
	select {
	case <-g.stopped:
		<-g.ended
		if g.pending {
			g.last()
		}
	case <-g.c.ctx.Done():
		g.last()
	}
}

// renewals renews the lease, until the hold ends, the row is no longer of this hold, or the client is closed.
func (g *grant) renewals() {
	due, limit := g.until.Load().Add(g.c.margin()-g.c.lease+g.c.lease/3), g.kind.limit
	for {
		select {
		case <-g.stopped:
			return
		case <-g.c.ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		sent := time.Now()
		switch left, err := g.renew(limit); {
		case err != nil && g.c.ctx.Err() == nil:
			g.log("a lease was not renewed", err)
			due, limit = time.Now().Add(jitter(g.c.limit()/10)), g.c.after(limit, sent, *g.until.Load())
		case left > 0:
			until := g.c.deadline(sent, left)
			g.until.Store(&until)
			due, limit = sent.Add(g.c.lease/3), g.kind.limit
		case err == nil:
			g.reason = g.why()
			close(g.lost)
			return
		}
	}
}

// last releases the lock when the client is closed, or when Hold.Release has given up.
func (g *grant) last() {
	if err := g.c.cleanup(g.kind.limit, g.delete); err != nil && !errors.Is(err, recipes.ErrForeignLost) {
		g.log("a lock could not be released: it ends with its lease", err)
	}
}

func (g *grant) log(message string, err error) {
	g.c.logger.Named("sqllock").Warn(message,
		zap.String("name", g.request.name), zap.Int64("token", g.request.next), zap.Error(err))
}

func (g *grant) renew(limit time.Duration) (left time.Duration, err error) {
	err = within(g.c.ctx, limit, func(ctx context.Context) (err error) {
		left, err = g.table.renew(ctx, g.request)
		return err
	})
	return left, err
}

// why returns why the lease could not be renewed. The hold ends only after it, so it takes little time.
func (g *grant) why() error {
	limit := min(g.c.margin(), time.Second)
	return within(g.c.ctx, limit, func(ctx context.Context) error { return g.table.why(ctx, g.request) })
}

// release ends the lease in the database, unless it has ended. It is called once.
func (g *grant) release(ctx context.Context) error {
	defer close(g.ended)
	g.stop()
	err := g.c.retry(ctx, g.kind.limit, g.delete)
	g.pending = err != nil && !errors.Is(err, recipes.ErrForeignLost)
	return err
}

func (g *grant) delete(ctx context.Context) error {
	err := g.table.release(ctx, g.request)
	switch {
	case errors.Is(err, recipes.ErrForeignLost) && g.doubt.Load(): // others have the lock since
	case err != nil:
		g.doubt.Store(true)
		return err
	}
	g.kind.gates.wake(g.request.name)
	return nil
}
