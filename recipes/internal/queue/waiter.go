package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queuelist"
)

// waiter is an acquire's node in one queue, the own node, and what is known of it. It keeps this name
// while it holds. If it has waited, it stays registered (shared.go) until the watch on its node fires.
type waiter struct {
	queue   *Queue
	session *framework.Session
	shared  *sessionState // with the other waiters of the session
	locknode.Node
	path string
	// token is the fencing token: the czxid of the node, or the token of the hold at whose position it
	// is. 0: not known yet.
	token        int64
	pendingList  *queuelist.List               // requested ahead of time, for the next awaitList; nil: none
	ownWatch     *framework.Watch              // on the node itself, once a conflicting node is ahead
	deleted      bool                          // the node does not exist any more
	reachedFront atomic.Bool                   // there was a time at which no conflicting node was ahead
	waitsFor     atomic.Pointer[locknode.Node] // the predecessor when the queue was last listed; nil: none yet
	// positionTaken: a transaction that creates another node at the position of this one was sent, or
	// is about to be.
	positionTaken atomic.Bool
	deleting      atomic.Bool                    // the client has asked for the deletion of the node, or is about to
	hold          atomic.Pointer[ownership.Hold] // of the node; nil: there is none

	// Read with ownWatch. A node that was not read is as it was created, unless it was revoked.
	data    []byte
	version int32
}

// setWaitsFor records the predecessor, for the text of an error.
func (w *waiter) setWaitsFor(m locknode.Node) { w.waitsFor.Store(&m) }

// lastAtFront reports whether no conflicting node is ahead of the next waiter, and no hold of w is
// valid, once the node of w is deleted.
func (w *waiter) lastAtFront() bool {
	return w.reachedFront.Load() && !w.positionTaken.Load() && w.hasLeft()
}

// hasLeft reports whether w holds nothing by its node any more. If another client deletes the node, or
// the servers end the session, the event of that comes before the hold has ended.
func (w *waiter) hasLeft() bool {
	hold := w.hold.Load()
	return w.deleting.Load() || hold != nil && hold.NodesEnded()
}

// readToken reads the token, and checks that the node belongs to the session.
func (w *waiter) readToken(ctx context.Context) error {
	token, err := Confirm(ctx, w.session, w.path)
	if err == nil {
		w.token = token
	}
	return w.recordDeletion(ctx, err)
}

// Confirm returns the czxid of a node of the session. It returns ErrOwnNodeDeleted if the node
// does not exist or belongs to another session.
func Confirm(ctx context.Context, s *framework.Session, node string) (czxid int64, err error) {
	stat, err := RetryInSession(ctx, s, func(ctx context.Context) (*zk.Stat, error) {
		return s.Exists(ctx, node)
	})
	if err != nil {
		return 0, asOwnNodeDeleted(ctx, err)
	}
	return stat.Czxid, checkOwner(s, stat)
}

// checkOwner checks that a node belongs to the session.
func checkOwner(s *framework.Session, stat *zk.Stat) error {
	if stat.EphemeralOwner != s.ID() {
		return fmt.Errorf("%w: it belongs to session %v", enqueue.ErrOwnNodeDeleted, logfield.Hex(stat.EphemeralOwner))
	}
	return nil
}

// asOwnNodeDeleted turns the error for a missing node into ErrOwnNodeDeleted. Once ctx has ended, the
// error may be the cause of ctx, which says nothing about the node.
func asOwnNodeDeleted(ctx context.Context, err error) error {
	if errors.Is(err, zk.ErrNoNode) && ctx.Err() == nil {
		return enqueue.ErrOwnNodeDeleted
	}
	return err
}

func fired(w *framework.Watch) bool { return w.Event() != 0 }

// ownIsWatched reports whether there is a watch on the own node that has not fired.
func (w *waiter) ownIsWatched() bool { return w.ownWatch != nil && !fired(w.ownWatch) }

// watchOwn watches the own node, unless it is watched already.
func (w *waiter) watchOwn(ctx context.Context) error {
	if w.ownIsWatched() {
		return nil
	}
	_, err := RetryInSession(ctx, w.session, func(ctx context.Context) (struct{}, error) {
		var own nodeRead
		own.data, own.stat, own.watch, own.err = w.session.GetW(ctx, w.path)
		return struct{}{}, w.recordOwn(ctx, own)
	})
	return w.recordDeletion(ctx, err)
}

// recordOwn stores what was read of the own node, and registers w for the waiters behind it. The
// Stat holds the fencing token, and the session that the node belongs to.
func (w *waiter) recordOwn(ctx context.Context, own nodeRead) error {
	if own.err != nil {
		return asOwnNodeDeleted(ctx, own.err)
	}
	if err := checkOwner(w.session, own.stat); err != nil {
		return err
	}
	w.ownWatch, w.data, w.version, w.token = own.watch, own.data, own.stat.Version, own.stat.Czxid
	w.register()
	return nil
}

// recordDeletion records that the own node does not exist, if err says so. It returns
// ErrOwnNodeDeleted then, and err otherwise.
func (w *waiter) recordDeletion(ctx context.Context, err error) error {
	err = asOwnNodeDeleted(ctx, err)
	w.deleted = w.deleted || errors.Is(err, enqueue.ErrOwnNodeDeleted) && ctx.Err() == nil
	return err
}
