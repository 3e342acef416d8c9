package semaphore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// leaseMarker is what the names of permits end in, before the sequence number. Curator's, to the
// byte.
const leaseMarker = "lease-"

// ErrLimit means that a number of permits does not fit: processes which use a semaphore now do not
// agree on its limit, more permits are wanted than a fixed limit allows, the node of a shared limit
// holds no number, or SetLimit cannot set it.
var ErrLimit = errors.New("semaphore: limit")

// Semaphore gives out a limited number of permits, first come, first served, to processes and to
// the goroutines of one. It has no state of its own: any number of Semaphore values for one path
// are the same semaphore, and one may be used by many goroutines. It never re-enters. Curator:
// InterProcessSemaphoreV2.
type Semaphore struct {
	client *framework.Client
	path   string
	lock   *queue.Lock  // nil in the zero value; who is at the front of its line may take permits
	locks  *queue.Queue // of lock
	leases *queue.Queue // in which nobody waits
	slots  bool         // permits have one
	data   []byte
	limit  *limit
	rush   atomic.Bool // there were others the last time, so it saves requests to stand in line at once
}

// Option configures a Semaphore.
type Option func(*config)

type config struct {
	data  queue.NodeData
	limit *string // the node that the limit is in; nil: it is fixed
	slots bool
}

// WithData sets the data of the nodes, which Participants shows: who we are. The default is this
// host's IP address. Not together with WithIdentity. Curator: setNodeData.
func WithData(data []byte) Option {
	return func(c *config) { c.data.Set(data) }
}

// WithIdentity sets the data of the nodes to who we are: host, process and process id, as a
// recipes.Identity. Not together with WithData.
func WithIdentity() Option {
	return func(c *config) { c.data.Identify() }
}

// WithSharedLimit takes the number of permits from a node, from which all processes take it and in
// which SetLimit changes it while the semaphore is in use. If the node is not there it is made, to
// stay, with the number that New was given; that is also put into an empty one. It has to be a node
// of its own, that no recipe has children below: New refuses, with framework.ErrInvalidPath, path
// itself, everything above it, and locks and leases below it. Recipes, Curator's too, make such
// nodes as containers, which the servers delete when they are empty, and the limit would go with
// it. All who use the semaphore have to name the same node: those who do not are not noticed, and
// go by another limit. Curator: SharedCount, on the same node.
func WithSharedLimit(node string) Option {
	return func(c *config) { c.limit = &node }
}

// WithSlots gives each permit a number, see Slots, that no other permit has at the same time, of
// those who use this option too: for whoever needs not only leave to work, but one of a limited
// number of places to work at. An acquire takes a read more.
func WithSlots() Option {
	return func(c *config) { c.slots = true }
}

// New makes a semaphore of so many permits on path, which is a node of its own. Missing nodes are
// created as containers at the first acquire. New asks no server; it refuses a nil or zero client,
// a path that is none, "/", and a number of permits that is not positive, or larger than
// 2147483647, and says why.
func New(c *framework.Client, path string, permits int, opts ...Option) (*Semaphore, error) {
	s, err := newSemaphore(c, "semaphore", path, permits, opts)
	if err != nil {
		return nil, fmt.Errorf("semaphore: %w", err)
	}
	return s, nil
}

func newSemaphore(c *framework.Client, recipe, path string, permits int, opts []Option) (*Semaphore, error) {
	if err := queue.CheckPath(c, path); err != nil {
		return nil, err
	}
	if err := checkPermits(permits); err != nil {
		return nil, err
	}
	var cfg config
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("option %d is nil", i)
		}
		opt(&cfg)
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
		leases: queue.NewQueue(c, path+"/leases", queue.Rules{Name: leaseMarker, Conflicting: []string{leaseMarker}}, data).Inner(),
		locks:  queue.NewQueue(c, path+"/locks", queue.Exclusive, data).Inner(),
		limit:  l,
		slots:  cfg.slots,
	}
	s.lock = queue.New(queue.Spec{Client: c, Recipe: recipe, Paths: []string{path}, Queues: []*queue.Queue{s.locks}})
	return s, nil
}

func checkPermits(n int) error {
	if n < 1 || n > maxPermits {
		return fmt.Errorf("permits %d must be between 1 and %d", n, maxPermits)
	}
	return nil
}

// Acquire is AcquireN of one permit. Curator: acquire.
func (s *Semaphore) Acquire(ctx context.Context) (*recipes.Hold, error) { return s.AcquireN(ctx, 1) }

// TryAcquire is TryAcquireN of one permit. Curator: acquire(0).
func (s *Semaphore) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.TryAcquireN(ctx, 1)
}

// AcquireN waits in line until n permits are free at the same time, and acquires all of them, as
// one hold, or none: who waits has no permit that others could wait for. So those who want many
// keep those behind them waiting, too. They are also released as one: who wants to give them back
// one by one acquires them one by one.
//
// An acquire of more permits than a shared limit allows is no error, because the limit can be
// raised. Until then it waits, and all acquires behind it wait with it, also for permits that are
// free. It is the same when SetLimit lowers the limit below what an acquire waits for. A warning
// with both numbers is logged once, when an acquire that is first in the queue begins to wait for
// that reason.
//
// ctx bounds the waiting, never the hold. A ctx that has ended loses even if permits are free. It
// fails
//
//   - at once if n is not positive, or, with ErrLimit, if it is larger than a limit that is fixed;
//   - with framework.ErrTooLarge if n nodes are too many for one transaction, as some thousands are;
//   - when ctx ends: matching recipes.ErrNotAcquired too if others were ahead, or permits missing;
//   - with ErrLimit, naming both numbers, if the limit is fixed and others use the semaphore with another one; or what the node says, if
//     the limit is shared and that is no number of permits;
//   - when entering the line fails: framework.ErrNotConnected once the client's retry policy is exhausted, zk.ErrNoAuth, ... That
//     includes entering it again after the place was lost;
//   - with framework.ErrClosed when the client is closed.
//
// While in line, an outage that ends before the session's deadline costs nothing; when the session
// is lost, or somebody deletes our node, it queues again at the end. On every failure our nodes are
// deleted, in the background if it cannot be done at once. Curator: acquire(qty), which takes the
// permits one after another and can wait for others who do the same.
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*recipes.Hold, error) {
	return s.acquire(ctx, n, (*queue.Lock).Acquire)
}

// TryAcquireN is AcquireN without waiting for others: recipes.ErrNotAcquired if somebody waits or
// there are not enough permits, which takes two reads, or three if the limit is shared, and leaves
// no trace. It still waits for a connection, by the client's retry policy, as long as ctx lasts.
// Curator: acquire(qty, 0).
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*recipes.Hold, error) {
	return s.acquire(ctx, n, (*queue.Lock).Try)
}

func (s *Semaphore) acquire(
	ctx context.Context, n int, how func(*queue.Lock, context.Context) (*ownership.Hold, error),
) (*recipes.Hold, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if err := s.limit.admits(n); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", s.path, err)
	}
	return recipes.NewHold(how(s.lock.WithGate(&admission{s, n}), ctx))
}

func (s *Semaphore) usable(ctx context.Context) error {
	return queue.CheckCall(ctx, "semaphore", "Semaphore", s != nil && s.lock != nil)
}

// Participants lists the permits, the oldest first, then those who wait, in their order. It is
// empty if there is nobody. Curator: getParticipantNodes, which lists the permits only.
func (s *Semaphore) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	holders, err := s.leases.Participants(ctx, leaseMarker)
	if err != nil {
		return nil, err
	}
	waiters, err := s.locks.Participants(ctx, queue.Exclusive.Conflicting...)
	if err != nil {
		return nil, err
	}
	return append(holders, waiters...), nil
}

// Limit asks the servers how many permits there are now: as given to New, or as the shared node
// says. Like an acquire it notes the number where none is noted, or another one while nobody uses
// the semaphore, and fails with ErrLimit where an acquire does. Curator: SharedCount.getCount.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	if err := s.usable(ctx); err != nil {
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

// SetLimit changes the number of permits of a semaphore that was made WithSharedLimit, for all who
// use it. More permits go to those who wait, first come, first served, as many as there are; fewer
// take nothing away, but until enough are released nobody is let in. Nobody who is let in after
// SetLimit has returned is so by an older limit; 0 lets nobody in. It fails with ErrLimit if the
// limit is fixed, or permits is negative or larger than 2147483647; otherwise like
// framework.Client.Set of any version. Curator: SharedCount.setCount.
func (s *Semaphore) SetLimit(ctx context.Context, permits int) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := s.limit.set(ctx, s.client, permits); err != nil {
		return fmt.Errorf("set limit of %s: %w", s.path, err)
	}
	return nil
}

// Revoke asks the holder or waiter whose node this is to give its place up: recipes.Hold.Revoked is
// closed there. It returns when the request is written, not when the permit is free. A node that is
// gone is fine; one that is not named like those of a semaphore is an error. The request takes the
// place of the node's data. Curator has no counterpart.
func Revoke(ctx context.Context, c *framework.Client, node string) error {
	if err := queue.Revoke(ctx, c, node, append([]string{leaseMarker}, queue.Exclusive.Conflicting...)...); err != nil {
		return fmt.Errorf("semaphore: revoke: %w", err)
	}
	return nil
}
