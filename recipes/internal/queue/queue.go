package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/queuelist"
)

// Rules says which nodes of a queue conflict with a waiter. The kind of a node is what its name
// ends in, before the sequence number.
type Rules struct {
	Kind        string   // of the own nodes
	Conflicting []string // kinds of nodes to wait for when they are ahead
	Compatible  []string // the other kinds of nodes in the queue
	// PositionsReused: a node ahead may be replaced by one at its position (Lock.Downgrade). The queue
	// is listed again after each deletion that was waited for, unless the node was of a waiter of the
	// same session and was not replaced.
	PositionsReused bool
}

// Kinds of the nodes of kazoo: KazooLock of its Lock and WriteLock, KazooReadLock of its ReadLock.
const (
	KazooLock     = "__lock__"
	KazooReadLock = "__rlock__"
)

// Exclusive is the rules of a mutex. The names are Curator's, to the byte.
var Exclusive = Rules{Kind: "lock-", Conflicting: []string{"lock-", KazooLock}}

// WithKind returns the rules with another kind of own nodes, one that the rules contain already.
func (r Rules) WithKind(kind string) Rules {
	r.Kind = kind
	return r
}

// Kinds returns all kinds of nodes in the queue.
func (r Rules) Kinds() []string { return slices.Concat(r.Conflicting, r.Compatible) }

// Queue is the lock nodes in one directory, and the rules for the own ones. It is safe for
// concurrent use.
type Queue struct {
	client   *framework.Client
	dir      queuelist.Directory
	rules    Rules
	ownKinds []string     // rules.Kind only
	node     enqueue.Node // an own node to create
	recipe   string       // in logs
}

// NewQueue makes a Queue at path. Its own nodes have the given data. It sends no request.
func NewQueue(client *framework.Client, path string, rules Rules, data []byte) *Queue {
	return &Queue{
		client: client, rules: rules, ownKinds: []string{rules.Kind},
		node: enqueue.Node{Dir: path, RequestedName: rules.Kind, Data: data, Options: enqueue.LockNodeOptions()},
		dir: queuelist.Directory{
			Path: path, Conflicting: rules.Conflicting, Compatible: rules.Compatible,
			Key: queueKey{
				path:        bridge.Of(client).Key(path),
				conflicting: strings.Join(rules.Conflicting, " "), compatible: strings.Join(rules.Compatible, " "),
			},
		},
	}
}

func (q *Queue) log() *zap.Logger {
	return q.client.Logger().Named(q.recipe).With(zap.String("path", q.dir.Path))
}

// Client returns the client.
func (q *Queue) Client() *framework.Client { return q.client }

// Path returns the path of the directory.
func (q *Queue) Path() string { return q.dir.Path }

// Rules returns the rules.
func (q *Queue) Rules() Rules { return q.rules }

// Key returns a value that identifies the directory, and the conflicting and the compatible kinds.
// It is the same for all namespaces of a connection through which the path is named, and for all
// kinds of own nodes.
func (q *Queue) Key() any { return q.dir.Key }

type queueKey struct {
	path        any
	conflicting string
	compatible  string
}

// Child returns the path of a node in the directory.
func (q *Queue) Child(name string) string { return q.dir.Path + "/" + name }

// unnumbered returns the error for a new node whose name has no sequence number.
func (q *Queue) unnumbered(node string) error {
	return fmt.Errorf("the server named a node %q: no sequence number behind %q", node, q.rules.Kind)
}

// explainStuck adds the cause to the error of a create by which the servers say that the node
// exists.
func explainStuck(err error) error {
	if !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return fmt.Errorf("the directory's counter of sequence numbers is stuck "+
		"(delete it while no client uses the lock): %w", err)
}
