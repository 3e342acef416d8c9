package enqueue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// Create creates lock nodes in one transaction. Without other operations a single node needs no
// transaction.
type Create struct {
	Nodes  []Node
	Before []framework.Op // operations of the transaction before the creates
	After  []framework.Op // and behind them
}

// Node is a node that a Create creates.
type Node struct {
	Dir           string
	RequestedName string // the name ends in it, before the sequence number
	Data          []byte
	Options       []framework.CreateOption

	// AfterSend is called each time that the request was handed to the connection, unless the request
	// also creates Dir; see bridge.Behind. It may be nil.
	AfterSend func()
}

// Created is the result of a Create.
type Created struct {
	Nodes []string
	Czxid int64              // of all nodes; 0: the reply was lost
	After []framework.Result // of the operations in Create.After
	// Count holds the Stats of Counted.Dirs after the transaction. The Stat of a directory that must
	// not be written is nil. All are nil if the reply was lost.
	Count []*zk.Stat
}

// RefusedError says that an operation of Create.Before or Create.After has failed, so that nothing
// was applied.
type RefusedError struct {
	Op  int // the index of the operation: those in After follow those in Before
	Err error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// ErrOwnNodeDeleted: another client has deleted the own node. A node of the same name may belong to
// another session.
var ErrOwnNodeDeleted = errors.New("enqueue: the own node does not exist or is not the session's")

// LockNodeOptions returns the options of lock nodes.
func LockNodeOptions() []framework.CreateOption {
	return []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
}

// Do creates the nodes, and missing directories. If the reply was lost and one of the nodes was
// deleted before it was found, Do deletes the others and returns ErrOwnNodeDeleted.
func (c Create) Do(ctx context.Context, s *framework.Session) (Created, error) {
	return c.attempt(ctx, s, framework.Parents())
}

// attempt makes one attempt. The framework may send the request more than once. opts are added to the
// options of each node.
func (c Create) attempt(
	ctx context.Context, s *framework.Session, opts ...framework.CreateOption,
) (Created, error) {
	results, err := c.send(ctx, s, opts)
	if err != nil {
		return Created{}, c.failure(results, err)
	}
	creates, after := len(c.Before), len(c.Before)+len(c.Nodes)
	created := Created{Czxid: results[creates].Czxid, After: results[after:]}
	for _, r := range results[creates:after] {
		if r.Path != "" {
			created.Nodes = append(created.Nodes, r.Path)
		}
	}
	if len(created.Nodes) < len(c.Nodes) {
		DeleteNodes(ctx, s, created.Nodes...)
		return Created{}, ErrOwnNodeDeleted
	}
	return created, nil
}

// send sends the request.
func (c Create) send(
	ctx context.Context, s *framework.Session, opts []framework.CreateOption,
) ([]framework.Result, error) {
	if len(c.Nodes)+len(c.Before)+len(c.After) == 1 {
		n := c.Nodes[0]
		created, err := s.CreateResult(ctx, n.path(), n.Data, n.options(opts)...)
		created.Err = err
		return []framework.Result{created}, err
	}
	ops := slices.Clone(c.Before)
	for _, n := range c.Nodes {
		ops = append(ops, framework.CreateOp(n.path(), n.Data, n.options(opts)...))
	}
	return s.Multi(ctx, append(ops, c.After...)...)
}

func (n Node) path() string { return n.Dir + "/" + n.RequestedName }

// options returns the options of the node and further ones.
func (n Node) options(further []framework.CreateOption) []framework.CreateOption {
	all := make([]framework.CreateOption, 0, len(n.Options)+len(further)+1)
	all = append(append(all, n.Options...), further...)
	if n.AfterSend != nil {
		all = append(all, bridge.Behind(n.AfterSend))
	}
	return all
}

// failure returns the error of a request that has failed with these results.
func (c Create) failure(results []framework.Result, err error) error {
	failed := slices.IndexFunc(results, func(r framework.Result) bool {
		return r.Err != nil && !errors.Is(r.Err, framework.ErrRolledBack)
	})
	switch after := len(c.Before) + len(c.Nodes); {
	case failed < 0:
		return err
	case failed < len(c.Before):
		return &RefusedError{failed, err}
	case failed >= after:
		return &RefusedError{failed - len(c.Nodes), err}
	case errors.Is(err, zk.ErrNoNode):
		return &noDirectoryError{err}
	}
	return err
}

// noDirectoryError: the directory of one of the nodes does not exist.
type noDirectoryError struct{ error }

func (e *noDirectoryError) Unwrap() error { return e.error }

func isNoDirectory(err error) bool {
	var missing *noDirectoryError
	return errors.As(err, &missing)
}
