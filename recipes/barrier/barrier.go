package barrier

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/retry"
)

// Barrier is a gate that one program closes and opens, and others wait for. It is one persistent
// node: while it exists, the barrier is closed. A Barrier has no state of its own: all values for a
// path are the same barrier. Safe for concurrent use. Curator: DistributedBarrier, which has the
// same node. So has kazoo's Barrier.
type Barrier struct {
	place
	data []byte
}

// New returns the barrier at path. It makes no request. It returns an error if c is nil or a zero
// value, for an invalid path and for an invalid option. Curator: DistributedBarrier.
func New(c *framework.Client, path string, opts ...Option) (*Barrier, error) {
	at, err := newPlace(c, path)
	if err != nil {
		return nil, fmt.Errorf("new barrier: %w", err)
	}
	data, err := newData(opts)
	if err != nil {
		return nil, fmt.Errorf("new barrier %s: %w", path, err)
	}
	return &Barrier{at, data}, nil
}

// Set closes the barrier. It returns nil if the barrier was closed already. Missing parents become
// containers. Set fails by the client's retry policy, when ctx ends, with framework.ErrClosed, and
// with what the servers refuse. After such an error the barrier may be closed, unless
// framework.OutcomeOf says that nothing was applied.
//
// A request whose answer was lost is repeated. So a Set can close a barrier that another program has
// opened since, and a Remove the reverse. Let one program close and open a barrier. Even then, after an
// answer was lost with a connection, the first request can still be applied after the next call, if a
// server has kept it until the session is connected to that server again. Where that matters, use a
// path for each use of the barrier, or a CountDown, which counts once. Curator: setBarrier.
func (b *Barrier) Set(ctx context.Context) error {
	if err := b.begin(ctx, "Barrier"); err != nil {
		return fmt.Errorf("set barrier %s: %w", b.path, err)
	}
	return b.repeat(ctx, "set barrier", zk.ErrNodeExists, func(ctx context.Context) error {
		_, err := b.client.Create(ctx, b.path, b.data, framework.Parents())
		return err
	})
}

// Remove opens the barrier: all waits end. It returns nil if the barrier was open already. It fails
// as Set does. Curator: removeBarrier.
func (b *Barrier) Remove(ctx context.Context) error {
	if err := b.begin(ctx, "Barrier"); err != nil {
		return fmt.Errorf("remove barrier %s: %w", b.path, err)
	}
	return b.repeat(ctx, "remove barrier", zk.ErrNoNode, func(ctx context.Context) error {
		return b.client.Delete(ctx, b.path, -1)
	})
}

// repeat calls request, also after a lost answer, by the client's policy. The answer there means
// that there is nothing to do. If no attempt succeeds, the outcome is unknown if that of any attempt
// is.
func (b *Barrier) repeat(ctx context.Context, op string, there error, request func(context.Context) error) error {
	outcome := framework.NotApplied
	policy := bridge.Of(b.client).RetryPolicy()
	err := retry.Do(ctx, policy, framework.IsTransient, func(ctx context.Context) error {
		err := request(ctx)
		if framework.OutcomeOf(err) == framework.Unknown {
			outcome = framework.Unknown
		}
		return err
	})
	if err == nil || ctxerr.Answered(ctx, err, there) {
		return nil
	}
	return &framework.Error{Op: op, Path: b.path, Outcome: outcome, Err: b.cause(ctx, err)}
}

// Wait waits until the barrier is open. It returns nil at once if the barrier is not set. A barrier
// whose Set has returned before Wait is called, in any process, is waited for. If the barrier is
// opened and closed again, Wait returns nil, however late it notices.
//
// Wait lasts through lost connections and lost sessions. It fails when ctx ends, with
// framework.ErrClosed when the client is closed, with framework.ErrAuthFailed, and with what the
// servers refuse. To wait for a limited time use context.WithTimeout. It costs a sync and a read,
// and a read with a watch if the barrier is closed. Curator: waitOnBarrier.
func (b *Barrier) Wait(ctx context.Context) error {
	if err := b.begin(ctx, "Barrier"); err != nil {
		return fmt.Errorf("wait for barrier %s: %w", b.path, err)
	}
	var seen closure
	for {
		watch, err := b.look(ctx, &seen)
		switch {
		case err == nil && watch == nil:
			return nil
		case err == nil:
			err = b.await(ctx, watch, nil)
		}
		if err != nil && !b.outlasts(ctx, err) {
			return b.failed(ctx, "wait for barrier", err)
		}
	}
}

// closure is what a waiter has seen.
type closure struct {
	synced bool
	czxid  int64 // of the node; 0: it was not seen yet
}

// look returns a watch that fires when the barrier may be open, or nil if it is or was open. The
// first look begins with a sync, because the client's server may not know yet that the barrier is
// set.
func (b *Barrier) look(ctx context.Context, seen *closure) (*framework.Watch, error) {
	if !seen.synced {
		if err := b.client.Sync(ctx, b.path); err != nil {
			return nil, err
		}
		seen.synced = true
	}
	stat, err := b.client.Exists(ctx, b.path) // the watch of an open barrier would stay
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if seen.czxid == 0 {
		seen.czxid = stat.Czxid
	}
	if stat.Czxid != seen.czxid {
		return nil, nil
	}
	stat, watch, err := b.client.ExistsW(ctx, b.path)
	if err != nil || stat == nil || stat.Czxid != seen.czxid {
		return nil, err
	}
	return watch, nil
}
