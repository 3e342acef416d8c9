package rwlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/participants"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/recipes/internal/report"
)

// The endings of the names of lock nodes, before the sequence number. They are Curator's, to the
// byte.
const (
	readMarker  = "__READ__"
	writeMarker = "__WRIT__"
)

// The kinds of nodes of both sides, of docent and of kazoo.
var (
	readers = []string{readMarker, queue.KazooReadLock}
	writers = []string{writeMarker, queue.KazooLock}
)

// ErrUpgrade means that a read hold cannot become a write hold. Write().Acquire with the context of
// a read hold would deadlock, or TryUpgrade has found other nodes ahead.
var ErrUpgrade = errors.New("rwlock: a read hold cannot be upgraded")

// RWLock is a fair, reentrant lock that any number of readers share, or one writer has alone. It
// has no state of its own: all RWLock values for one path are the same lock. An RWLock is safe for
// concurrent use. Curator: InterProcessReadWriteLock.
type RWLock struct {
	read, write Side
}

// Side is the read side or the write side of an RWLock. Curator: ReadLock, WriteLock.
type Side struct {
	path    string
	kinds   []string    // of nodes
	lock    *queue.Lock // nil in the zero value
	reports *report.Reporter
	// inside acquires this side beside a hold of the other side that the context carries, or refuses
	// to. If the context carries none, it returns nil and no error.
	inside func(context.Context) (*ownership.Hold, error)
}

// Option configures an RWLock.
type Option func(*config) error

type config struct {
	read, write string // the endings of the names of lock nodes
	data        nodedata.Data
}

// WithData sets the data of the lock nodes, which Participants shows. It should identify the
// client. The default is this host's IP address. WithData and WithIdentity exclude each other.
// Curator: lockData.
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

// WithKazooNames names the lock nodes as kazoo's ReadLock and WriteLock do. Those locks wait for no
// nodes of other names. Locks of docent with and without the option exclude each other on one path,
// and all wait for kazoo's nodes. Curator does not wait for nodes of these names. The option is not
// needed for kazoo locks that are made with extra_lock_patterns: ["__WRIT__"] for a ReadLock, and
// ["__WRIT__", "__READ__"] for a WriteLock.
func WithKazooNames() Option {
	return func(c *config) error {
		c.read, c.write = queue.KazooReadLock, queue.KazooLock
		return nil
	}
}

// New returns a read-write lock on path, which must be a node of its own: the lock nodes of both
// sides are its children, and other children are ignored. All programs must use the same kind of
// lock on a path. Two kinds on one path do not exclude each other. The first acquire creates missing
// nodes as containers. New makes no request. It returns an error for a nil or unusable client, an
// invalid path, and "/".
func New(c *framework.Client, path string, opts ...Option) (*RWLock, error) {
	if err := check.Path(c, path); err != nil {
		return nil, fmt.Errorf("new read-write lock: %w", err)
	}
	cfg := config{read: readMarker, write: writeMarker}
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, fmt.Errorf("new read-write lock: %w", err)
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, fmt.Errorf("new read-write lock: %w", err)
	}
	l := &RWLock{
		read: newSide(queue.Single(c, "rwlock-read", path, queue.Rules{
			Kind: cfg.read, Conflicting: writers, Compatible: readers,
		}, data), readers),
		write: newSide(queue.Single(c, "rwlock-write", path, queue.Rules{
			Kind: cfg.write, Conflicting: slices.Concat(writers, readers), PositionsReused: true,
		}, data), writers),
	}
	l.read.inside, l.write.inside = l.downgrade, l.refuse
	return l, nil
}

func newSide(lock *queue.Lock, kinds []string) Side {
	return Side{path: lock.Paths[0], kinds: kinds, lock: lock, reports: report.New(lock)}
}

// Read returns the side that readers share. Curator: readLock.
func (l *RWLock) Read() *Side { return &l.read }

// Write returns the side that one writer has alone. Curator: writeLock.
func (l *RWLock) Write() *Side { return &l.write }

// downgrade acquires the read side beside a write hold, so that no waiter gets the lock in between
// when the write hold is released.
func (l *RWLock) downgrade(ctx context.Context) (*ownership.Hold, error) {
	h, ok := ownership.Current(ctx, l.write.lock.LockKey())
	if !ok {
		return nil, nil
	}
	return l.read.reports.Do(func() (*ownership.Hold, error) { return l.read.lock.Downgrade(ctx, h) })
}

// refuse fails under a read hold: the write side would wait for the node of that hold.
func (l *RWLock) refuse(ctx context.Context) (*ownership.Hold, error) {
	if _, ok := ownership.Current(ctx, l.read.lock.LockKey()); !ok {
		return nil, nil
	}
	return nil, fmt.Errorf("acquire %s: %w: the write side would wait for the read hold", l.write.path, ErrUpgrade)
}

// Acquire waits in the queue for this side of the lock: a reader until no writer is ahead, a writer
// until no node is ahead. So neither side is starved. With the context of a valid hold of the same
// side (see recipes.Hold.Context) it re-enters: it returns another hold of the same node at once.
// Otherwise, with the context of a valid hold of the other side,
//
//   - a reader gets the lock at once, beside the write hold, with the Token and the place in the
//     queue of the write hold. It keeps both when the write hold is released, so a writer becomes a
//     reader and no other writer comes between. Work after that release needs a context that is not
//     made from the write hold, because that context ends. This takes one transaction, which fails
//     if the write hold is lost, noticed or not;
//   - a writer fails with ErrUpgrade at once, because it would deadlock: see TryUpgrade.
//
// ctx limits only the wait, not the hold. If ctx is already done, Acquire fails even if the lock is
// free. Acquire fails
//
//   - when ctx ends; the error also matches recipes.ErrNotAcquired if conflicting nodes were ahead, or
//     framework.ErrNotConnected in an outage;
//   - when the node cannot be created: framework.ErrNotConnected once the client's retry policy is
//     exhausted, zk.ErrNoAuth, ... This includes creating it again after it was lost;
//   - with framework.ErrClosed when the client is closed;
//   - with the reason why a write hold ended, such as recipes.ErrNodeDeleted, if a reader under it
//     finds that it has ended.
//
// While Acquire waits, an outage that ends before the session's deadline costs nothing. If the
// session is lost, or another client deletes the node, Acquire enqueues again at the end. When
// Acquire fails its node is deleted, in the background if that is not possible at once. Curator:
// acquire.
func (s *Side) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if hold, err := s.reenter(ctx); hold != nil || err != nil {
		return recipes.NewHold(hold, err)
	}
	return recipes.NewHold(s.reports.Acquire(ctx, s.lock))
}

// TryAcquire is Acquire that does not wait for other clients. If a conflicting node is ahead, it
// fails with recipes.ErrNotAcquired after one read and creates no node. With the context of a read
// hold a writer fails with ErrUpgrade here, too. It still waits for a connection, by the client's
// retry policy, until ctx ends. Otherwise it fails like Acquire. Curator: acquire(0).
func (s *Side) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	if hold, err := s.reenter(ctx); hold != nil || err != nil {
		return recipes.NewHold(hold, err)
	}
	return recipes.NewHold(s.reports.Try(ctx, s.lock))
}

// Do acquires the side, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (s *Side) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, s, fn)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin. Curator: acquire(time, unit).
func (s *Side) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, s, d)
}

// Path returns the path given to New, and "" for the zero value.
func (s *Side) Path() string { return s.path }

// reenter returns another hold of this side if ctx carries a valid one. If ctx carries one of the
// other side, reenter acquires this side beside it. Otherwise it returns nil.
func (s *Side) reenter(ctx context.Context) (*ownership.Hold, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if hold, ok := ownership.Reenter(ctx, s.lock.LockKey()); ok {
		return hold, nil
	}
	return s.inside(ctx)
}

func (s *Side) check(ctx context.Context) error {
	return check.Call(ctx, "rwlock", "RWLock", s.lock != nil)
}

// Participants returns the nodes of this side in the order of the queue: the readers, or the
// writers, those that hold the lock first. It is empty if there is no node. A reader that holds
// beside a write hold, and a writer after TryUpgrade, are participants of their own. A participant
// that holds has a HeldSince only if the last node that arrived is of this side, too. Participants
// fails like that of a mutex.Mutex. Curator: getParticipantNodes.
func (s *Side) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return participants.List(ctx, s.lock.Queues[0], s.kinds...)
}

// TryUpgrade acquires the write side beside a valid read hold of ctx, ahead of all waiters, if that
// read hold is the only one. If there are other readers, or it is not sure, it fails with
// ErrUpgrade at once. It never waits for other readers, so readers that upgrade at the same time do
// not deadlock, but all of them may fail. The read hold stays valid in any case. The two holds are
// released in any order. It takes two reads and one transaction.
//
// The Token is that of the read hold. No earlier writer had a larger token, and every later writer
// has a larger one. A reader that came later and has left may have had a larger one: fence by
// writers' tokens only.
//
// With the context of a valid write hold TryUpgrade re-enters the write side. Without a hold of
// either side it fails with recipes.ErrNotHeld. Otherwise it fails like TryAcquire. Curator has no
// counterpart.
func (l *RWLock) TryUpgrade(ctx context.Context) (*recipes.Hold, error) {
	if err := l.Write().check(ctx); err != nil {
		return nil, err
	}
	if hold, ok := ownership.Reenter(ctx, l.write.lock.LockKey()); ok {
		return recipes.NewHold(hold, nil)
	}
	h, ok := ownership.Current(ctx, l.read.lock.LockKey())
	if !ok {
		return nil, fmt.Errorf("upgrade %s: %w: the context carries no read hold",
			l.read.path, recipes.ErrNotHeld)
	}
	hold, err := l.write.reports.Do(func() (*ownership.Hold, error) {
		return l.write.lock.Upgrade(ctx, h, writers...)
	})
	if errors.Is(err, queue.ErrNotOnlyHolder) {
		return nil, errtext.Because(ErrUpgrade, err)
	}
	return recipes.NewHold(hold, err)
}
