package enqueue

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Dir is a directory of lock nodes that a recipe has made for itself, in which no other program
// keeps data. A Counted writes the data that it has, to count its children. A Dir is safe for
// concurrent use.
type Dir struct {
	path string

	mu    sync.Mutex
	state dirState
}

// dirState is what is known of a directory.
type dirState struct {
	known     bool
	data      []byte
	readOnly  bool // its ACL forbids a write
	neverUsed bool // it has not had a child as far as is known
}

// NewDir returns the directory at path. It sends no request.
func NewDir(path string) *Dir { return &Dir{path: path} }

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.path }

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

// ReadOnly reports whether it is known that the directory must not be written.
func (d *Dir) ReadOnly() bool { return d.get().readOnly }

// markUsed notes that the directory has had a child.
func (d *Dir) markUsed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.neverUsed = false
}

// load reads the directory unless it is known, and creates it if it does not exist.
func (d *Dir) load(ctx context.Context, s *framework.Session) (dirState, error) {
	state := d.get()
	for !state.known {
		data, stat, err := s.Get(ctx, d.path)
		switch {
		case err == nil:
			state = dirState{known: true, data: data, neverUsed: stat.Cversion == 0}
		case ctxerr.Answered(ctx, err, zk.ErrNoAuth):
			state = dirState{known: true, readOnly: true}
		case errors.Is(err, zk.ErrNoNode):
			if err := s.CreateContainers(ctx, d.path); err != nil {
				return dirState{}, err
			}
		default:
			return dirState{}, err
		}
		d.set(state)
	}
	return state, nil
}

// Ensure reads the directory again, which did not exist a moment ago, and creates it if
// necessary.
func (d *Dir) Ensure(ctx context.Context, s *framework.Session) error {
	d.set(dirState{})
	_, err := d.load(ctx, s)
	return err
}
