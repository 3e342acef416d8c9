package mutex

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Mutex is a fair, reentrant lock between processes and between the goroutines of one. It has no state of its own: any number of Mutex
// values for one path are the same lock, and one may be used by many goroutines. Curator: InterProcessMutex.
type Mutex struct {
	lock *queue.Lock // nil in the zero value
}

// Option configures a Mutex.
type Option func(*config)

type config struct {
	rules   queue.Rules
	data    queue.NodeData
	handoff *queue.Handoff
	sticky  *time.Duration
}

// WithData sets the data of the lock nodes, which Participants shows: who we are. The default is this host's IP address, as in
// Curator, where it is a subclass's getLockNodeBytes. Not together with WithIdentity.
func WithData(data []byte) Option {
	return func(c *config) { c.data.Set(data) }
}

// WithIdentity sets the data of the lock nodes to who we are: host, process and process id, as a recipes.Identity. Participants
// shows it parsed, and the warning of those who wait for long names it. Whoever asks for the lock back with Revoke writes over
// it. Not together with WithData.
func WithIdentity() Option {
	return func(c *config) { c.data.Identify() }
}

// WithKazooNames names the lock nodes as kazoo's Lock does, which knows no others and so would not wait for them. Among mutexes of docent the
// names make no difference: with or without the option all exclude each other on one path, and wait for kazoo's. But Curator does not
// wait for nodes of these names. Whoever re-enters has the node that is there, whatever its name. A kazoo Lock that is made with
// extra_lock_patterns=["-lock-"] needs no option.
func WithKazooNames() Option {
	return func(c *config) { c.rules = queue.Exclusive.WithName(queue.KazooLock) }
}

// WithLocalHandoff lets the goroutines of the client that contend for the lock share one place in line and one node: Release
// passes the node on to the next of them, in their order and without the servers. While others wait it does so at most streak
// times and not once span has passed since the node came to hold the lock, or was last found to be alone in line. Then it is deleted,
// so that the others have their turn, and the next of the goroutines get in line; so it is if somebody asks for it back, or while a
// Guard may still be applied. It is for locks that many goroutines of one process want.
//
// Whether others wait is asked when the node is due, which is one request. A node that has waited for others itself is deleted without
// asking.
//
// Holds of one node have the same Token: among goroutines of one client a resource must accept an equal one. A node that comes later
// has a larger one, whoever's it is: tokens are equal within one node, and never smaller later. All Mutex values with this option on
// one path of one client take part together, with the limits and the node data of whoever was first, but those with WithKazooNames only
// among themselves; TryAcquire takes no part, but for WithSticky. Curator has no counterpart.
func WithLocalHandoff(streak int, span time.Duration) Option {
	return func(c *config) { c.handoff = &queue.Handoff{Streak: streak, Span: span} }
}

// WithSticky has the client keep the node of a lock that it has released, for as long as idle, so that its next Acquire or TryAcquire
// is a hand-over that takes no request: a new Hold, with the same Token. It goes with WithLocalHandoff, whose limits count for a kept node
// too. It is for locks that mostly one process wants, again and again.
//
// The node is deleted as soon as another client queues, when somebody asks for it back, after idle, and when the client is closed. So
// whoever wants the lock meanwhile waits for a list and a deletion, not for idle; only a client that is cut off from the servers keeps
// others waiting for as long as its session lasts. While it is kept nobody has a hold, but the node is there: Participants lists it, and
// TryAcquire of other clients is recipes.ErrNotAcquired, and of this one just while the line is being read for others, where a limit has
// been reached. If it is lost, or its session, the next Acquire gets in line as if there had been none.
//
// Release returns nil once the lock is given back to the client, which makes no request. It says nothing about the node, and no error
// of its later deletion is reported: nobody's work depends on that.
func WithSticky(idle time.Duration) Option {
	return func(c *config) { c.sticky = &idle }
}

// handOff is what the engine is told of the options.
func (c config) handOff() *queue.Handoff {
	if c.handoff == nil || c.sticky == nil {
		return c.handoff
	}
	return &queue.Handoff{Streak: c.handoff.Streak, Span: c.handoff.Span, Idle: *c.sticky}
}

func (c config) check() (err error) {
	if h := c.handoff; h != nil && h.Streak < 1 {
		err = fmt.Errorf("local hand-off: streak %d must be positive", h.Streak)
	}
	if h := c.handoff; h != nil && h.Span <= 0 {
		err = errors.Join(err, fmt.Errorf("local hand-off: span %v must be positive", h.Span))
	}
	if c.sticky != nil && *c.sticky <= 0 {
		err = errors.Join(err, fmt.Errorf("sticky: idle %v must be positive", *c.sticky))
	}
	if c.sticky != nil && c.handoff == nil {
		err = errors.Join(err, errors.New("sticky: WithSticky goes with WithLocalHandoff only"))
	}
	return err
}

// New makes a mutex on path, which is a node of its own: the lock nodes are its children, and other children are ignored.
// Missing nodes are created as containers at the first acquire. New asks no server; it refuses a nil or zero client, a path that
// is none, and "/", and says why.
func New(c *framework.Client, path string, opts ...Option) (*Mutex, error) {
	if err := queue.CheckPath(c, path); err != nil {
		return nil, fmt.Errorf("mutex: %w", err)
	}
	cfg := config{rules: queue.Exclusive}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("mutex: option %d is nil", i)
		}
		opt(&cfg)
	}
	data, err := cfg.data.Bytes()
	if err := errors.Join(err, cfg.check()); err != nil {
		return nil, fmt.Errorf("mutex: %w", err)
	}
	lock := queue.Single(c, "mutex", path, cfg.rules, data)
	lock.HandOff = cfg.handOff()
	return &Mutex{lock}, nil
}

func (m *Mutex) usable(ctx context.Context) error {
	return queue.CheckCall(ctx, "mutex", "Mutex", m != nil && m.lock != nil)
}

// Acquire waits in line for the lock. Under the context of a valid hold of the same lock (see recipes.Hold.Context) it returns another
// level of that at once. Acquiring under the outer context while holding waits for oneself, until ctx ends.
//
// ctx bounds the waiting, never the hold. A ctx that has ended loses even if the lock is free. It fails
//
//   - when ctx ends: matching recipes.ErrNotAcquired too if others were ahead;
//   - when entering the line fails: framework.ErrNotConnected once the client's retry policy is exhausted, zk.ErrNoAuth, ... That
//     includes entering it again after the place was lost;
//   - with framework.ErrClosed when the client is closed.
//
// While in line, an outage that ends before the session's deadline costs nothing; when the session is lost, or somebody deletes
// our node, it queues again at the end. On every failure our node is deleted, in the background if it cannot be done at once.
// Curator: acquire.
func (m *Mutex) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return m.acquire(ctx, (*queue.Lock).Acquire)
}

// TryAcquire is Acquire without waiting for others: recipes.ErrNotAcquired if somebody holds the lock or waits for it, which takes one
// read and leaves no trace. It still waits for a connection, by the client's retry policy, as long as ctx lasts. Curator: acquire(0).
func (m *Mutex) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return m.acquire(ctx, (*queue.Lock).Try)
}

func (m *Mutex) acquire(ctx context.Context, how func(*queue.Lock, context.Context) (*ownership.Hold, error)) (*recipes.Hold, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	if hold, ok := ownership.Reenter(ctx, m.lock.LockKey()); ok {
		return recipes.NewHold(hold, nil)
	}
	return recipes.NewHold(how(m.lock, ctx))
}

// Participants lists the line, the holder first, then those who wait, in their order. It is empty if there is nobody. Curator:
// getParticipantNodes.
func (m *Mutex) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	return m.lock.Queues[0].Participants(ctx, queue.Exclusive.Conflicting...)
}

// Locker adapts the mutex for code that wants a sync.Locker. Like a sync.Mutex it is not reentrant, whatever ctx carries. Lock panics
// if the lock cannot be had, which includes the end of ctx; Unlock panics if the Locker is not locked, never for the network. The
// loss of the lock cannot be noticed through it: use Acquire where that matters.
func (m *Mutex) Locker(ctx context.Context) sync.Locker {
	return &locker{mutex: m, ctx: ctx, turn: make(chan struct{}, 1)}
}

// locker lets one goroutine at a time contend for the lock: one that has lost it without knowing must not unlock the next one's.
type locker struct {
	mutex *Mutex
	ctx   context.Context
	turn  chan struct{}   // has room for one: whoever has locked, or is about to
	hold  *ownership.Hold // of the goroutine that has the turn
}

func (l *locker) Lock() {
	if err := l.mutex.usable(l.ctx); err != nil {
		panic(err)
	}
	select {
	case l.turn <- struct{}{}:
	case <-l.ctx.Done():
		panic(fmt.Errorf("mutex: Lock: %w", ctxerr.Of(l.ctx)))
	}
	locked := false
	defer func() {
		if !locked {
			<-l.turn
		}
	}()
	hold, err := l.mutex.lock.Acquire(l.ctx)
	if err != nil {
		panic(fmt.Errorf("mutex: Lock: %w", err))
	}
	l.hold, locked = hold, true
}

func (l *locker) Unlock() {
	hold := l.hold
	if hold == nil {
		panic("mutex: Unlock of a Locker that is not locked")
	}
	l.hold = nil
	defer func() { <-l.turn }()
	_ = hold.Release()
}

// Revoke asks the holder or waiter whose lock node this is to give its place up: recipes.Hold.Revoked is closed there, and a
// Curator client's RevocationListener called. It returns when the request is written, not when the lock is free. A node that is
// gone is fine; one that is not named like a lock node is an error. The nodes are those that Participants lists. The request
// takes the place of the node's data, and so of what WithIdentity or WithData told. Curator: Revoker.attemptRevoke.
func Revoke(ctx context.Context, c *framework.Client, node string) error {
	if err := queue.Revoke(ctx, c, node, queue.Exclusive.Conflicting...); err != nil {
		return fmt.Errorf("mutex: revoke: %w", err)
	}
	return nil
}
