package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// Entry creates lock nodes, all in one transaction, and tells how many children some directories have as of then.
type Create struct {
	Nodes []NewNode
	Count []*Dir         // only of lines that are Inner: they are written
	With  []framework.Op // what else is in the transaction

	// behind is called each time that the request has been handed to the connection, see framework.Behind; nil: there is nothing to do.
	afterSend func()
}

// NewNode is a node of an Entry.
type NewNode struct {
	Dir     *Dir
	Name    string
	Data    []byte
	Options []framework.CreateOption
}

// Entered is what became of an Entry.
type Created struct {
	Nodes []string
	Czxid int64 // of all nodes: the transaction's; 0 if the answer was lost
	// Count are the directories as of the transaction, in the order of Entry.Count. One that must not be written is nil; all are if the
	// answer was lost.
	Count []*zk.Stat
}

// RefusedError says that one of the operations of Entry.With is why a transaction was not applied.
type RefusedError struct {
	Op  int // its index
	Err error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// maxRebuilds is how often a directory that is not there is made anew before that is an error: servers reap empty containers.
const maxRebuilds = 10

// Do makes the transaction in s. Directories that are missing are made, and those that must not be written are not counted. It fails with
// ErrVanished if one of the nodes was deleted before it was found again, where the answer was lost; the others are withdrawn then.
func (e Create) Do(ctx context.Context, s *framework.Session) (Created, error) {
	for rebuilds := 0; ; {
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
			e.markUsed() // which others must do
		case errors.Is(err, zk.ErrNoNode) && rebuilds < maxRebuilds:
			rebuilds++
			if err := e.createDirs(ctx, s); err != nil {
				return Created{}, err
			}
		case errors.Is(err, zk.ErrNoAuth) && t.counts[failed] >= 0:
			t.dirs[failed].set(dirState{known: true, readOnly: true})
			if len(e.With) > 0 {
				return Created{}, ErrRetry // what else is in the transaction may rest on its being written
			}
		default:
			return Created{}, err
		}
	}
}

// rebuild makes the directories of the nodes. Where one is missing others may be, which the servers do not tell.
func (e Create) createDirs(ctx context.Context, s *framework.Session) error {
	for _, d := range e.Count {
		d.set(dirState{})
	}
	made := map[*Dir]bool{}
	for _, n := range e.Nodes {
		if made[n.Dir] {
			continue
		}
		made[n.Dir] = true
		if err := s.CreateContainers(ctx, n.Dir.path); err != nil {
			return err
		}
	}
	return nil
}

// transaction is an Entry as it is sent.
type transaction struct {
	ops    []framework.Op
	dirs   []*Dir   // that each operation is about; nil of those of Entry.With, and of touch
	counts []int    // which of Entry.Count each operation is; -1: none
	alone  *NewNode // the only operation creates it; nil: there are others
}

func (t *transaction) add(op framework.Op, dir *Dir, count int) {
	t.ops, t.dirs, t.counts = append(t.ops, op), append(t.dirs, dir), append(t.counts, count)
}

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

// send makes the request. A create alone needs no transaction.
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

// touch makes a child come and go: servers reap no container that has never had one.
func (t *transaction) addTouch(d *Dir) {
	child := d.node("touch")
	t.add(framework.CreateOp(child, nil), nil, -1)
	t.add(framework.DeleteOp(child, -1), nil, -1)
}

// touched notes that directories do not need to be touched any more.
func (e Create) markUsed() {
	for _, d := range e.Count {
		d.markUsed()
	}
}

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

// complete checks that all nodes are there.
func (d Created) checkComplete(ctx context.Context, s *framework.Session) error {
	found := slices.DeleteFunc(slices.Clone(d.Nodes), func(node string) bool { return node == "" })
	if len(found) == len(d.Nodes) {
		return nil
	}
	DeleteNodes(ctx, s, found...)
	return ErrOwnNodeDeleted
}

// cause is the index of the operation because of which a transaction was not applied; -1: it was something else.
func failedOp(results []framework.Result) int {
	for i, r := range results {
		if r.Err != nil && !errors.Is(r.Err, framework.ErrRolledBack) {
			return i
		}
	}
	return -1
}

// OwnNode are the options of lock nodes.
func OwnNode() []framework.CreateOption {
	return []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
}
