package queue

import (
	"context"
	"slices"
	"sync"

	"github.com/docent-zk/docent/recipes/internal/locknode"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// listing is one list of a directory. All waiters that requested it share it.
type listing struct {
	done     chan struct{} // closed when children and err are set
	children []string
	err      error

	sort  sync.Once
	order order
}

// listings holds the lists that are under way in one session.
type listings struct {
	mu sync.Mutex // nothing waits while it is held
	// next has each queue of which a list is under way, by its key. The value is the next list; nil:
	// no waiter has requested another one.
	next map[any]*listing
}

// requestList requests a list of the queue and does not wait for it. While one is under way in
// the session, all callers share the next list. That one is sent after all of them have called
// requestList, so it shows the nodes of all creates sent before.
func (q *Queue) requestList(s *framework.Session) *listing {
	asked, first := bridge.Local[listings](bridge.OfSession(s)).request(q.key)
	if first {
		q.startList(s, asked)
	}
	return asked
}

// request returns the list that shows the nodes of all creates sent before. first: no list is
// under way, and the caller must send it.
func (l *listings) request(queue any) (asked *listing, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, running := l.next[queue]
	if asked == nil {
		asked = &listing{done: make(chan struct{})}
	}
	switch {
	case running:
		l.next[queue] = asked
	case l.next == nil:
		l.next = map[any]*listing{queue: nil}
	default:
		l.next[queue] = nil
	}
	return asked, !running
}

// startList sends the request, and that of the next list when the answer has arrived.
func (q *Queue) startList(s *framework.Session, asked *listing) {
	bridge.OfSession(s).StartChildren(q.path, func(children []string, err error) {
		asked.children, asked.err = children, err
		close(asked.done)
		if next := bridge.Local[listings](bridge.OfSession(s)).answered(q.key); next != nil {
			q.startList(s, next)
		}
	})
}

// answered returns the list to send after one was answered; nil: there is none.
func (l *listings) answered(queue any) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.next[queue]
	if next == nil {
		delete(l.next, queue)
	} else {
		l.next[queue] = nil
	}
	return next
}

// wait waits for the answer, as long as ctx and the session last.
func (x *listing) wait(ctx context.Context, s *framework.Session) error {
	select {
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-s.Done():
		return s.Err()
	}
}

// sorted returns the nodes of the list in order. Waiters share a list only if their queues have
// the same conflicting kinds.
func (x *listing) sorted(r Rules) *order {
	x.sort.Do(func() { x.order = r.order(x.children) })
	return &x.order
}

// order holds the nodes of a queue, each slice in the order of the queue.
type order struct {
	conflicting, compatible []locknode.Node
	unordered               bool // the numbers do not show the order: the slices are not sorted
}

// order parses and sorts the names of children.
func (r Rules) order(children []string) order {
	var o order
	for _, name := range children {
		m, conflicts, ok := r.parse(name)
		switch {
		case !ok:
			continue
		case conflicts:
			o.conflicting = append(o.conflicting, m)
		default:
			o.compatible = append(o.compatible, m)
		}
		o.unordered = o.unordered || m.AtCounterEnd()
	}
	if !o.unordered {
		slices.SortFunc(o.conflicting, locknode.Compare)
		slices.SortFunc(o.compatible, locknode.Compare)
	}
	return o
}

// has reports whether m is one of the nodes. It needs a sorted order.
func (o *order) has(m locknode.Node) bool {
	for _, all := range [][]locknode.Node{o.conflicting, o.compatible} {
		if _, found := slices.BinarySearchFunc(all, m, locknode.Compare); found {
			return true
		}
	}
	return false
}

// countBefore returns how many of those in order have a smaller number than m.
func countBefore(m locknode.Node, all []locknode.Node) int {
	i, _ := slices.BinarySearchFunc(all, locknode.Node{Seq: m.Seq}, locknode.Compare) // no name is the smallest
	return i
}
