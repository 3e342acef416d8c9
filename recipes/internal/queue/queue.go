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

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Rules is what tells one kind of line from another. Kinds of nodes are told by what their names end in, before the number.
type Rules struct {
	Name        string   // our own nodes
	Conflicting []string // those that stand in the way when they are ahead
	Compatible  []string // those that do not, but stand in the line too
	// Replaced: who is ahead may leave another one at its place. Then the line is read again after each of them.
	MayBeReplaced bool
}

// Line is the line in one directory. Safe for concurrent use.
type Queue struct {
	*Dir
	client *framework.Client
	rules  Rules
	data   []byte
	log    *zap.Logger
	key    any
}

// What the names of kazoo's locks end in: of its Lock, and WriteLock, and of its ReadLock.
const (
	KazooLock     = "__lock__"
	KazooReadLock = "__rlock__"
)

// Exclusive are the rules of a mutex. The names are Curator's, to the byte.
var Exclusive = Rules{Name: "lock-", Conflicting: []string{"lock-", KazooLock}}

// Named are the rules with another name for our own nodes, one of those that they know already.
func (r Rules) WithName(name string) Rules {
	r.Name = name
	return r
}

// all are the kinds of nodes in the line.
func (r Rules) kinds() []string { return slices.Concat(r.Conflicting, r.Compatible) }

// parse is what a child's name says of it. Of those that are no nodes of the line it says nothing.
func (r Rules) parse(name string) (m queueNode, blocks, ok bool) {
	if m, ok = parseName(name, r.Conflicting); ok {
		return m, true, true
	}
	m, ok = parseName(name, r.Compatible)
	return m, false, ok
}

// NewLine makes a line at path, in which our nodes have the given data. It asks no server.
func NewQueue(client *framework.Client, path string, rules Rules, data []byte) *Queue {
	return &Queue{
		Dir: NewDir(path), client: client, rules: rules, data: data, log: client.Logger().With(zap.String("path", path)),
		key: queueKey{bridge.Of(client).Key(path), strings.Join(rules.Conflicting, " ")},
	}
}

// Inner says that the line is in a directory that the recipe has made for itself, where nobody else keeps data: an Entry may write it,
// to count its children.
func (q *Queue) Inner() *Queue {
	q.inner = true
	return q
}

// Key identifies the line and what one is in it: whatever view of the connection the path is named through, and whatever the nodes are
// named.
func (q *Queue) Key() any { return q.key }

type queueKey struct {
	path        any
	conflicting string
}

// place is our node in a line.
type waiter struct {
	queue   *Queue
	session *framework.Session
	queueNode
	token        int64            // its czxid; 0 while it is not known
	pendingList  *listing         // asked for behind the create; nil if there is none, or it was looked at
	ownWatch     *framework.Watch // on the node itself, once somebody is ahead
	deleted      bool             // somebody has deleted it
	reachedFront atomic.Bool      // it has been at the front: nobody was ahead of it any more

	// What was read with the watch. A node that was not read is as it was created, unless somebody has asked for it back.
	data    []byte
	version int32
}

func (w *waiter) path() string { return w.queue.node(w.name) }

// maxLists bounds how many lists of one acquire are under way at a time.
const maxLists = 64

// enqueue takes a place at the end of each line, in one request. The lists of the lines come right behind it on the same connection, so
// that they show the new nodes and those ahead. A line in which somebody of the session waits already is not listed: the new node
// stands behind that one, and is often told by it who is ahead.
func enqueue(ctx context.Context, s *framework.Session, queues []*Queue) ([]*waiter, error) {
	lists := make([]*listing, len(queues))
	e := Create{afterSend: func() {
		clear(lists) // an earlier request may have had others behind it
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
		return nil, fmt.Errorf("a parent's counter of sequence numbers is stuck (delete it while nobody uses the lock): %w", err)
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
		if done.Czxid != 0 { // otherwise the nodes were found again, and the lists may be older
			waiters[i].pendingList = lists[i]
		}
	}
	return waiters, nil
}

// place is the place of a node that was created.
func (q *Queue) newWaiter(s *framework.Session, node string) (*waiter, error) {
	m, ok := parseName(path.Base(node), []string{q.rules.Name})
	if !ok {
		return nil, fmt.Errorf("the server named our node %q: no sequence number behind %q", node, q.rules.Name)
	}
	return &waiter{queue: q, session: s, queueNode: m}, nil
}

// first reports whether nobody can be ahead: a parent gives the number 0 to the first of all its children.
func (w *waiter) isFirst() bool { return w.seq == 0 }

// warnFrom is the sequence number from which a line warns that its parent's counter will run out, and warnEach how often.
const (
	warnFrom = 1 << 30
	warnEach = time.Minute
)

// warn warns if the parent's counter runs out.
func (w *waiter) warnOfCounter() {
	if (w.seq >= warnFrom || w.seq < 0) && counterWarnings.mayWarn(w.queue.key, time.Now()) {
		w.queue.log.Warn("the parent's counter of sequence numbers is running out, Curator clients will not exclude each other then: "+
			"delete the parent while nobody uses the lock", zap.Int32("sequence", w.seq))
	}
}

// warnings are when there was a warning of each line, for so long as there is to be no other.
type warnings struct {
	mu   sync.Mutex
	last map[any]time.Time
}

var counterWarnings = warnings{last: map[any]time.Time{}}

// mayWarn allows a warning of each line in a while, whatever the values are that stand for it.
func (w *warnings) mayWarn(line any, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.last, func(_ any, last time.Time) bool { return now.Sub(last) >= warnEach })
	if _, warned := w.last[line]; warned {
		return false
	}
	w.last[line] = now
	return true
}

// confirm learns the token of a node where the answer to its creation did not tell, and that the node is ours.
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

// Confirm reads the czxid of a node that is to be ours: ErrVanished if it is not.
func Confirm(ctx context.Context, s *framework.Session, node string) (czxid int64, err error) {
	stat, err := RetryInSession(ctx, s, func(ctx context.Context) (*zk.Stat, error) { return s.Exists(ctx, node) })
	if err != nil {
		return 0, nodeDeleted(ctx, err)
	}
	return stat.Czxid, checkOwner(s, stat)
}

// owned checks that a node is of the session.
func checkOwner(s *framework.Session, stat *zk.Stat) error {
	if stat.EphemeralOwner != s.ID() {
		return fmt.Errorf("%w: it belongs to session %v", ErrOwnNodeDeleted, logfield.Hex(stat.EphemeralOwner))
	}
	return nil
}

// vanished tells that a missing node is ours. Once ctx has ended the error may be its cause, which says nothing about nodes.
func nodeDeleted(ctx context.Context, err error) error {
	if errors.Is(err, zk.ErrNoNode) && ctx.Err() == nil {
		return ErrOwnNodeDeleted
	}
	return err
}

// granted is the place as what a hold has.
func (w *waiter) grantParts() (ownership.Lock, ownership.Node) {
	return ownership.Lock{Path: w.queue.path, Key: w.queue.Key(), Token: w.token},
		ownership.Node{Path: w.path(), Watch: w.ownWatch, Data: w.data}
}
