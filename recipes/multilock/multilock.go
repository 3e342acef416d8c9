package multilock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// ErrPartlyHeld means that the context carries a hold of one of the locks, but not of the same
// paths in the same order. Waiting for the other locks under that hold could deadlock.
var ErrPartlyHeld = errors.New("multilock: the context carries a hold of some of the locks")

// MultiLock is several locks that are acquired and released as one. It has no state of its own and
// is safe for concurrent use. Curator: InterProcessMultiLock.
type MultiLock struct {
	lock recipes.Locker // a set or a sequence; nil in the zero value
}

// Option configures a MultiLock of New.
type Option func(*config) error

type config struct {
	data    nodedata.Data
	inOrder bool
}

// WithData sets the data of the lock nodes, which Participants of the single locks shows. It should
// identify the client. The default is this host's IP address. WithData and WithIdentity exclude
// each other.
func WithData(data []byte) Option {
	return func(c *config) error {
		c.data.Set(data)
		return nil
	}
}

// WithIdentity sets the data of the lock nodes to host, process and process id, as a
// recipes.Identity. WithIdentity and WithData exclude each other.
func WithIdentity() Option {
	return func(c *config) error {
		c.data.Identify()
		return nil
	}
}

// WithPathOrder acquires the locks one by one, in the order of their paths as strings, instead of
// all at once. Use it if other clients acquire the same locks one by one, with nested mutexes or
// Curator's InterProcessMultiLock: mixing both ways can deadlock. Then all clients that share the
// locks must acquire them in that order.
func WithPathOrder() Option {
	return func(c *config) error {
		c.inOrder = true
		return nil
	}
}

// New returns a multi-lock of the mutexes on paths, the same as those of mutex.New. Each path must
// be a node of its own. New makes no request. It returns an error for a nil or unusable client, an
// empty list, a path that is given twice, an invalid path, and "/".
func New(c *framework.Client, paths []string, opts ...Option) (*MultiLock, error) {
	if err := checkPaths(c, paths); err != nil {
		return nil, fmt.Errorf("new multi-lock: %w", err)
	}
	var cfg config
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, fmt.Errorf("new multi-lock: %w", err)
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, fmt.Errorf("new multi-lock: %w", err)
	}
	return &MultiLock{newSet(c, slices.Clone(paths), data, cfg.inOrder)}, nil
}

func checkPaths(c *framework.Client, paths []string) error {
	if len(paths) == 0 {
		return errors.New("no paths")
	}
	seen := map[string]bool{}
	for _, path := range paths {
		if err := check.Path(c, path); err != nil {
			return err
		}
		if seen[path] {
			return fmt.Errorf("%w %q: given twice", framework.ErrInvalidPath, path)
		}
		seen[path] = true
	}
	return nil
}

// Combine returns a multi-lock of any locks, even of several clients. It acquires them one after
// another, in the order given. Clients that acquire some of the locks in another order can deadlock
// with it.
//
// Combine returns an error for an empty list, and for a lock that is nil or given twice. It does
// not notice two values for the same path. If their lock is reentrant, the second one re-enters. If
// not, it waits for the first until ctx ends.
func Combine(locks ...recipes.Locker) (*MultiLock, error) {
	if len(locks) == 0 {
		return nil, errors.New("multilock: no locks")
	}
	for i, l := range locks {
		if l == nil {
			return nil, fmt.Errorf("multilock: lock %d is nil", i)
		}
		if j := slices.IndexFunc(locks[:i], func(other recipes.Locker) bool { return same(l, other) }); j >= 0 {
			return nil, fmt.Errorf("multilock: lock %d is the same as lock %d", i, j)
		}
	}
	return &MultiLock{&sequence{locks: slices.Clone(locks)}}, nil
}

// Acquire acquires all locks, or none. A multi-lock of New enters all queues in one transaction, so
// any two of them are in the same order in all queues that they share. They cannot deadlock, in
// whatever order the paths were given. They can deadlock with a client that holds one of the locks
// while it waits for another: see WithPathOrder. If the transaction would be larger than the
// servers accept, which takes thousands of paths, the locks are acquired as with WithPathOrder, and
// a warning is logged.
//
// The hold ends when any part of it ends, and then the other parts are released. Hold.Tokens
// returns a token for each lock, in the order of the paths or locks. Hold.Guard checks all parts,
// and fails with recipes.ErrManySessions if they are of several clients. A hold that was acquired
// in one transaction is released in one. Otherwise the last lock is released first.
//
// With the hold's context a multi-lock of New re-enters if it has the same paths in the same order.
// A mutex on one of the paths re-enters, too: its hold has all nodes of the multi-lock and the
// token of that path. With a hold of Combine, each of its locks re-enters by itself.
//
// ctx limits only the wait for all locks together, not the hold. If ctx is already done, Acquire
// fails even if the locks are free. Acquire fails
//
//   - when ctx ends; the error also matches recipes.ErrNotAcquired if there were nodes ahead, or
//     framework.ErrNotConnected in an outage;
//   - with ErrPartlyHeld, at once, if another hold that ctx carries has some of the paths of New;
//   - as the single locks fail. Then the locks acquired so far are released in reverse, and all
//     errors are joined. They match recipes.ErrReleasePending if the release continues in the
//     background, because ctx has ended or the release takes more than a second. So a program that
//     ignores recipes.ErrReleasePending of Do checks recipes.ErrNotAcquired first.
//
// If one of the locks is lost before all are acquired, Acquire begins again. Curator: acquire,
// which gives each lock the whole of the time, and goes on to the next after an error.
func (m *MultiLock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	return m.lock.Acquire(ctx)
}

// TryAcquire is Acquire that does not wait for other clients. If there is a node ahead in one of
// the queues, it fails with recipes.ErrNotAcquired. With New this takes at most one read for each
// lock and creates no node. With WithPathOrder and Combine, the locks before a busy one are
// acquired and released. It still waits for a connection, by the client's retry policy, until ctx
// ends. Otherwise it fails like Acquire. Curator: acquire(0).
func (m *MultiLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	return m.lock.TryAcquire(ctx)
}

// Do acquires the locks, calls fn with a context that ends with the hold, and releases the hold:
// see recipes.Do.
func (m *MultiLock) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, m, fn)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin. Curator: acquire(time, unit).
func (m *MultiLock) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, m, d)
}

func (m *MultiLock) check(ctx context.Context) error {
	return check.Call(ctx, "multilock", "MultiLock", m.lock != nil)
}

var _ recipes.Locker = (*MultiLock)(nil)

// setKey identifies a list of locks, for re-entry: the first lock, and the key of the others.
type setKey struct{ first, others any }

func newSetKey(queues []*queue.Queue) any {
	var key any
	for _, q := range slices.Backward(queues) {
		key = setKey{q.Key(), key}
	}
	return key
}
