package mutex

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/handoff"
	"github.com/docent-zk/docent/recipes/internal/mutexlock"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/participants"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/recipes/internal/report"
)

// Mutex is a fair, reentrant lock between processes, and between the goroutines of one process. It
// has no state of its own: all Mutex values for one path are the same lock. A Mutex is safe for
// concurrent use. Curator: InterProcessMutex.
type Mutex struct {
	lock     *queue.Lock     // nil in the zero value
	acquirer report.Acquirer // lock, or a hand-off above it
	key      any             // of lock
	reports  *report.Reporter
}

func init() {
	mutexlock.Of = func(m any) *queue.Lock {
		if m := m.(*Mutex); m != nil {
			return m.lock
		}
		return nil
	}
}

// Option configures a Mutex.
type Option func(*config) error

type config struct {
	rules   queue.Rules
	data    nodedata.Data
	handoff *handoff.Limits
}

// WithData sets the data of the lock nodes, which Participants shows. It should identify the
// client. The default is this host's IP address, as in Curator, where a subclass overrides
// getLockNodeBytes. WithData and WithIdentity exclude each other.
func WithData(data []byte) Option {
	return func(c *config) error {
		c.data.Set(data)
		return nil
	}
}

// WithIdentity sets the data of the lock nodes to host, process and process id, as a
// recipes.Identity. Participants and the warning of a long wait show it parsed. Revoke overwrites
// it in the node that it asks for. WithIdentity and WithData exclude each other.
func WithIdentity() Option {
	return func(c *config) error {
		c.data.Identify()
		return nil
	}
}

// WithKazooNames names the lock nodes as kazoo's Lock does. That Lock waits for no nodes of other
// names. Mutexes of docent with and without the option exclude each other on one path, and all
// wait for kazoo's nodes. Curator does not wait for nodes of these names. Re-entering uses the
// existing node, whatever its name. The option is not needed for a kazoo Lock that is made with
// extra_lock_patterns=["-lock-"].
func WithKazooNames() Option {
	return func(c *config) error {
		c.rules = queue.Exclusive.WithKind(queue.KazooLock)
		return nil
	}
}

// Handoff has the limits of WithLocalHandoff.
type Handoff struct {
	// Streak is how many times a node is passed on at most while other clients wait. It is
	// positive.
	Streak int
	// Span is for how long a node is passed on at most while other clients wait. It is positive. It
	// begins when the node becomes the holder's, or when a limit was reached and no other client
	// waited.
	Span time.Duration
	// Idle is for how long the client keeps the node of a released lock that none of its goroutines
	// waits for. The next Acquire or TryAcquire of this client takes the node without a request: a
	// new Hold with the same Token. Streak and Span count for a kept node, too. 0 means that the
	// node is deleted at once.
	Idle time.Duration
}

// WithLocalHandoff lets the goroutines of the client that contend for the lock share one node.
// Release passes the node on to the next of these goroutines, in their order and without a
// request. Use it for locks that many goroutines of one process want. With Handoff.Idle, use it
// also for locks that mostly one process wants, again and again.
//
// While other clients wait, the node is passed on within the limits of h. Then it is deleted, the
// next client gets the lock, and the goroutines enqueue again. The node is also deleted when another
// client asks for it with Revoke, and while a Guard may still be applied. Release asks the servers
// only when a limit is reached whether other clients wait. That is one request. A node that has
// itself waited for other nodes is deleted without asking.
//
// A kept node is deleted when another client enqueues, when another client asks for it with Revoke,
// after Idle, and when the client is closed. So another client waits for a list and a deletion, not
// for Idle. Only a client that is cut off from the servers keeps others waiting until its session
// expires. If the node or its session is lost, the next Acquire enqueues as usual. While the node is
// kept there is no hold, but Participants lists the node. TryAcquire of other clients fails with
// recipes.ErrNotAcquired. So does TryAcquire of this client while the queue is being read because a
// limit was reached. Release returns nil once the node is kept, which takes no request. Errors of
// its later deletion are not reported: no work depends on it.
//
// Holds of one node have the same Token, so a resource must accept an equal token from the
// goroutines of one client. A later node has a larger one, whichever client it belongs to.
//
// All Mutex values with this option on one path of one client share the node, with the limits and
// the node data of the first of them to acquire. Those with and without WithKazooNames do not share
// one. TryAcquire takes no part, except that it takes a kept node. Curator has no counterpart.
func WithLocalHandoff(h Handoff) Option {
	return func(c *config) error {
		switch {
		case h.Streak < 1:
			return fmt.Errorf("WithLocalHandoff: Streak %d is not positive", h.Streak)
		case h.Span <= 0:
			return fmt.Errorf("WithLocalHandoff: Span %v is not positive", h.Span)
		case h.Idle < 0:
			return fmt.Errorf("WithLocalHandoff: Idle %v is negative: use 0 to keep no node", h.Idle)
		}
		c.handoff = &handoff.Limits{Streak: h.Streak, Span: h.Span, Idle: h.Idle}
		return nil
	}
}

// New returns a mutex on path, which must be a node of its own: the lock nodes are its children,
// and other children are ignored. All programs must use the same kind of lock on a path. Two kinds
// on one path do not exclude each other. The first acquire creates missing nodes as containers. New
// makes no request. It returns an error for a nil or unusable client, an invalid path, and "/".
func New(c *framework.Client, path string, opts ...Option) (*Mutex, error) {
	if err := check.Path(c, path); err != nil {
		return nil, fmt.Errorf("new mutex: %w", err)
	}
	cfg := config{rules: queue.Exclusive}
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, fmt.Errorf("new mutex: %w", err)
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, fmt.Errorf("new mutex: %w", err)
	}
	lock := queue.Single(c, "mutex", path, cfg.rules, data)
	m := &Mutex{lock: lock, acquirer: lock, key: lock.LockKey(), reports: report.New(lock)}
	if cfg.handoff != nil {
		m.acquirer = handoff.New(lock, *cfg.handoff)
	}
	return m, nil
}

func (m *Mutex) check(ctx context.Context) error {
	return check.Call(ctx, "mutex", "Mutex", m.lock != nil)
}

// Acquire waits in the queue for the lock. With the context of a valid hold of the same lock (see
// recipes.Hold.Context) it re-enters: it returns another hold of the same node at once. Acquiring
// again with the outer context deadlocks until ctx ends.
//
// ctx limits only the wait, not the hold. If ctx is already done, Acquire fails even if the lock is
// free. Acquire fails
//
//   - when ctx ends; the error also matches recipes.ErrNotAcquired if there were nodes ahead, or
//     framework.ErrNotConnected in an outage;
//   - when the node cannot be created: framework.ErrNotConnected once the client's retry policy is
//     exhausted, zk.ErrNoAuth, ... This includes creating it again after it was lost;
//   - with framework.ErrClosed when the client is closed.
//
// While Acquire waits, an outage that ends before the session's deadline costs nothing. If the
// session is lost, or another client deletes the node, Acquire enqueues again at the end. When
// Acquire fails its node is deleted, in the background if that is not possible at once. Curator:
// acquire.
func (m *Mutex) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if hold, err := m.reenter(ctx); hold != nil || err != nil {
		return recipes.NewHold(hold, err)
	}
	return recipes.NewHold(m.reports.Acquire(ctx, m.acquirer))
}

// TryAcquire is Acquire that does not wait for other clients. If the lock is held or waited for, it
// fails with recipes.ErrNotAcquired after one read and creates no node. It still waits for a
// connection, by the client's retry policy, until ctx ends. Otherwise it fails like Acquire.
// Curator: acquire(0).
func (m *Mutex) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	if hold, err := m.reenter(ctx); hold != nil || err != nil {
		return recipes.NewHold(hold, err)
	}
	return recipes.NewHold(m.reports.Try(ctx, m.acquirer))
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, m, fn)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin. Curator: acquire(time, unit).
func (m *Mutex) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, m, d)
}

// Path returns the path given to New, and "" for the zero value.
func (m *Mutex) Path() string {
	if m.lock == nil {
		return ""
	}
	return m.lock.Paths[0]
}

// reenter returns another hold of the lock if ctx carries a valid one, and nil if not.
func (m *Mutex) reenter(ctx context.Context) (*ownership.Hold, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	hold, _ := ownership.Reenter(ctx, m.key)
	return hold, nil
}

// Participants returns the queue: the holder first, then the waiters in order. It is empty if there
// is no node. It lists the directory and reads each node, so it can be slightly stale. A node that
// is deleted meanwhile is left out. It fails when ctx ends, and like framework.Client.Children and
// Get. Curator: getParticipantNodes.
func (m *Mutex) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	return participants.List(ctx, m.lock.Queues[0], queue.Exclusive.Conflicting...)
}

// Locker returns a sync.Locker for the mutex. Like a sync.Mutex it is not reentrant, whatever ctx
// carries. Lock panics if it cannot acquire the lock, also when ctx ends. Unlock panics if the
// Locker is not locked, but never because of the network. The sync.Locker does not report a loss of
// the lock: use Acquire where that matters.
func (m *Mutex) Locker(ctx context.Context) sync.Locker {
	return &locker{mutex: m, ctx: ctx, busy: make(chan struct{}, 1)}
}

// locker lets one goroutine at a time contend for the lock. Otherwise a goroutine that has lost the
// lock unnoticed could unlock the hold of another one.
type locker struct {
	mutex *Mutex
	ctx   context.Context
	busy  chan struct{}   // has room for one: full while a goroutine holds or acquires the lock
	hold  *ownership.Hold // of the goroutine that filled busy
}

func (l *locker) Lock() {
	if err := l.mutex.check(l.ctx); err != nil {
		panic(err)
	}
	select {
	case l.busy <- struct{}{}:
	case <-l.ctx.Done():
		panic(fmt.Errorf("Lock: %w", ctxerr.Of(l.ctx)))
	}
	locked := false
	defer func() {
		if !locked {
			<-l.busy
		}
	}()
	hold, err := l.mutex.reports.Acquire(l.ctx, l.mutex.acquirer)
	if err != nil {
		panic(fmt.Errorf("Lock: %w", err))
	}
	l.hold, locked = hold, true
}

func (l *locker) Unlock() {
	hold := l.hold
	if hold == nil {
		panic("mutex: Unlock of a Locker that is not locked")
	}
	l.hold = nil
	defer func() { <-l.busy }()
	_ = hold.Release()
}
