package inspect

import (
	"context"
	"errors"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// dir is a node with what was read of its children.
type dir struct {
	*znode
	names []string          // of all children, sorted
	kids  map[string]*znode // of those that were read and exist
	subs  map[string]*dir   // those that are a part of the object
	shape *queueShape       // nil: the names of no queue are among the children
	torn  bool              // a child was deleted between two reads
	found *found            // nil: not an object
}

func (d *dir) name() string { return path.Base(d.path) }

// leaf reports whether the node has no children, and belongs to no session.
func (d *dir) leaf() bool { return len(d.names) == 0 && d.stat.EphemeralOwner == 0 }

// child returns the path of a child.
func child(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// minKids is how many children are read at least, to recognize a directory by them.
const minKids = 64

// kidsOf returns how many children of a node are read at most.
func (w *walker) kidsOf(n *znode) int {
	if n.stat == nil {
		return 0
	}
	return min(int(n.stat.NumChildren), max(w.cfg.maxNodes, minKids))
}

// load lists and reads the children of dirs, whose own nodes were read, and those of the directories
// that are a part of them. A node that was deleted meanwhile has the error zk.ErrNoNode afterwards.
func (w *walker) load(ctx context.Context, dirs []*dir) error {
	if err := w.loadChildren(ctx, dirs); err != nil {
		return err
	}
	return w.loadParts(ctx, dirs)
}

func (w *walker) loadChildren(ctx context.Context, dirs []*dir) error {
	if err := w.loadNames(ctx, dirs); err != nil {
		return err
	}
	return w.loadKids(ctx, dirs)
}

// loadParts loads the directories that are a part of those above them.
func (w *walker) loadParts(ctx context.Context, dirs []*dir) error {
	var subs []*dir
	for _, d := range dirs {
		for name, kid := range d.partNodes() {
			d.subs[name] = &dir{znode: kid}
			subs = append(subs, d.subs[name])
		}
	}
	return w.loadChildren(ctx, subs)
}

// partNodes yields the nodes of the directories that are a part of d.
func (d *dir) partNodes() iter.Seq2[string, *znode] {
	return func(yield func(string, *znode) bool) {
		for _, name := range partDirs {
			kid := d.kids[name]
			if kid == nil || kid.stat == nil || name == locksDir && d.kids[leasesDir] == nil {
				continue
			}
			if !yield(name, kid) {
				return
			}
		}
	}
}

func (w *walker) loadNames(ctx context.Context, dirs []*dir) error {
	var listed []*dir
	var nodes []*znode
	for _, d := range dirs {
		d.kids, d.subs = map[string]*znode{}, map[string]*dir{}
		d.names, d.shape, d.torn, d.found = nil, nil, false, nil
		if d.err == nil && d.stat.NumChildren > 0 {
			listed, nodes = append(listed, d), append(nodes, d.znode)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	names, errs, err := w.list(ctx, nodes)
	if err != nil {
		return err
	}
	for i, d := range listed {
		d.names, d.err = names[i], errs[i]
		if d.err == nil {
			d.shape = shapeOf(d.names)
		}
	}
	return nil
}

// loadKids reads the first nodes of each queue, and the first children of other directories.
func (w *walker) loadKids(ctx context.Context, dirs []*dir) error {
	var paths []string
	var owners []*dir
	for _, d := range dirs {
		if d.err != nil {
			continue
		}
		for _, name := range w.wanted(d) {
			paths, owners = append(paths, child(d.path, name)), append(owners, d)
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
		if errors.Is(n.err, zk.ErrNoNode) {
			owners[i].torn = true
			continue
		}
		owners[i].kids[path.Base(n.path)] = n
	}
	return nil
}

// wanted returns the names of the children to read.
func (w *walker) wanted(d *dir) []string {
	if d.shape != nil {
		return d.shape.first(w.cfg.maxNodes)
	}
	names := d.names[:min(len(d.names), max(w.cfg.maxNodes, minKids))]
	for _, name := range partDirs {
		if _, there := slices.BinarySearch(d.names, name); there && !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}
	return names
}

// maxTries is how often a directory is read before it is Torn.
const maxTries = 3

// settle recognizes dirs. It reads those that are objects again until no child was created or
// deleted between the first read and the last, at most maxTries times in all. A server never shows a
// session an older state than before. So if the numbers of changes at the begin and at the end are
// equal, the children were there together.
func (w *walker) settle(ctx context.Context, dirs []*dir) error {
	for try := 1; ; try++ {
		for _, d := range dirs {
			d.found = w.recognize(d)
		}
		moved, err := w.moved(ctx, dirs)
		if err != nil || len(moved) == 0 {
			return err
		}
		if try == maxTries {
			for _, d := range moved {
				d.found.object.tear()
			}
			return nil
		}
		if err := w.load(ctx, moved); err != nil {
			return err
		}
		dirs = moved
	}
}

// moved returns the recognized ones of dirs that are not any more what they were when they were
// listed, and takes their new nodes.
func (w *walker) moved(ctx context.Context, dirs []*dir) (moved []*dir, err error) {
	var paths []string
	for _, d := range dirs {
		for _, part := range d.parts() {
			paths = append(paths, part.path)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	now, err := w.get(ctx, paths)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		parts := d.parts()
		mine := now[:len(parts)]
		now = now[len(parts):]
		for i, part := range parts {
			if part.torn || !sameChildren(part.znode, mine[i]) {
				d.znode, moved = mine[0], append(moved, d)
				break
			}
		}
	}
	return moved, nil
}

// parts are the directories whose children make the object: none for an object without children.
func (d *dir) parts() []*dir {
	if d.found == nil || len(d.names) == 0 {
		return nil
	}
	all := []*dir{d}
	for _, name := range partDirs {
		if sub := d.subs[name]; sub != nil {
			all = append(all, sub)
		}
	}
	return all
}

// sameChildren reports whether two reads of a node show the same incarnation with the same children.
func sameChildren(a, b *znode) bool {
	return a.stat != nil && b.stat != nil && a.err == nil && b.err == nil &&
		a.stat.Czxid == b.stat.Czxid && a.stat.Cversion == b.stat.Cversion
}
