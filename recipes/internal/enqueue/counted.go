package enqueue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// Counted is a Create that counts the children of directories as of its transaction. It writes the
// directories behind the creates: the Stat in the reply has the number of children.
type Counted struct {
	Create        // without After
	Dirs   []*Dir // those of the nodes among them
}

// ErrRetry: the caller should try again. Something has changed between a read and the request that
// relies on it, or an outage has passed.
var ErrRetry = errors.New("enqueue: try again")

// Do makes the transaction in s. It creates missing directories. It does not count those that must
// not be written.
func (c Counted) Do(ctx context.Context, s *framework.Session) (Created, error) {
	for attempts := 0; ; {
		w, err := c.prepare(ctx, s)
		if err != nil {
			return Created{}, err
		}
		c.After = w.ops
		created, err := c.attempt(ctx, s)
		if err == nil {
			c.markUsed()
			created.Count = w.stats(created.After, len(c.Dirs))
			return created, nil
		}
		dir, touched := w.refused(err, len(c.Before))
		switch {
		case touched:
			c.markUsed() // another client touches the directory
		case errors.Is(err, zk.ErrNoNode) && (dir != nil || isNoDirectory(err)) && attempts < bridge.MaxEnsures:
			attempts++
			for _, d := range c.Dirs {
				d.set(dirState{}) // prepare creates what is missing
			}
		case errors.Is(err, zk.ErrNoAuth) && dir != nil:
			dir.set(dirState{known: true, readOnly: true})
			if len(c.Before) > 0 {
				return Created{}, ErrRetry // Before may rely on the count
			}
		default:
			return Created{}, err
		}
	}
}

// writes are the operations that write the directories.
type writes struct {
	ops  []framework.Op
	dirs []*Dir // of each operation; nil: it touches a directory
	of   []int  // the index in Counted.Dirs of each operation
}

func (w *writes) add(op framework.Op, dir *Dir, of int) {
	w.ops, w.dirs, w.of = append(w.ops, op), append(w.dirs, dir), append(w.of, of)
}

// prepare makes the operations. It reads a directory that is not known yet.
func (c Counted) prepare(ctx context.Context, s *framework.Session) (w writes, err error) {
	for i, d := range c.Dirs {
		state, err := d.load(ctx, s)
		if err != nil {
			return writes{}, err
		}
		if state.readOnly {
			continue
		}
		w.add(framework.SetOp(d.path, state.data, -1), d, i)
		getsNode := slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Dir == d.path })
		if state.neverUsed && !getsNode {
			w.addTouch(d, i)
		}
	}
	return w, nil
}

// addTouch adds a create and a delete of a child, because servers delete an empty container only
// if it has had a child.
func (w *writes) addTouch(d *Dir, of int) {
	child := d.path + "/touch"
	w.add(framework.CreateOp(child, nil), nil, of)
	w.add(framework.DeleteOp(child, -1), nil, of)
}

// stats returns the Stats of n directories.
func (w *writes) stats(results []framework.Result, n int) []*zk.Stat {
	stats := make([]*zk.Stat, n)
	for i, r := range results {
		if w.dirs[i] != nil {
			stats[w.of[i]] = r.Stat
		}
	}
	return stats
}

// refused returns the directory of the write that has failed, or reports that a touch has failed.
func (w *writes) refused(err error, before int) (dir *Dir, touch bool) {
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Op < before {
		return nil, false
	}
	dir = w.dirs[refused.Op-before]
	return dir, dir == nil
}

// markUsed notes that the directories have had a child.
func (c Counted) markUsed() {
	for _, d := range c.Dirs {
		d.markUsed()
	}
}
