package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Dir is a node whose children are lock nodes. It is written to learn of the children, with the nothing that is in it: one that has data is
// not written, nor one that somebody else has written since. Safe for concurrent use.
type Dir struct {
	path  string
	inner bool // see Line.Inner

	mu    sync.Mutex
	state dirState
}

// dirState is what is remembered of a directory.
type dirState struct {
	known   bool
	data    []byte // nothing: empty or null
	version int32  // that of the data
	stale   bool   // it has another version by now
	crowded bool   // others come and go, too: to count is in vain until somebody finds himself alone
	locked  bool   // it must not be written: its ACL forbids it, or it has data
	unused  bool   // it has never had a child, as far as we know
}

// condition is the version at which it may be written.
func (d *Dir) condition(s dirState) int32 {
	if d.inner {
		return -1
	}
	return s.version
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
func (d *Dir) Locked() bool { return d.get().locked }

// touched notes that it has had a child.
func (d *Dir) touched() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.unused = false
}

// seen notes what a list shows of it.
func (d *Dir) seen(stat *zk.Stat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.stale {
		d.state.stale, d.state.version, d.state.locked = false, stat.Version, stat.DataLength > 0
	}
	d.state.crowded = d.state.crowded && stat.NumChildren > 1
}

// overtaken notes that somebody else has written it.
func (d *Dir) overtaken() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.stale, d.state.crowded = true, true
}

// written notes what came of writing it; nil: it has another version.
func (d *Dir) written(stat *zk.Stat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stat == nil {
		d.state.stale = !d.state.locked && !d.inner // whose version nobody asks for
		return
	}
	d.state.version = max(d.state.version, stat.Version)
}

// learn reads the directory, and creates it if it is not there, unless it is known already, with its version if that is asked for.
func (d *Dir) learn(ctx context.Context, s *framework.Session, version bool) (dirState, error) {
	known := d.get()
	for !known.known || version && known.stale {
		data, stat, err := s.Get(ctx, d.path)
		switch {
		case err == nil:
			known = dirState{known: true, data: data, version: stat.Version, locked: len(data) > 0 && !d.inner, unused: stat.Cversion == 0}
		case ctxerr.Answered(ctx, err, zk.ErrNoAuth):
			known = dirState{known: true, locked: true}
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
func (d *Dir) Make(ctx context.Context, s *framework.Session) error {
	d.set(dirState{})
	_, err := d.learn(ctx, s, false)
	return err
}
