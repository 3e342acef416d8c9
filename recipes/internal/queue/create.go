package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// Create creates lock nodes in one transaction, and counts the children of some directories as
// of that transaction.
type Create struct {
	Nodes []NewNode
	Count []*Dir         // to count; only directories that are Inner: they are written
	With  []framework.Op // other operations of the transaction

	// afterSend is called each time that the request was handed to the connection, see bridge.Behind. It
	// may be nil.
	afterSend func()
}

// NewNode is a node that a Create creates.
type NewNode struct {
	Dir     *Dir
	Name    string
	Data    []byte
	Options []framework.CreateOption
}

// Created is the result of a Create.
type Created struct {
	Nodes []string
	Czxid int64 // of all nodes; 0: the reply was lost
	// Count holds the Stats of the directories after the transaction, in the order of Create.Count. The
	// Stat of one that must not be written is nil. All are nil if the reply was lost.
	Count []*zk.Stat
}

// RefusedError says that an operation of Create.With has failed, so that nothing was applied.
type RefusedError struct {
	Op  int // the index of the operation
	Err error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// maxCreateDirs is how often Do creates missing directories before it fails. The servers delete
// empty containers.
const maxCreateDirs = 10

// Do makes the transaction in s. It creates missing directories, and does not count those that
// must not be written. If the reply was lost and one of the nodes was deleted before it was
// found, Do deletes the others and returns ErrOwnNodeDeleted.
func (e Create) Do(ctx context.Context, s *framework.Session) (Created, error) {
	for attempts := 0; ; {
		t, err := e.prepare(ctx, s)
		if err != nil {
			return Created{}, err
		}
		results, err := t.send(ctx, s)
		if err == nil {
			e.markUsed()
			done := e.created(t, results)
			return done, done.checkComplete(ctx, s)
		}
		failed := failedOp(results)
		switch {
		case failed < 0:
			return Created{}, err
		case failed < len(e.With):
			return Created{}, &RefusedError{failed, err}
		case t.dirs[failed] == nil:
			e.markUsed() // the child of addTouch failed: another client touches the directory
		case errors.Is(err, zk.ErrNoNode) && attempts < maxCreateDirs:
			attempts++
			if err := e.createDirs(ctx, s); err != nil {
				return Created{}, err
			}
		case errors.Is(err, zk.ErrNoAuth) && t.counts[failed] >= 0:
			t.dirs[failed].set(dirState{known: true, readOnly: true})
			if len(e.With) > 0 {
				return Created{}, ErrRetry // With may rely on the count
			}
		default:
			return Created{}, err
		}
	}
}

// createDirs creates the directories of the nodes. The error does not say which one is missing,
// so all are created.
func (e Create) createDirs(ctx context.Context, s *framework.Session) error {
	for _, d := range e.Count {
		d.set(dirState{})
	}
	created := map[*Dir]bool{}
	for _, n := range e.Nodes {
		if created[n.Dir] {
			continue
		}
		created[n.Dir] = true
		if err := s.CreateContainers(ctx, n.Dir.path); err != nil {
			return err
		}
	}
	return nil
}

// transaction is a Create as it is sent.
type transaction struct {
	ops    []framework.Op
	dirs   []*Dir   // of each operation; nil: the operation is of Create.With or addTouch
	counts []int    // the index in Create.Count of each operation; -1: none
	alone  *NewNode // the only operation creates it; nil: there are others
}

func (t *transaction) add(op framework.Op, dir *Dir, count int) {
	t.ops, t.dirs, t.counts = append(t.ops, op), append(t.dirs, dir), append(t.counts, count)
}

// prepare makes the operations. It reads a directory to count that is not known yet.
func (e Create) prepare(ctx context.Context, s *framework.Session) (transaction, error) {
	var t transaction
	for _, op := range e.With {
		t.add(op, nil, -1)
	}
	for i, n := range e.Nodes {
		if i == 0 && e.afterSend != nil {
			n.Options = append(slices.Clip(n.Options), bridge.Behind(e.afterSend))
		}
		t.add(framework.CreateOp(n.path(), n.Data, n.Options...), n.Dir, -1)
		t.alone = &n
	}
	for i, d := range e.Count {
		state, err := d.load(ctx, s)
		if err != nil {
			return transaction{}, err
		}
		if state.readOnly || !d.inner {
			continue
		}
		touch := state.neverUsed && !slices.Contains(t.dirs, d)
		t.add(framework.SetOp(d.path, state.data, -1), d, i)
		if touch {
			t.addTouch(d)
		}
	}
	if len(t.ops) > 1 {
		t.alone = nil
	}
	return t, nil
}

func (n NewNode) path() string { return n.Dir.node(n.Name) }

// send sends the request. A create alone needs no transaction.
func (t transaction) send(ctx context.Context, s *framework.Session) ([]framework.Result, error) {
	if t.alone == nil {
		return s.Multi(ctx, t.ops...)
	}
	created, err := s.CreateResult(ctx, t.alone.path(), t.alone.Data, t.alone.Options...)
	if err != nil && (ctx.Err() != nil || framework.IsTransient(err)) {
		return nil, err
	}
	created.Err = err
	return []framework.Result{created}, err
}

// addTouch adds a create and a delete of a child, because servers delete an empty container only
// if it has had a child.
func (t *transaction) addTouch(d *Dir) {
	child := d.node("touch")
	t.add(framework.CreateOp(child, nil), nil, -1)
	t.add(framework.DeleteOp(child, -1), nil, -1)
}

// markUsed notes that the directories have had a child.
func (e Create) markUsed() {
	for _, d := range e.Count {
		d.markUsed()
	}
}

// created makes the result.
func (e Create) created(t transaction, results []framework.Result) Created {
	done := Created{Count: make([]*zk.Stat, len(e.Count))}
	for i, r := range results {
		switch {
		case t.counts[i] >= 0:
			done.Count[t.counts[i]] = r.Stat
		case t.dirs[i] != nil:
			done.Nodes, done.Czxid = append(done.Nodes, r.Path), r.Czxid
		}
	}
	return done
}

// checkComplete checks that all nodes exist. Otherwise it deletes the others.
func (d Created) checkComplete(ctx context.Context, s *framework.Session) error {
	found := slices.DeleteFunc(slices.Clone(d.Nodes), func(node string) bool { return node == "" })
	if len(found) == len(d.Nodes) {
		return nil
	}
	DeleteNodes(ctx, s, found...)
	return ErrOwnNodeDeleted
}

// failedOp returns the index of the operation that has failed; -1: none of them.
func failedOp(results []framework.Result) int {
	for i, r := range results {
		if r.Err != nil && !errors.Is(r.Err, framework.ErrRolledBack) {
			return i
		}
	}
	return -1
}

// OwnNode returns the options of lock nodes.
func OwnNode() []framework.CreateOption {
	return []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
}
