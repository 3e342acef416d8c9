// Package queuelist lists the directories of queues, and sorts the lock nodes in them. Waiters of
// one session that need a list of the same queue at the same time share one request. A shared list
// is sorted once.
package queuelist

import (
	"context"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Directory is the directory of a queue. The kind of a node is what its name ends in, before the
// sequence number.
type Directory struct {
	Path        string
	Key         any      // identifies the directory and the kinds
	Conflicting []string // kinds of nodes to wait for when they are ahead
	Compatible  []string // the other kinds of nodes in the queue
}

// Lists is the lists of one session that are under way. The zero value has none. It is safe for
// concurrent use.
type Lists struct {
	mu sync.Mutex // nothing waits while it is held
	// next has the directories of which a list was sent and is not answered yet: the list to send after
	// the answer, or nil if no waiter has requested another one.
	next map[any]*List
}

// List is one list of a directory. All waiters that requested it share it.
type List struct {
	session  *framework.Session // a view of it, in whose namespace dir is
	dir      Directory
	done     chan struct{} // closed when children and err are set
	children []string
	err      error

	sort  sync.Once
	order Order
}

// Request requests a list of the directory and does not wait for it. While one is under way in the
// session, all callers share the next list. That one is sent after all of them have called Request,
// so it shows the nodes of all creates that were sent before a call.
func (l *Lists) Request(s *framework.Session, dir Directory) *List {
	list := &List{session: s, dir: dir, done: make(chan struct{})}
	l.mu.Lock()
	if next, underWay := l.next[dir.Key]; underWay {
		defer l.mu.Unlock()
		if next == nil {
			next = list
			l.next[dir.Key] = list
		}
		return next
	}
	if l.next == nil {
		l.next = map[any]*List{}
	}
	l.next[dir.Key] = nil
	l.mu.Unlock()
	l.send(list)
	return list
}

// send sends the request, and that of the next list when the answer has arrived.
func (l *Lists) send(list *List) {
	key := list.dir.Key
	bridge.OfSession(list.session).StartChildren(list.dir.Path, func(children []string, err error) {
		list.children, list.err = children, err
		close(list.done)
		l.mu.Lock()
		next := l.next[key]
		if next != nil {
			l.next[key] = nil // next is under way from now on
		} else {
			delete(l.next, key)
		}
		l.mu.Unlock()
		if next != nil {
			l.send(next)
		}
	})
}

// Wait waits for the answer, as long as ctx and the session last.
func (l *List) Wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-l.session.Done():
		return l.session.Err()
	}
}

// Children returns the names in the list. It needs a Wait that has returned nil.
func (l *List) Children() []string { return l.children }

// Order returns the nodes of the list in order. It needs a Wait that has returned nil. All waiters
// that share the list call it, and the first call sorts.
func (l *List) Order() *Order {
	l.sort.Do(func() { l.order = l.dir.Sort(l.children) })
	return &l.order
}
