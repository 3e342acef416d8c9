package condition

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/mutexlock"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/mutex"
)

var (
	// ErrOtherLock means that a hold is not one of the condition's mutex, or also one of other locks.
	ErrOtherLock = errors.New("condition: not a hold of the mutex alone")
	// ErrOtherHolds means that the lock was entered more than once, so that Wait cannot release it.
	ErrOtherHolds = errors.New("condition: the lock has other holds, so it cannot be released")
)

// Condition is what the holder of a mutex waits for, and what a later holder signals. It has no
// state of its own: all Condition values for one path are the same condition. A Condition is safe
// for concurrent use. It corresponds to java.util.concurrent.locks.Condition; Curator has none.
type Condition struct {
	mutex *mutex.Mutex // nil in the zero value
	key   any          // of the mutex, for re-entry
	root  any          // the key of "/": paths of holds have the same namespace
	path  string
	data  []byte // of the nodes of waiters
}

// New returns the condition at path for the holders of m. path must be a node of its own, and not
// that of the mutex. The first Wait creates missing nodes as containers. All programs that use the
// condition must use the same mutex with it. A mutex may have several conditions.
//
// New makes no request. It returns an error for a nil or zero mutex, an invalid path, "/", and the
// path of the mutex. Java: Lock.newCondition.
func New(m *mutex.Mutex, path string, opts ...Option) (*Condition, error) {
	c, err := newCondition(m, path, opts)
	if err != nil {
		return nil, fmt.Errorf("new condition: %w", err)
	}
	return c, nil
}

func newCondition(m *mutex.Mutex, path string, opts []Option) (*Condition, error) {
	if m == nil {
		return nil, errors.New("the mutex is nil")
	}
	lock := mutexlock.Of(m)
	if lock == nil {
		return nil, fmt.Errorf("%w: mutex.Mutex", framework.ErrZeroValue)
	}
	if err := check.Path(lock.Client, path); err != nil {
		return nil, err
	}
	client := bridge.Of(lock.Client)
	if client.Key(path) == client.Key(m.Path()) {
		return nil, fmt.Errorf("%w %q: it is the path of the mutex", framework.ErrInvalidPath, path)
	}
	var cfg config
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, err
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, err
	}
	return &Condition{mutex: m, key: lock.LockKey(), root: client.Key("/"), path: path, data: data}, nil
}

// Path returns the path given to New, and "" for the zero value.
func (c *Condition) Path() string { return c.path }

// held returns the hold if it is a valid one of the mutex alone.
func (c *Condition) held(ctx context.Context, hold *recipes.Hold) (*ownership.Hold, error) {
	if err := check.Call(ctx, "condition", "Condition", c.mutex != nil); err != nil {
		return nil, err
	}
	if hold == nil {
		return nil, errors.New("the hold is nil")
	}
	own := ownership.Of(hold)
	if own != nil && (!own.IsOnlyOf(c.key) || bridge.OfSession(own.Session()).Key("/") != c.root) {
		return nil, fmt.Errorf("%w at %s: %s", ErrOtherLock, c.mutex.Path(), hold.Path())
	}
	return own, own.Err()
}
