package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// ErrCrowded: somebody else has what we would have to have alone.
var ErrNotAlone = errors.New("queue: there are others in front")

// Beside makes a hold at the place of another hold of the same directory, in one transaction, as long as that one is valid: nobody who
// waits comes between. The token is that of the other.
func (l *Lock) Downgrade(ctx context.Context, h *ownership.Hold) (hold *ownership.Hold, err error) {
	defer l.recordEnd(time.Now(), 0, &hold, &err)
	hold, err = l.acquireAt(ctx, h, func(*waiter) error { return nil })
	return hold, l.acquireError(ctx, err)
}

// BesideAlone is Beside if nobody but h is in front: no node that does not have one of those that block everybody ahead. Otherwise it
// fails with ErrCrowded, at once and without harm to h.
func (l *Lock) Upgrade(ctx context.Context, h *ownership.Hold, barriers ...string) (hold *ownership.Hold, err error) {
	defer l.recordEnd(time.Now(), 0, &hold, &err)
	own := []string{path.Base(h.Path())}
	children, _, err := l.Client.Children(ctx, l.Queues[0].path)
	if err == nil {
		err = l.Queues[0].checkAlone(children, barriers, own)
	}
	if err != nil {
		return nil, l.acquireError(ctx, err)
	}
	hold, err = l.acquireAt(ctx, h, func(w *waiter) error {
		list, err := w.awaitList(ctx)
		if err != nil {
			return err
		}
		return w.queue.checkAlone(list.children, barriers, append(own, w.name))
	})
	return hold, l.acquireError(ctx, err)
}

// beside puts a node at the place of h, and makes a hold of it if settled has no objection.
func (l *Lock) acquireAt(ctx context.Context, h *ownership.Hold, settled func(*waiter) error) (*ownership.Hold, error) {
	q := l.Queues[0]
	m, ok := parseName(path.Base(h.Path()), q.rules.kinds())
	if !ok {
		return nil, fmt.Errorf("%q has no place in line", h.Path())
	}
	session, err := l.Client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if session.ID() != h.Session().ID() {
		return nil, errors.Join(framework.ErrSessionLost, h.Err())
	}
	done, err := Create{
		Nodes: []NewNode{{
			Dir: q.Dir, Name: q.rules.Name + m.positionDigits(), Data: q.data,
			Options: []framework.CreateOption{framework.Ephemeral(), framework.Protected()},
		}},
		With: []framework.Op{framework.CheckOp(q.node(m.name), -1)},
	}.Do(ctx, session)
	var refused *RefusedError
	if errors.As(err, &refused) {
		if _, ended := h.Guard(ctx); ended != nil { // which makes it notice
			return nil, ended
		}
	}
	if err != nil {
		return nil, err
	}
	w, err := q.newWaiter(session, done.Nodes[0])
	if err != nil {
		DeleteNodes(ctx, session, done.Nodes...)
		return nil, err
	}
	held := false
	defer func() {
		if !held {
			deleteAll(ctx, []*waiter{w})
		}
	}()
	w.token = h.Token()
	if err := settled(w); err != nil {
		return nil, err
	}
	hold, err := l.grant(ctx, []*waiter{w}, false)
	held = err == nil
	return hold, err
}

// digits are what the name of a node ends in that is to stand beside m. At the end of the counter, where numbers tell nothing, whoever
// holds is ahead of all who wait, and so is the last number before.
func (m queueNode) positionDigits() string {
	if m.atCounterEnd() {
		return fmt.Sprintf("%010d", math.MaxInt32-1)
	}
	return fmt.Sprintf("%010d", m.seq)
}

// alone checks that among children nobody but own is in front: whoever else there is has a barrier ahead, and that is behind us.
func (q *Queue) checkAlone(children, barriers, own []string) error {
	nodes := slices.DeleteFunc(sortedNodes(children, q.rules.kinds()), func(m queueNode) bool { return slices.Contains(own, m.name) })
	if len(nodes) == 0 {
		return nil
	}
	first := nodes[0]
	_, isBarrier := parseName(first.name, barriers)
	mine, _ := parseName(own[0], q.rules.kinds())
	// A number that another one has too does not tell who is behind it, and at the end of the counter none does.
	tells := len(nodes) == 1 || nodes[1].seq != first.seq && !first.atCounterEnd()
	if isBarrier && tells && (first.atCounterEnd() || before(mine.seq, first.seq)) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotAlone, first.name)
}
