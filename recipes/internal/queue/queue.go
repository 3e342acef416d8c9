package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/recipes/internal/locknode"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Rules says which nodes of a queue conflict with a waiter. The kind of a node is what its name
// ends in, before the sequence number.
type Rules struct {
	Name        string   // the kind of the own nodes
	Conflicting []string // kinds of nodes to wait for when they are ahead
	Compatible  []string // the other kinds of nodes in the queue
	// MayBeReplaced: when a node ahead is deleted, another may have taken its position. The queue is
	// listed again after each deletion.
	MayBeReplaced bool
}

// Queue is the lock nodes in one directory, and the rules for the own ones. It is safe for
// concurrent use.
type Queue struct {
	*Dir
	client *framework.Client
	rules  Rules
	data   []byte
	log    *zap.Logger
	key    any
}

// Kinds of the nodes of kazoo: KazooLock of its Lock and WriteLock, KazooReadLock of its ReadLock.
const (
	KazooLock     = "__lock__"
	KazooReadLock = "__rlock__"
)

// Exclusive is the rules of a mutex. The names are Curator's, to the byte.
var Exclusive = Rules{Name: "lock-", Conflicting: []string{"lock-", KazooLock}}

// WithName returns the rules with another kind of own nodes, one that the rules contain already.
func (r Rules) WithName(name string) Rules {
	r.Name = name
	return r
}

// kinds returns all kinds of nodes in the queue.
func (r Rules) kinds() []string { return slices.Concat(r.Conflicting, r.Compatible) }

// parse parses the name of a child and reports whether its kind conflicts. It returns false in
// ok for a child that is not a node of the queue.
func (r Rules) parse(name string) (m locknode.Node, conflicts, ok bool) {
	if m, ok = locknode.Parse(name, r.Conflicting); ok {
		return m, true, true
	}
	m, ok = locknode.Parse(name, r.Compatible)
	return m, false, ok
}

// NewQueue makes a Queue at path. Its own nodes have the given data. It sends no request.
func NewQueue(client *framework.Client, path string, rules Rules, data []byte) *Queue {
	return &Queue{
		Dir: NewDir(path), client: client, rules: rules, data: data,
		log: client.Logger().With(zap.String("path", path)),
		key: queueKey{bridge.Of(client).Key(path), strings.Join(rules.Conflicting, " ")},
	}
}

// Inner marks the directory as one that the recipe has made for itself, in which no other
// program keeps data. A Create may write it, to count its children. Inner returns q.
func (q *Queue) Inner() *Queue {
	q.inner = true
	return q
}

// Key returns a value that identifies the directory and the conflicting kinds. It is the same
// for all namespaces of a connection through which the path is named, and for all kinds of own
// nodes.
func (q *Queue) Key() any { return q.key }

type queueKey struct {
	path        any
	conflicting string
}

// waiter is the own node in a queue, and what is known of it.
type waiter struct {
	queue   *Queue
	session *framework.Session
	locknode.Node
	token        int64            // the czxid of the node; 0: not known yet
	pendingList  *listing         // requested behind the create; nil: none, or it was used
	ownWatch     *framework.Watch // on the node itself, once a conflicting node is ahead
	deleted      bool             // the node does not exist any more
	reachedFront atomic.Bool      // there was a time at which no conflicting node was ahead

	// Read with ownWatch. A node that was not read is as it was created, unless it was revoked.
	data    []byte
	version int32
}

func (w *waiter) path() string { return w.queue.node(w.Name) }

// maxLists bounds how many lists of one acquire are under way at a time.
const maxLists = 64

// enqueue creates a node at the end of each queue, in one request. The lists of the queues
// follow right behind it on the same connection, so that they show the new nodes and those
// ahead. A queue in which a waiter of the session is registered is not listed: that waiter is
// ahead, and is often known to be the predecessor.
func enqueue(ctx context.Context, s *framework.Session, queues []*Queue) ([]*waiter, error) {
	lists := make([]*listing, len(queues))
	e := Create{afterSend: func() {
		clear(lists) // those behind an earlier attempt
		for i, q := range queues[:min(maxLists, len(queues))] {
			if !q.hasLocalWaiter(s) {
				lists[i] = q.requestList(s)
			}
		}
	}}
	for _, q := range queues {
		e.Nodes = append(e.Nodes, NewNode{Dir: q.Dir, Name: q.rules.Name, Data: q.data, Options: OwnNode()})
	}
	done, err := e.Do(ctx, s)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil, fmt.Errorf("a parent's counter of sequence numbers is stuck "+
			"(delete it while no client uses the lock): %w", err)
	}
	if err != nil {
		return nil, err
	}
	waiters := make([]*waiter, len(queues))
	for i, q := range queues {
		if waiters[i], err = q.newWaiter(s, done.Nodes[i]); err != nil {
			DeleteNodes(ctx, s, done.Nodes...)
			return nil, err
		}
		waiters[i].token = done.Czxid
		if done.Czxid != 0 { // else the reply was lost, and the lists may be older than the nodes
			waiters[i].pendingList = lists[i]
		}
	}
	return waiters, nil
}

// newWaiter makes the waiter of a node that was created.
func (q *Queue) newWaiter(s *framework.Session, node string) (*waiter, error) {
	m, ok := locknode.Parse(path.Base(node), []string{q.rules.Name})
	if !ok {
		return nil, fmt.Errorf("the server named a node %q: no sequence number behind %q", node, q.rules.Name)
	}
	return &waiter{queue: q, session: s, Node: m}, nil
}

// isFirst reports whether the number shows that no node can be ahead: a parent gives the number
// 0 to the first of all its children.
func (w *waiter) isFirst() bool { return w.Seq == 0 }

// A waiter with a number from warnFrom on warns that the parent's counter runs out, at most once in
// warnEach for each queue.
const (
	warnFrom = 1 << 30
	warnEach = time.Minute
)

// warnOfCounter warns if the parent's counter of sequence numbers runs out.
func (w *waiter) warnOfCounter() {
	if w.Seq < warnFrom && w.Seq >= 0 {
		return
	}
	if bridge.Local[counterWarnings](bridge.Of(w.queue.client)).mayWarn(w.queue.key, time.Now()) {
		w.queue.log.Warn("the parent's counter of sequence numbers is running out, "+
			"Curator clients will not exclude each other then: delete the parent while no client uses the lock",
			zap.Int32("sequence", w.Seq))
	}
}

// counterWarnings holds, for each queue of one client, when the last warning was logged, until the
// next is allowed.
type counterWarnings struct {
	mu   sync.Mutex
	last map[any]time.Time
}

// mayWarn allows one warning in warnEach for each key of a queue, however many values of Queue
// have that key.
func (w *counterWarnings) mayWarn(queue any, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.last, func(_ any, last time.Time) bool { return now.Sub(last) >= warnEach })
	if _, warned := w.last[queue]; warned {
		return false
	}
	if w.last == nil {
		w.last = map[any]time.Time{}
	}
	w.last[queue] = now
	return true
}

// readToken reads the token where the reply to the create was lost, and checks that the node
// belongs to the session.
func (w *waiter) readToken(ctx context.Context) error {
	if w.token != 0 {
		return nil
	}
	token, err := Confirm(ctx, w.session, w.path())
	if err == nil {
		w.token = token
	}
	return w.noteDeleted(ctx, err)
}

// Confirm returns the czxid of a node of the session. It returns ErrOwnNodeDeleted if the node
// does not exist or belongs to another session.
func Confirm(ctx context.Context, s *framework.Session, node string) (czxid int64, err error) {
	stat, err := RetryInSession(ctx, s, func(ctx context.Context) (*zk.Stat, error) {
		return s.Exists(ctx, node)
	})
	if err != nil {
		return 0, nodeDeleted(ctx, err)
	}
	return stat.Czxid, checkOwner(s, stat)
}

// checkOwner checks that a node belongs to the session.
func checkOwner(s *framework.Session, stat *zk.Stat) error {
	if stat.EphemeralOwner != s.ID() {
		return fmt.Errorf("%w: it belongs to session %v", ErrOwnNodeDeleted, logfield.Hex(stat.EphemeralOwner))
	}
	return nil
}

// nodeDeleted turns the error for a missing node into ErrOwnNodeDeleted. Once ctx has ended, the
// error may be the cause of ctx, which says nothing about the node.
func nodeDeleted(ctx context.Context, err error) error {
	if errors.Is(err, zk.ErrNoNode) && ctx.Err() == nil {
		return ErrOwnNodeDeleted
	}
	return err
}

// grantParts returns what a Grant holds of the waiter.
func (w *waiter) grantParts() (ownership.Lock, ownership.Node) {
	return ownership.Lock{Path: w.queue.path, Key: w.queue.Key(), Token: w.token},
		ownership.Node{Path: w.path(), Watch: w.ownWatch, Data: w.data}
}
