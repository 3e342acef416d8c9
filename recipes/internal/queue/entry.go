package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
)

// Entry creates lock nodes, all in one transaction, and tells how many children some directories have as of then.
type Entry struct {
	Nodes []NewNode
	Count []*Dir
	With  []framework.Op // what else is in the transaction
}

// NewNode is a node of an Entry.
type NewNode struct {
	Dir     *Dir
	Name    string
	Data    []byte
	Options []framework.CreateOption
}

// Entered is what became of an Entry.
type Entered struct {
	Nodes []string
	Czxid int64 // of all nodes: the transaction's; 0 if the answer was lost
	// Count are the directories as of the transaction, in the order of Entry.Count. One that must not be written is nil; all are if the
	// answer was lost, or if there are others about.
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
func (e Entry) Do(ctx context.Context, s *framework.Session) (Entered, error) {
	counted := e.Count
	if slices.ContainsFunc(counted, func(d *Dir) bool { return d.get().crowded }) {
		counted = nil
	}
	for rebuilds := 0; ; {
		t, err := e.prepare(ctx, s, counted)
		if err != nil {
			return Entered{}, err
		}
		results, err := s.Multi(ctx, t.ops...)
		if err == nil {
			e.touched()
			done := e.entered(t, results)
			for i, d := range counted {
				d.written(done.Count[i])
			}
			return done, done.complete(ctx, s)
		}
		cause := cause(results)
		switch {
		case cause < 0:
			return Entered{}, err
		case cause < len(e.With):
			return Entered{}, &RefusedError{cause, err}
		case t.dirs[cause] == nil:
			e.touched() // which others must do
		case errors.Is(err, zk.ErrNoNode) && rebuilds < maxRebuilds:
			rebuilds++
			e.forget() // where one was reaped, others were
		case errors.Is(err, zk.ErrNoAuth) && t.counts[cause] >= 0:
			t.dirs[cause].set(dirState{known: true, locked: true})
		case errors.Is(err, zk.ErrBadVersion) && t.counts[cause] >= 0:
			t.dirs[cause].overtaken()
			counted = nil
		default:
			return Entered{}, err
		}
	}
}

// forget makes it learn all directories anew.
func (e Entry) forget() {
	for _, n := range e.Nodes {
		n.Dir.set(dirState{})
	}
	for _, d := range e.Count {
		d.set(dirState{})
	}
}

// transaction is an Entry as it is sent.
type transaction struct {
	ops    []framework.Op
	dirs   []*Dir // that each operation is about; nil of those of Entry.With, and of touch
	counts []int  // which of Entry.Count each operation is; -1: none
}

func (t *transaction) add(op framework.Op, dir *Dir, count int) {
	t.ops, t.dirs, t.counts = append(t.ops, op), append(t.dirs, dir), append(t.counts, count)
}

func (e Entry) prepare(ctx context.Context, s *framework.Session, counted []*Dir) (transaction, error) {
	var t transaction
	for _, op := range e.With {
		t.add(op, nil, -1)
	}
	for _, n := range e.Nodes {
		if _, err := n.Dir.learn(ctx, s, false); err != nil {
			return transaction{}, err
		}
		t.add(framework.CreateOp(n.Dir.node(n.Name), n.Data, n.Options...), n.Dir, -1)
	}
	for i, d := range counted {
		state, err := d.learn(ctx, s, true)
		if err != nil {
			return transaction{}, err
		}
		if state.locked {
			continue
		}
		touch := state.unused && !slices.Contains(t.dirs, d)
		t.add(framework.SetOp(d.path, state.data, d.condition(state)), d, i)
		if touch {
			t.touch(d)
		}
	}
	return t, nil
}

// touch makes a child come and go: servers reap no container that has never had one.
func (t *transaction) touch(d *Dir) {
	child := d.node("touch")
	t.add(framework.CreateOp(child, nil), nil, -1)
	t.add(framework.DeleteOp(child, -1), nil, -1)
}

// touched notes that directories do not need to be touched any more.
func (e Entry) touched() {
	for _, d := range e.Count {
		d.touched()
	}
}

func (e Entry) entered(t transaction, results []framework.Result) Entered {
	done := Entered{Count: make([]*zk.Stat, len(e.Count))}
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
func (d Entered) complete(ctx context.Context, s *framework.Session) error {
	found := slices.DeleteFunc(slices.Clone(d.Nodes), func(node string) bool { return node == "" })
	if len(found) == len(d.Nodes) {
		return nil
	}
	Withdraw(ctx, s, found...)
	return ErrVanished
}

// cause is the index of the operation because of which a transaction was not applied; -1: it was something else.
func cause(results []framework.Result) int {
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
