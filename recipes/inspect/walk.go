package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// ErrLimit means that a walk would read more nodes than WithLimit allows.
var ErrLimit = errors.New("inspect: the limit of nodes is reached")

// Walk returns a sequence of the objects at and below root: each before those below it, and siblings
// by name. It reads while the loop runs, one request at a time, and holds no more than a part of the
// tree: about a thousand nodes of each level, and the names of the children of each node above. It
// sets no watches and creates nothing.
//
//	for object, err := range inspect.Walk(ctx, client, "/locks") {
//
// An error with an Object is about its node alone, which could not be read: zk.ErrNoAuth, say. The
// object has only a path, and the sequence continues. An error without an Object ends the sequence:
// zk.ErrNoNode if there is no root, ErrLimit, the error of ctx when it ends, an invalid argument,
// and what framework.Client.Get returns when no server can be reached. So a sequence without such an
// error is complete.
//
// What is created or deleted during the walk may be left out or not. Nodes that are deleted
// meanwhile are no error. A server can be behind: to see all that was committed before the walk,
// call framework.Client.Sync first.
func Walk(ctx context.Context, client *framework.Client, root string, opts ...Option) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		w, err := newWalker(ctx, client, root, opts)
		if err == nil {
			w.yield = yield
			err = w.tree(ctx, root)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, fmt.Errorf("inspect %s: %w", root, err))
		}
	}
}

// Show returns the object at a path, of KindEmpty or KindUnknown if it is no object of a recipe. It
// fails with zk.ErrNoNode if there is no such node, with zk.ErrNoAuth if it may not be read, and as
// Walk does.
func Show(ctx context.Context, client *framework.Client, path string, opts ...Option) (*Object, error) {
	w, err := newWalker(ctx, client, path, opts)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", path, err)
	}
	d, err := w.one(ctx, path)
	if err == nil {
		err = d.err
	}
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", path, err)
	}
	if d.found == nil {
		return w.unrecognized(d), nil
	}
	return d.found.object, nil
}

// walker reads a tree.
type walker struct {
	*reader
	cfg   config
	yield func(*Object, error) bool
}

func newWalker(ctx context.Context, client *framework.Client, path string, opts []Option) (*walker, error) {
	cfg, err := newConfig(opts)
	switch {
	case err != nil:
		return nil, err
	case ctx == nil:
		return nil, framework.ErrNilContext
	case ctx.Err() != nil:
		return nil, ctxerr.Of(ctx)
	}
	if err := bridge.Of(client).Validate(); err != nil {
		return nil, err
	}
	if err := framework.CheckPath(path); err != nil {
		return nil, err
	}
	return &walker{reader: newReader(client, cfg.limit), cfg: cfg}, nil
}

// one reads the directory at a path.
func (w *walker) one(ctx context.Context, path string) (*dir, error) {
	nodes, err := w.get(ctx, []string{path})
	if err != nil {
		return nil, err
	}
	dirs := []*dir{{znode: nodes[0]}}
	if err := w.loadChildren(ctx, dirs); err != nil {
		return nil, err
	}
	return dirs[0], w.finish(ctx, dirs)
}

// finish loads what load leaves to it for dirs, and recognizes them.
func (w *walker) finish(ctx context.Context, dirs []*dir) error {
	err := w.loadParts(ctx, dirs)
	if err == nil {
		err = w.settle(ctx, dirs)
	}
	if err == nil && w.cfg.limitNode != nil {
		err = w.readLimits(ctx, dirs)
	}
	return err
}

// readLimits reads the shared limits of the semaphores among dirs.
func (w *walker) readLimits(ctx context.Context, dirs []*dir) error {
	var paths []string
	var of []*Object
	for _, d := range dirs {
		if d.found == nil || d.found.object.Kind != KindSemaphore {
			continue
		}
		if path := w.cfg.limitNode(d.path); path != "" {
			paths, of = append(paths, path), append(of, d.found.object)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	nodes, err := w.get(ctx, paths)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		of[i].Limit = nil
		if limit, ok := number(n.data, 4); n.err == nil && ok && limit >= 0 {
			w.setLimit(of[i], limit)
		}
	}
	return nil
}

// errStopped means that the loop over a walk has ended.
var errStopped = errors.New("inspect: stopped")

// tree yields the objects at and below root.
func (w *walker) tree(ctx context.Context, root string) error {
	nodes, err := w.get(ctx, []string{root})
	if err != nil {
		return err
	}
	if err := nodes[0].err; errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return w.visit(ctx, nodes, 0)
}

// maxKids bounds how many children are read at the same time, to recognize nodes by them.
const maxKids = 1024

// runs yields parts of all in order, each of one element or of at most maxKids by weigh.
func runs[T any](all []T, weigh func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n, sum := 1, weigh(all[0])
			for n < len(all) && sum+weigh(all[n]) <= maxKids {
				sum += weigh(all[n])
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// visit yields the objects at and below nodes, which are siblings and were read.
func (w *walker) visit(ctx context.Context, nodes []*znode, depth int) error {
	for some := range runs(nodes, w.kidsOf) {
		dirs := make([]*dir, len(some))
		for i, n := range some {
			dirs[i] = &dir{znode: n}
		}
		if err := w.loadChildren(ctx, dirs); err != nil {
			return err
		}
		for run := range runs(dirs, w.partKidsOf) {
			if err := w.finish(ctx, run); err != nil {
				return err
			}
			for i, d := range run {
				run[i] = nil // freed when it is done
				if err := w.enter(ctx, d, depth); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// partKidsOf returns how many children of the directories that are a part of d are read at most.
func (w *walker) partKidsOf(d *dir) (sum int) {
	for _, kid := range d.partNodes() {
		sum += w.kidsOf(kid)
	}
	return sum
}

// enter yields the object that d is, and those below it.
func (w *walker) enter(ctx context.Context, d *dir, depth int) error {
	switch {
	case errors.Is(d.err, zk.ErrNoNode):
		return nil // deleted meanwhile
	case d.err != nil:
		o := w.unrecognized(d)
		return w.emit(o, fmt.Errorf("inspect %s: %w", d.path, d.err))
	}
	owns := none
	if d.found != nil {
		owns = d.found.owns
		if err := w.emit(d.found.object, nil); err != nil {
			return err
		}
	} else if o := w.unrecognized(d); w.cfg.all {
		if err := w.emit(o, nil); err != nil {
			return err
		}
	}
	if w.cfg.depth >= 0 && depth >= w.cfg.depth {
		return nil
	}
	return w.below(ctx, d, owns, depth+1)
}

func (w *walker) emit(o *Object, err error) error {
	if !w.yield(o, err) {
		return errStopped
	}
	return nil
}

// below visits the children of d that are not a part of its object. It reads those that were not
// read yet.
func (w *walker) below(ctx context.Context, d *dir, owns func(string) bool, depth int) error {
	names, kids := d.names, d.kids
	d.names, d.kids, d.subs, d.shape, d.found = nil, nil, nil, nil, nil
	for len(names) > 0 {
		var batch []*znode
		var missing []string
		for len(names) > 0 && len(batch) < maxReads {
			name := names[0]
			names = names[1:]
			if owns(name) {
				continue
			}
			kid := kids[name]
			if delete(kids, name); kid == nil {
				kid = &znode{path: child(d.path, name)}
				missing = append(missing, kid.path)
			}
			batch = append(batch, kid)
		}
		if err := w.complete(ctx, batch, missing); err != nil {
			return err
		}
		if err := w.visit(ctx, batch, depth); err != nil {
			return err
		}
	}
	return nil
}

// complete reads those nodes of a batch that are missing.
func (w *walker) complete(ctx context.Context, batch []*znode, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	nodes, err := w.get(ctx, missing)
	if err != nil {
		return err
	}
	for i, kid := range batch {
		if kid.stat == nil && kid.err == nil {
			batch[i], nodes = nodes[0], nodes[1:]
		}
	}
	return nil
}
