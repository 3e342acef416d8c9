package queue

import (
	"context"
	"slices"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// listing is a list of a line's directory, which all who have asked for it share.
type listing struct {
	done     chan struct{} // closed when the rest is known
	children []string
	err      error

	sort  sync.Once
	order order
}

// listKey is what a list is of, and the session that it is asked for in.
type sessionKey struct {
	queue   any
	session int64
}

// listings are the lists that come next, of those lines of which one is under way; nil if nobody has asked for another. One lock serves
// all: nothing waits under it.
var listings = struct {
	mu   sync.Mutex
	next map[sessionKey]*listing
}{next: map[sessionKey]*listing{}}

// ask asks for a list of the line, without waiting for it. While one is under way in the session, all who ask share the next one. That is
// asked for after all of them have asked, so it shows the nodes of all whose creates were sent before they did.
func (q *Queue) requestList(s *framework.Session) *listing {
	key := q.keyIn(s)
	listings.mu.Lock()
	asked, running := listings.next[key]
	if asked == nil {
		asked = &listing{done: make(chan struct{})}
	}
	if running {
		listings.next[key] = asked
	} else {
		listings.next[key] = nil
	}
	listings.mu.Unlock()
	if !running {
		q.startList(s, key, asked)
	}
	return asked
}

func (q *Queue) startList(s *framework.Session, key sessionKey, asked *listing) {
	bridge.OfSession(s).StartChildren(q.path, func(children []string, err error) {
		asked.children, asked.err = children, err
		close(asked.done)
		if next := nextListing(key); next != nil {
			q.startList(s, key, next)
		}
	})
}

// nextListing is the list that is to be asked for after one has ended; nil if there is none.
func nextListing(key sessionKey) *listing {
	listings.mu.Lock()
	defer listings.mu.Unlock()
	next := listings.next[key]
	if next == nil {
		delete(listings.next, key)
	} else {
		listings.next[key] = nil
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

// sorted is the line as the list shows it. All who share the list are of one line, so they have the same rules.
func (x *listing) sorted(r Rules) *order {
	x.sort.Do(func() { x.order = r.order(x.children) })
	return &x.order
}

// order is the nodes of a line, in their order.
type order struct {
	conflicting, compatible []queueNode
	unordered               bool // the numbers do not tell the order: it is any
}

func (r Rules) order(children []string) order {
	var o order
	for _, name := range children {
		m, blocks, ok := r.parse(name)
		switch {
		case !ok:
			continue
		case blocks:
			o.conflicting = append(o.conflicting, m)
		default:
			o.compatible = append(o.compatible, m)
		}
		o.unordered = o.unordered || m.atCounterEnd()
	}
	if !o.unordered {
		slices.SortFunc(o.conflicting, compareNodes)
		slices.SortFunc(o.compatible, compareNodes)
	}
	return o
}

// has reports whether a node is in the line, whose numbers tell the order.
func (o *order) has(m queueNode) bool {
	for _, all := range [][]queueNode{o.conflicting, o.compatible} {
		if _, found := slices.BinarySearchFunc(all, m, compareNodes); found {
			return true
		}
	}
	return false
}

// ahead is how many of those in order have a smaller number than m.
func (m queueNode) countBefore(all []queueNode) int {
	i, _ := slices.BinarySearchFunc(all, queueNode{seq: m.seq}, compareNodes) // no name is the smallest
	return i
}
