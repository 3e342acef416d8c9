package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Dir is a node whose children are lock nodes. It is never written, but for one that a recipe has made for itself: that is written
// with the data that it has, to learn of its children in the transaction that adds to them. Safe for concurrent use.
type Dir struct {
	path  string
	inner bool // see Line.Inner

	mu    sync.Mutex
	state dirState // of an inner directory
}

// dirState is what is remembered of a directory that is written.
type dirState struct {
	known     bool
	data      []byte
	readOnly  bool // its ACL forbids to write it
	neverUsed bool // it has never had a child, as far as we know
}

// NewDir makes a directory of path. It asks no server.
func NewDir(path string) *Dir { return &Dir{path: path} }

// Path is the directory's path.
func (d *Dir) Path() string { return d.path }

func (d *Dir) node(name string) string { return d.path + "/" + name }

func (d *Dir) get() dirState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

func (d *Dir) set(s dirState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = s
}

// Locked reports whether it is known that the directory must not be written.
func (d *Dir) ReadOnly() bool { return d.get().readOnly }

// touched notes that it has had a child.
func (d *Dir) markUsed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.neverUsed = false
}

// learn reads the directory, and creates it if it is not there, unless it is known already.
func (d *Dir) load(ctx context.Context, s *framework.Session) (dirState, error) {
	known := d.get()
	for !known.known {
		data, stat, err := s.Get(ctx, d.path)
		switch {
		case err == nil:
			known = dirState{known: true, data: data, neverUsed: stat.Cversion == 0}
		case ctxerr.Answered(ctx, err, zk.ErrNoAuth):
			known = dirState{known: true, readOnly: true}
		case errors.Is(err, zk.ErrNoNode):
			if err := s.CreateContainers(ctx, d.path); err != nil {
				return dirState{}, err
			}
		default:
			return dirState{}, err
		}
		d.set(known)
	}
	return known, nil
}

// Make sees to it that the directory is there, which it was not a moment ago.
func (d *Dir) Ensure(ctx context.Context, s *framework.Session) error {
	d.set(dirState{})
	_, err := d.load(ctx, s)
	return err
}
