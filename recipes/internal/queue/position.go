package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// ErrNotOnlyHolder: another node may hold the lock beside the one to upgrade.
var ErrNotOnlyHolder = errors.New("queue: another node may hold the lock")

// Downgrade makes a hold at the position of another hold of the same directory, in one
// transaction that checks that the node of h exists. So no waiter gets the lock when h is
// released. The token is that of h.
func (l *Lock) Downgrade(ctx context.Context, h *ownership.Hold) (hold *ownership.Hold, err error) {
	hold, err = l.takePosition(ctx, h, func(*waiter) error { return nil })
	return hold, l.CallerError(ctx, err)
}

// Upgrade makes a hold at the position of h, as Downgrade does, if h is the only possible holder:
// there is no other node, or the first other node is behind h and of a kind in exclusive. All nodes
// conflict with those kinds, so those behind that node wait for it. Otherwise Upgrade returns
// ErrNotOnlyHolder at once, and h remains valid.
func (l *Lock) Upgrade(ctx context.Context, h *ownership.Hold,
	exclusive ...string) (hold *ownership.Hold, err error) {
	ownNames := []string{path.Base(h.Path())}
	children, _, err := l.Client.Children(ctx, l.Queues[0].dir.Path)
	if err == nil {
		err = l.Queues[0].checkOnlyHolder(children, exclusive, ownNames)
	}
	if err != nil {
		return nil, l.CallerError(ctx, err)
	}
	hold, err = l.takePosition(ctx, h, func(w *waiter) error {
		list, err := w.awaitList(ctx)
		if err != nil {
			return err
		}
		return w.queue.checkOnlyHolder(list.Children(), exclusive, append(ownNames, w.Name))
	})
	return hold, l.CallerError(ctx, err)
}

// takePosition creates a node at the position of h, and makes a hold of it unless check returns an
// error.
func (l *Lock) takePosition(ctx context.Context, h *ownership.Hold,
	check func(*waiter) error) (hold *ownership.Hold, err error) {
	q := l.Queues[0]
	m, ok := locknode.Parse(path.Base(h.Path()), q.rules.Kinds())
	if !ok {
		return nil, fmt.Errorf("%q is not a node of the queue", h.Path())
	}
	session, err := l.Client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if session.ID() != h.Session().ID() {
		return nil, errors.Join(framework.ErrSessionLost, h.Err())
	}
	shared := bridge.Local[sessionState](bridge.OfSession(session))
	shared.notePositionTaken(h.Keys(), m)
	done, err := enqueue.Create{
		Before: []framework.Op{framework.CheckOp(q.Child(m.Name), -1)},
		Nodes: []enqueue.Node{{
			Dir: q.dir.Path, RequestedName: q.rules.Kind + positionDigits(m), Data: q.node.Data,
			Options: []framework.CreateOption{framework.Ephemeral(), framework.Protected()},
		}},
	}.Do(ctx, session)
	var refused *enqueue.RefusedError
	if errors.As(err, &refused) {
		if _, ended := h.Guard(ctx); ended != nil { // h notices that it has ended
			return nil, ended
		}
	}
	if err != nil {
		return nil, err
	}
	w := &waiter{queue: q, session: session, shared: shared, path: done.Nodes[0], token: h.Token()}
	if w.Node, ok = locknode.Parse(path.Base(w.path), q.ownKinds); !ok {
		enqueue.DeleteNodes(ctx, session, done.Nodes...)
		return nil, q.unnumbered(w.path)
	}
	defer func() {
		if hold == nil || err != nil {
			deleteAll(ctx, []*waiter{w})
		}
	}()
	if err := check(w); err != nil {
		return nil, err
	}
	return l.grant(ctx, []*waiter{w}, false)
}

// positionDigits returns the sequence number for the name of a node at the position of m. At the
// end of the counter, where numbers do not show the order, that is the last number below: a holder
// there is ahead of all waiters, and any number below the end is ahead of all waiters there.
func positionDigits(m locknode.Node) string {
	if m.AtCounterEnd() {
		return fmt.Sprintf("%010d", math.MaxInt32-1)
	}
	return fmt.Sprintf("%010d", m.Seq)
}

// checkOnlyHolder returns ErrNotOnlyHolder unless the first node among children, except ownNames, is behind
// ownNames[0] and of a kind in exclusive, or there is none.
func (q *Queue) checkOnlyHolder(children, exclusive, ownNames []string) error {
	isOwn := func(m locknode.Node) bool { return slices.Contains(ownNames, m.Name) }
	nodes := slices.DeleteFunc(locknode.Sorted(children, q.rules.Kinds()), isOwn)
	if len(nodes) == 0 {
		return nil
	}
	first := nodes[0]
	_, isExclusive := locknode.Parse(first.Name, exclusive)
	own, _ := locknode.Parse(ownNames[0], q.rules.Kinds())
	// Two nodes with one number, or one at the end of the counter, do not show which is behind the other.
	inOrder := len(nodes) == 1 || nodes[1].Seq != first.Seq && !first.AtCounterEnd()
	if isExclusive && inOrder && (first.AtCounterEnd() || locknode.Before(own.Seq, first.Seq)) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotOnlyHolder, first.Name)
}
