package multilock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// ErrPartlyHeld means that a lock of a multi-lock is held under the context already, by a hold that is not of the same paths in the same
// order: to wait for the others while holding it is what a multi-lock is there to avoid.
var ErrPartlyHeld = errors.New("multilock: a part is held under this context already")

// Lock is what Of makes a multi-lock of: the locks of docent, and MultiLock itself.
type Lock interface {
	Acquire(ctx context.Context) (*recipes.Hold, error)
	TryAcquire(ctx context.Context) (*recipes.Hold, error)
}

// MultiLock is several locks that are acquired and released as one. It has no state of its own, and may be used by many goroutines.
// Curator: InterProcessMultiLock.
type MultiLock struct {
	how Lock // nil in the zero value
}

// Option configures a MultiLock of New.
type Option func(*config)

type config struct {
	data    queue.NodeData
	inOrder bool
}

// WithData sets the data of the lock nodes, which Participants of the single locks shows: who we are. The default is this host's IP
// address. Not together with WithIdentity.
func WithData(data []byte) Option {
	return func(c *config) { c.data.Set(data) }
}

// WithIdentity sets the data of the lock nodes to who we are: host, process and process id, as a recipes.Identity. Not together with
// WithData.
func WithIdentity() Option {
	return func(c *config) { c.data.Identify() }
}

// InOrder acquires the locks one after another, in the order of their paths as strings, instead of all at once. It is for those who share
// the locks with others that do the same: who holds one and waits for another, such as Curator's InterProcessMultiLock or nested
// mutexes, and who has places in both lines at once can wait for each other. All who share the locks must keep to that order then.
func InOrder() Option {
	return func(c *config) { c.inOrder = true }
}

// New makes a multi-lock of the mutexes on paths, which mutex.New makes single ones of. Each path is a node of its own. New asks no
// server; it refuses a nil or zero client, an empty list, a path that is there twice, one that is none, and "/", and says which.
func New(c *framework.Client, paths []string, opts ...Option) (*MultiLock, error) {
	if err := checkPaths(c, paths); err != nil {
		return nil, fmt.Errorf("multilock: %w", err)
	}
	var cfg config
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("multilock: option %d is nil", i)
		}
		opt(&cfg)
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, fmt.Errorf("multilock: %w", err)
	}
	return &MultiLock{newSet(c, slices.Clone(paths), data, cfg.inOrder)}, nil
}

func checkPaths(c *framework.Client, paths []string) error {
	if len(paths) == 0 {
		return errors.New("no paths")
	}
	seen := map[string]bool{}
	for _, path := range paths {
		if err := queue.CheckPath(c, path); err != nil {
			return err
		}
		if seen[path] {
			return fmt.Errorf("%w %q: it is there twice", framework.ErrInvalidPath, path)
		}
		seen[path] = true
	}
	return nil
}

// Of makes a multi-lock of any locks, even of several clients. They are acquired one after another, in this order: whoever acquires some
// of them in another order can wait for us while we wait for him. It refuses an empty list, and a lock that is nil or there twice. Two
// values for the same path are not noticed: the second re-enters, or waits for the first for as long as ctx allows where the lock is not
// reentrant.
func Of(locks ...Lock) (*MultiLock, error) {
	if len(locks) == 0 {
		return nil, errors.New("multilock: no locks")
	}
	for i, l := range locks {
		if l == nil {
			return nil, fmt.Errorf("multilock: lock %d is nil", i)
		}
		if j := slices.IndexFunc(locks[:i], func(other Lock) bool { return same(l, other) }); j >= 0 {
			return nil, fmt.Errorf("multilock: lock %d is lock %d again", i, j)
		}
	}
	return &MultiLock{&sequence{locks: slices.Clone(locks)}}, nil
}

// Acquire acquires all locks, or none. Those of New have their places in all lines from one transaction on, so that any two multi-locks
// are in the same order in all lines that they share, and cannot wait for each other, in whatever order the paths were given. They can
// still do so with somebody who holds one of the locks while waiting for another: see InOrder. If the transaction would be larger than
// the servers accept, which takes thousands of paths, the locks are acquired as InOrder would, and a warning is logged.
//
// The hold ends when any part of it ends, and then the others are released. It has a token for each lock, Hold.Tokens, in the order of the
// paths or locks, and a Guard over all parts, recipes.ErrManySessions if they are of several clients. It is released in one transaction, if
// it was made by one; otherwise the last lock first. Under its context a multi-lock of New re-enters that is of the same paths in the same
// order, and so does a mutex on one of the paths, as another level of the whole, with all its nodes and the token of that path; what Of is
// made of re-enters each by itself.
//
// ctx bounds the waiting for all locks together, never the hold. A ctx that has ended loses even if the locks are free. It fails
//
//   - when ctx ends: matching recipes.ErrNotAcquired too if others were ahead;
//   - with ErrPartlyHeld, at once, if New was given paths of which some are held under ctx by another hold;
//   - as the single locks do. What has been acquired by then is released in reverse, and all errors are joined: recipes.ErrReleasePending
//     if that goes on in the background, because ctx has ended or it takes more than a second.
//
// When one of the locks is lost before all of them are there, it begins again.
// Curator: acquire, which gives each lock the whole of the time, and goes on to the next after an error.
func (m *MultiLock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	return m.how.Acquire(ctx)
}

// TryAcquire is Acquire without waiting for others: recipes.ErrNotAcquired if somebody is ahead in one of the lines, which takes one read
// for each lock at most and leaves no trace. InOrder, and of locks given to Of, those before a busy one are acquired and released. It
// still waits for a connection, by the client's retry policy, as long as ctx lasts. Curator: acquire(0).
func (m *MultiLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	return m.how.TryAcquire(ctx)
}

func (m *MultiLock) usable(ctx context.Context) error {
	return queue.CheckCall(ctx, "multilock", "MultiLock", m != nil && m.how != nil)
}

var _ Lock = (*MultiLock)(nil)

// setKey identifies a list of locks, for re-entry: the first, and the list of the others.
type setKey struct{ first, others any }

func newSetKey(queues []*queue.Queue) any {
	var key any
	for _, q := range slices.Backward(queues) {
		key = setKey{q.Key(), key}
	}
	return key
}
