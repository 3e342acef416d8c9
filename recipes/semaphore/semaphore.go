package semaphore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
	"github.com/docent-zk/docent/recipes/internal/participants"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/recipes/internal/report"
)

// leaseMarker is the ending of the names of permits, before the sequence number. It is Curator's,
// to the byte.
const leaseMarker = "lease-"

var leaseRules = queue.Rules{Kind: leaseMarker, Conflicting: []string{leaseMarker}}

// ErrLimit means that a number of permits does not match a limit: processes that use a semaphore at
// the same time have different limits, more permits are wanted than a fixed limit allows, the node
// of a shared limit holds no number, or SetLimit cannot set it.
var ErrLimit = errors.New("semaphore: the permits do not match the limit")

// Semaphore grants a limited number of permits, first come, first served, to processes and to the
// goroutines of one process. It has no state of its own: all Semaphore values for one path are the
// same semaphore. A Semaphore is safe for concurrent use. It never re-enters. Curator:
// InterProcessSemaphoreV2.
type Semaphore struct {
	client    *framework.Client
	path      string
	lock      *queue.Lock  // nil in the zero value; the first in its queue may create permits
	locks     *queue.Queue // of lock
	leases    *queue.Queue // the permits; nothing waits in it
	locksDir  *enqueue.Dir // of locks
	leasesDir *enqueue.Dir // of leases
	reports   *report.Reporter
	slots     bool // permits have a number
	data      []byte
	limit     *limit
	contended atomic.Bool // the last acquire had to wait, so to enqueue at once saves requests
}

// Option configures a Semaphore.
type Option func(*config) error

type config struct {
	data  nodedata.Data
	limit *string // the node of the shared limit; nil: it is fixed
	slots bool
}

// WithData sets the data of the nodes, which Participants shows. It should identify the client. The
// default is this host's IP address. WithData and WithIdentity exclude each other. Curator:
// setNodeData.
func WithData(data []byte) Option {
	return func(c *config) error {
		c.data.Set(data)
		return nil
	}
}

// WithIdentity sets the data of the nodes to host, process and process id, as a recipes.Identity.
// WithIdentity and WithData exclude each other.
func WithIdentity() Option {
	return func(c *config) error {
		c.data.Identify()
		return nil
	}
}

// WithSharedLimit reads the number of permits from a node that all processes share. SetLimit
// changes the number while the semaphore is in use. A missing node is created, as a persistent
// node, with the number given to New. An empty node is filled with that number.
//
// The node must have no recipe at or below it. New fails with framework.ErrInvalidPath for path
// itself, all nodes above it, and locks and leases below it. Recipes, Curator's too, create such
// nodes as containers. The servers delete an empty container, and the limit with it.
//
// All users of the semaphore must name the same node. One that does not is not noticed, and uses
// another limit. Curator: SharedCount, on the same node.
func WithSharedLimit(node string) Option {
	return func(c *config) error {
		c.limit = &node
		return nil
	}
}

// WithSlots gives each permit a number, see Slots. No other permit with this option has the same
// number at the same time. Use it to divide a fixed set of resources, such as ports or devices. An
// acquire takes one read more.
func WithSlots() Option {
	return func(c *config) error {
		c.slots = true
		return nil
	}
}

// New returns a semaphore of the given number of permits on path, which must be a node of its own.
// All programs must use the same kind of lock on a path. Two kinds on one path do not exclude each
// other. The first acquire creates missing nodes as containers. New makes no request. It returns an
// error for a nil or unusable client, an invalid path, "/", and a number of permits that is less
// than 1 or greater than 2147483647.
func New(c *framework.Client, path string, permits int, opts ...Option) (*Semaphore, error) {
	s, err := newSemaphore(c, "semaphore", path, permits, opts)
	if err != nil {
		return nil, fmt.Errorf("new semaphore: %w", err)
	}
	return s, nil
}

func newSemaphore(c *framework.Client, recipe, path string, permits int, opts []Option) (*Semaphore, error) {
	if err := check.Path(c, path); err != nil {
		return nil, err
	}
	if err := checkPermits(permits); err != nil {
		return nil, err
	}
	var cfg config
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, err
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, err
	}
	l, err := newLimit(path, permits, cfg.limit)
	if err != nil {
		return nil, err
	}
	s := &Semaphore{
		client: c,
		path:   path,
		data:   data,
		leases: queue.NewQueue(c, path+"/leases", leaseRules, data),
		locks:  queue.NewQueue(c, path+"/locks", queue.Exclusive, data),
		limit:  l,
		slots:  cfg.slots,
	}
	s.locksDir, s.leasesDir = enqueue.NewDir(s.locks.Path()), enqueue.NewDir(s.leases.Path())
	s.lock = queue.New(queue.Spec{Client: c, Recipe: recipe, Paths: []string{path}, Queues: []*queue.Queue{s.locks}})
	s.reports = report.New(s.lock).NameHolders(s.oldestHolder)
	return s, nil
}

func checkPermits(n int) error {
	if n < 1 || n > maxPermits {
		return fmt.Errorf("permits %d must be between 1 and %d", n, maxPermits)
	}
	return nil
}

// Acquire acquires one permit, as AcquireN does. Curator: acquire.
func (s *Semaphore) Acquire(ctx context.Context) (*recipes.Hold, error) { return s.AcquireN(ctx, 1) }

// TryAcquire acquires one permit, as TryAcquireN does. Curator: acquire(0).
func (s *Semaphore) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.TryAcquireN(ctx, 1)
}

// AcquireN waits in the queue until n permits are free at the same time. It acquires all of them,
// as one hold, or none: a waiter has no permit that another one could wait for. So an acquire of
// many permits keeps the acquires behind it waiting. The permits of one hold are released together.
// To release them one by one, acquire them one by one.
//
// An acquire of more permits than a shared limit allows is no error, because the limit can be
// raised. Until then it waits, and all acquires behind it wait with it, also for permits that are
// free. It is the same when SetLimit lowers the limit below what an acquire waits for. A warning
// with both numbers is logged once, when an acquire that is first in the queue begins to wait for
// that reason.
//
// ctx limits only the wait, not the hold. If ctx is already done, AcquireN fails even if permits
// are free. AcquireN fails
//
//   - at once if n is not positive, or, with ErrLimit, if it is larger than a fixed limit;
//   - with framework.ErrTooLarge if n nodes are too many for one transaction, as some thousands
//     are;
//   - when ctx ends; the error also matches recipes.ErrNotAcquired if there were waiters ahead, or
//     too few free permits, or framework.ErrNotConnected in an outage;
//   - with ErrLimit, naming both numbers, if the limit is fixed and another one is in use;
//   - with ErrLimit, naming the data, if the limit is shared and its node holds no number of
//     permits;
//   - when the node cannot be created: framework.ErrNotConnected once the client's retry policy is
//     exhausted, zk.ErrNoAuth, ... This includes creating it again after it was lost;
//   - with framework.ErrClosed when the client is closed.
//
// While AcquireN waits, an outage that ends before the session's deadline costs nothing. If the
// session is lost, or another client deletes the node, AcquireN enqueues again at the end. When
// AcquireN fails its nodes are deleted, in the background if that is not possible at once. Curator:
// acquire(qty), which takes the permits one after another and can deadlock with others of its kind.
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*recipes.Hold, error) {
	lock, err := s.lockOf(ctx, n)
	if err != nil {
		return nil, err
	}
	return recipes.NewHold(s.reports.Acquire(ctx, lock))
}

// TryAcquireN is AcquireN that does not wait for other clients. If there are waiters, or too few
// free permits, it fails with recipes.ErrNotAcquired and creates no node. This takes two reads, or
// three if the limit is shared. It still waits for a connection, by the client's retry policy,
// until ctx ends. Otherwise it fails like AcquireN. Curator: acquire(qty, 0).
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*recipes.Hold, error) {
	lock, err := s.lockOf(ctx, n)
	if err != nil {
		return nil, err
	}
	return recipes.NewHold(s.reports.Try(ctx, lock))
}

// Do acquires one permit, calls fn with a context that ends with the hold, and releases the hold:
// see recipes.Do.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, s, fn)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin. Curator: acquire(time, unit).
func (s *Semaphore) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, s, d)
}

// Path returns the path given to New, and "" for the zero value.
func (s *Semaphore) Path() string { return s.path }

// lockOf returns the lock that is n permits.
func (s *Semaphore) lockOf(ctx context.Context, n int) (*queue.Lock, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if err := s.limit.admits(n); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", s.path, err)
	}
	return s.lock.WithGate(&admission{s, n}), nil
}

func (s *Semaphore) check(ctx context.Context) error {
	return check.Call(ctx, "semaphore", "Semaphore", s.lock != nil)
}

// Participants returns the permits, the oldest first, then the waiters in order: those that hold
// and those that wait for permits. It is empty if there are none. A hold of several permits has a
// participant for each. A Curator client that is first in the queue creates its permit before it
// may use it, and is listed as a holder already. Curator: getParticipantNodes, which lists the
// permits only.
//
// Participants fails when ctx ends, and like framework.Client.Children and Get.
func (s *Semaphore) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	holders, err := participants.List(ctx, s.leases, leaseMarker)
	if err != nil {
		return nil, err
	}
	waiters, err := participants.List(ctx, s.locks, queue.Exclusive.Conflicting...)
	if err != nil {
		return nil, err
	}
	for i := range holders {
		holders[i] = permit(holders[i])
	}
	for i := range waiters { // the first one waits for permits
		waiters[i].Holds, waiters[i].HeldSince = false, time.Time{}
	}
	return append(holders, waiters...), nil
}

// permit returns the participant of a permit, whose node is created by the transaction that
// acquires it.
func permit(p recipes.Participant) recipes.Participant {
	p.Holds, p.HeldSince = true, p.Since
	return p
}

// Limit asks the servers for the number of permits: the number given to New, or that of the shared
// node. Like an acquire it notes the number if none is noted, or if another one is noted and the
// semaphore is not in use. It fails with ErrLimit where an acquire does. Curator:
// SharedCount.getCount.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	if err := s.check(ctx); err != nil {
		return 0, err
	}
	n, err := s.readLimit(ctx)
	if err != nil {
		return 0, fmt.Errorf("limit of %s: %w", s.path, err)
	}
	return n, nil
}

func (s *Semaphore) readLimit(ctx context.Context) (int, error) {
	session, err := s.client.Session(ctx)
	if err != nil {
		return 0, err
	}
	s.limit.forget()
	r, err := s.limit.read(ctx, session, s)
	return r.permits, err
}

// SetLimit changes the number of permits of a semaphore with WithSharedLimit, for all its users. A
// higher limit lets waiters in, first come, first served. A lower limit takes no permit away, but
// there are no new permits until enough are released. A limit of 0 allows none. No acquire that
// succeeds after SetLimit has returned used an older limit. It fails with ErrLimit if the limit is
// fixed, or if permits is negative or larger than 2147483647. Otherwise it fails like
// framework.Client.Set of any version. Curator: SharedCount.setCount.
func (s *Semaphore) SetLimit(ctx context.Context, permits int) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := s.limit.set(ctx, s.client, permits); err != nil {
		return fmt.Errorf("set limit of %s: %w", s.path, err)
	}
	return nil
}
