package rwlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// What the names of lock nodes end in, before the sequence number. Curator's, to the byte.
const (
	readMarker  = "__READ__"
	writeMarker = "__WRIT__"
)

// The kinds of nodes of both sides, ours and kazoo's.
var (
	readers = []string{readMarker, queue.KazooReadLock}
	writers = []string{writeMarker, queue.KazooLock}
)

// ErrUpgrade means that a read hold cannot become a write hold: Write().Acquire under the context of a read hold would wait for
// itself, or TryUpgrade has found others in front.
var ErrUpgrade = errors.New("rwlock: a read hold cannot be upgraded")

// RWLock is a fair, reentrant lock that any number of readers share, or one writer has alone. It has no state of its own: any number
// of RWLock values for one path are the same lock, and one may be used by many goroutines. Curator: InterProcessReadWriteLock.
type RWLock struct {
	read, write Side
}

// Side is one of the two locks that an RWLock is made of. Curator: ReadLock, WriteLock.
type Side struct {
	path  string
	kinds []string    // of nodes
	lock  *queue.Lock // nil in the zero value
	// inside is how those acquire it who hold the other side, if that is what the context carries; otherwise it returns nil.
	inside func(context.Context) acquisition
}

type acquisition func(context.Context) (*ownership.Hold, error)

// Option configures an RWLock.
type Option func(*config)

type config struct {
	read, write string // what the names of lock nodes end in
	data        queue.NodeData
}

// WithData sets the data of the lock nodes, which Participants shows: who we are. The default is this host's IP address. Not
// together with WithIdentity. Curator: lockData.
func WithData(data []byte) Option {
	return func(c *config) { c.data.Set(data) }
}

// WithIdentity sets the data of the lock nodes to who we are: host, process and process id, as a recipes.Identity. Not together with
// WithData.
func WithIdentity() Option {
	return func(c *config) { c.data.Identify() }
}

// WithKazooNames names the lock nodes as kazoo's ReadLock and WriteLock do, which know no others and so would not wait for them. Among locks of
// docent the names make no difference: with or without the option all exclude each other on one path, and wait for kazoo's. But Curator
// does not wait for nodes of these names. kazoo needs no option where its locks are made with extra_lock_patterns: ["__WRIT__"] for
// a ReadLock, and ["__WRIT__", "__READ__"] for a WriteLock.
func WithKazooNames() Option {
	return func(c *config) { c.read, c.write = queue.KazooReadLock, queue.KazooLock }
}

// New makes a read-write lock on path, which is a node of its own: the lock nodes of both sides are its children, and other children
// are ignored. Missing nodes are created as containers at the first acquire. New asks no server; it refuses a nil or zero client, a
// path that is none, and "/", and says why.
func New(c *framework.Client, path string, opts ...Option) (*RWLock, error) {
	if err := queue.CheckPath(c, path); err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	cfg := config{read: readMarker, write: writeMarker}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("rwlock: option %d is nil", i)
		}
		opt(&cfg)
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	l := &RWLock{
		read: Side{path: path, kinds: readers, lock: queue.Single(c, "rwlock-read", path, queue.Rules{
			Name: cfg.read, Conflicting: writers, Compatible: readers,
		}, data)},
		write: Side{path: path, kinds: writers, lock: queue.Single(c, "rwlock-write", path, queue.Rules{
			Name: cfg.write, Conflicting: slices.Concat(writers, readers), MayBeReplaced: true,
		}, data)},
	}
	l.read.lock.Queues[0].Dir = l.write.lock.Queues[0].Dir // what one side knows of it the other need not ask
	l.read.inside, l.write.inside = l.downgrade, l.refuse
	return l, nil
}

// Read is the side that is shared. Curator: readLock.
func (l *RWLock) Read() *Side {
	if l == nil {
		return nil
	}
	return &l.read
}

// Write is the side that one has alone. Curator: writeLock.
func (l *RWLock) Write() *Side {
	if l == nil {
		return nil
	}
	return &l.write
}

// downgrade reads under a write hold: beside it, so that nobody who waits comes between when that is released.
func (l *RWLock) downgrade(ctx context.Context) acquisition {
	h, ok := ownership.Current(ctx, l.write.lock.LockKey())
	if !ok {
		return nil
	}
	return func(ctx context.Context) (*ownership.Hold, error) { return l.read.lock.Downgrade(ctx, h) }
}

// refuse does not write under a read hold, which would be ahead of it in line.
func (l *RWLock) refuse(ctx context.Context) acquisition {
	if _, ok := ownership.Current(ctx, l.read.lock.LockKey()); !ok {
		return nil
	}
	return func(context.Context) (*ownership.Hold, error) {
		return nil, fmt.Errorf("acquire %s: %w: it would wait for itself", l.write.path, ErrUpgrade)
	}
}

// Acquire waits in line for this side of the lock: a reader until no writer is ahead, a writer until nobody is. So nobody is starved.
// Under the context of a valid hold of the same side (see recipes.Hold.Context) it returns another level of that at once. Otherwise,
// under the context of a valid hold of the other side,
//
//   - a reader is let in at once, beside the write hold: with its Token, and at its place in line, which it keeps when the write hold is
//     released. So a writer becomes a reader without anybody in between; what it does then it must do under a context that is not made
//     from the write hold, which ends that. It takes one transaction, which nobody passes who has lost the write hold, known or not;
//   - a writer fails with ErrUpgrade at once, for it would wait for itself: see TryUpgrade.
//
// ctx bounds the waiting, never the hold. A ctx that has ended loses even if the lock is free. It fails
//
//   - when ctx ends: matching recipes.ErrNotAcquired too if others were in the way;
//   - when entering the line fails: framework.ErrNotConnected once the client's retry policy is exhausted, zk.ErrNoAuth, ... That
//     includes entering it again after the place was lost;
//   - with framework.ErrClosed when the client is closed;
//   - with the reason why a write hold ended, such as recipes.ErrNodeDeleted, if reading under it finds that it has.
//
// While in line, an outage that ends before the session's deadline costs nothing; when the session is lost, or somebody deletes
// our node, it queues again at the end. On every failure our node is deleted, in the background if it cannot be done at once.
// Curator: acquire.
func (s *Side) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, (*queue.Lock).Acquire)
}

// TryAcquire is Acquire without waiting for others: recipes.ErrNotAcquired if somebody is in the way, which takes one read and leaves no
// trace. Under the context of a read hold a writer fails with ErrUpgrade here, too. It still waits for a connection, by the client's
// retry policy, as long as ctx lasts. Curator: acquire(0).
func (s *Side) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, (*queue.Lock).Try)
}

func (s *Side) acquire(ctx context.Context, how func(*queue.Lock, context.Context) (*ownership.Hold, error)) (*recipes.Hold, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if hold, ok := ownership.Reenter(ctx, s.lock.LockKey()); ok {
		return recipes.NewHold(hold, nil)
	}
	if besides := s.inside(ctx); besides != nil {
		return recipes.NewHold(besides(ctx))
	}
	return recipes.NewHold(how(s.lock, ctx))
}

func (s *Side) usable(ctx context.Context) error {
	return queue.CheckCall(ctx, "rwlock", "RWLock", s != nil && s.lock != nil)
}

// Participants lists those of this side, first come first: the readers, or the writers. It is empty if there is nobody. Curator:
// getParticipantNodes.
func (s *Side) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	return s.lock.Queues[0].Participants(ctx, s.kinds...)
}

// TryUpgrade, under the context of a valid read hold, acquires the write side beside it, ahead of all who wait, if this reader is the only
// one: otherwise, or if it is not sure, ErrUpgrade, at once. It never waits for others, so that readers who want the same thing do not
// deadlock; of those who try at the same time all may fail. The read hold goes on in any case; both are released, in any order.
//
// The Token is that of the read hold: no write before had a larger one, and every one after will have. Readers who came later and have
// left may have had, so a resource that is to be fenced against writers must not be shown the tokens of readers. It takes two reads and
// one transaction. Under the context of a valid write hold it is another level of that. Without either it is recipes.ErrNotHeld. It fails
// otherwise like TryAcquire. Curator has no counterpart.
func (l *RWLock) TryUpgrade(ctx context.Context) (*recipes.Hold, error) {
	if err := l.Write().usable(ctx); err != nil {
		return nil, err
	}
	if hold, ok := ownership.Reenter(ctx, l.write.lock.LockKey()); ok {
		return recipes.NewHold(hold, nil)
	}
	h, ok := ownership.Current(ctx, l.read.lock.LockKey())
	if !ok {
		return nil, fmt.Errorf("upgrade %s: %w: the context is not that of a read hold", l.read.path, recipes.ErrNotHeld)
	}
	hold, err := l.write.lock.Upgrade(ctx, h, writers...)
	if errors.Is(err, queue.ErrNotAlone) {
		return nil, fmt.Errorf("%w: %w", ErrUpgrade, err)
	}
	return recipes.NewHold(hold, err)
}

// Revoke asks the holder or waiter whose lock node this is to give its place up: recipes.Hold.Revoked is closed there, and a Curator
// client's RevocationListener called. It returns when the request is written, not when the lock is free. A node that is gone is fine;
// one that is not named like a lock node is an error. The request takes the place of the node's data. Curator: Revoker.attemptRevoke.
func Revoke(ctx context.Context, c *framework.Client, node string) error {
	if err := queue.Revoke(ctx, c, node, slices.Concat(readers, writers)...); err != nil {
		return fmt.Errorf("rwlock: revoke: %w", err)
	}
	return nil
}
