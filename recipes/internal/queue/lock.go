package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/recipes/internal/locknode"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Lock is acquired by a node at the front of its queue, or of each of several queues. It is safe
// for concurrent use.
type Lock struct {
	Spec
	log          *zap.Logger
	waitWarnings *rateLimit
	labels       []metrics.Labels // one for each path
}

// Spec describes a kind of lock.
type Spec struct {
	Client  *framework.Client
	Recipe  string   // the name in metrics and logs
	Paths   []string // the names in metrics and errors: one for each lock
	Queues  []*Queue
	Key     any      // for re-entry of all queues together; nil: there is none, see LockKey
	Gate    Gate     // nil: the front of the queue is the lock
	HandOff *Handoff // nil: each hold has a node of its own
	Standby bool     // a long wait is normal and logs no warning
}

// Gate is what has to be passed after the front of the queue, such as the permits of a
// semaphore.
type Gate interface {
	// Ready returns ErrBusy if the lock is not free. It only reads.
	Ready(ctx context.Context) error
	// TryFast acquires the lock without a node in the queue. It returns ErrBusy if that is not possible.
	TryFast(ctx context.Context, s *framework.Session) (*ownership.Hold, error)
	// Admit acquires the lock in exchange for the node at the front. It returns ErrBusy where it would
	// have to wait and must not.
	Admit(ctx context.Context, f *FrontWaiter) (*ownership.Hold, error)
	// Holder reads one of the holders.
	Holder(ctx context.Context) (recipes.Participant, error)
}

// New makes a lock. It sends no request.
func New(s Spec) *Lock {
	l := &Lock{Spec: s, waitWarnings: &rateLimit{}}
	l.log = s.Client.Logger().Named(s.Recipe).With(zap.String("path", l.name()))
	for _, path := range s.Paths {
		l.labels = append(l.labels, metrics.Labels{Recipe: s.Recipe, Path: path})
	}
	return l
}

// WithGate returns the same lock with another gate.
func (l *Lock) WithGate(g Gate) *Lock {
	other := *l
	other.Gate = g
	return &other
}

// name returns the name of the lock in errors and logs.
func (l *Lock) name() string {
	const enough = 5
	if more := len(l.Paths) - enough; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(l.Paths[:enough], ", "), more)
	}
	return strings.Join(l.Paths, ", ")
}

// Single makes a lock with a node in one queue.
func Single(client *framework.Client, recipe, path string, rules Rules, data []byte) *Lock {
	queues := []*Queue{NewQueue(client, path, rules, data)}
	return New(Spec{Client: client, Recipe: recipe, Paths: []string{path}, Queues: queues})
}

var (
	// ErrOwnNodeDeleted: another client has deleted the own node during the wait.
	ErrOwnNodeDeleted = errors.New("queue: node of the waiter deleted")
	// ErrBusy: a conflicting node is ahead, and the caller does not wait.
	ErrBusy = errors.New("queue: a conflicting node is ahead")
	// ErrRetry: something has changed between a read and the request that relies on it.
	ErrRetry = errors.New("queue: changed since it was read")

	// errGoroutineEnded: a logger, metrics or a retry policy has called runtime.Goexit on a
	// goroutine of the client.
	errGoroutineEnded = errors.New("queue: code of the program ended the goroutine of a waiter")
)

// LockKey returns the key for re-entry: Spec.Key, or that of the only queue.
func (l *Lock) LockKey() any {
	if l.Key == nil {
		return l.Queues[0].Key()
	}
	return l.Key
}

// Acquire waits until the lock is held. If its node is lost, with the session or because another
// client deletes it, Acquire creates a new one at the end of the queue. An Acquire that fails
// deletes its nodes.
func (l *Lock) Acquire(ctx context.Context) (hold *ownership.Hold, err error) {
	l.addWaiters(1)
	defer l.recordEnd(time.Now(), -1, &hold, &err)
	warner := l.newWaitWarner(ctx)
	defer warner.stop()
	if l.HandOff != nil {
		return l.acquireLocally(ctx, warner)
	}
	return l.acquire(ctx, warner)
}

func (l *Lock) acquire(ctx context.Context, warner *waitWarner) (*ownership.Hold, error) {
	return l.requeueWhenLost(ctx, func(ctx context.Context) (*ownership.Hold, error) { return l.attempt(ctx, warner) })
}

// Try creates a node only if no conflicting node is in the queue, and deletes it if another one
// was created before it.
func (l *Lock) Try(ctx context.Context) (hold *ownership.Hold, err error) {
	defer l.recordEnd(time.Now(), 0, &hold, &err)
	if l.HandOff != nil && l.HandOff.Idle > 0 {
		return l.tryLocally(ctx)
	}
	return l.try(ctx)
}

func (l *Lock) try(ctx context.Context) (*ownership.Hold, error) {
	return l.requeueWhenLost(ctx, func(ctx context.Context) (*ownership.Hold, error) {
		if err := l.checkFree(ctx); err != nil {
			return nil, err
		}
		return l.attempt(ctx, nil)
	})
}

// requeueWhenLost calls attempt again as long as the node is lost.
func (l *Lock) requeueWhenLost(ctx context.Context,
	attempt func(context.Context) (*ownership.Hold, error)) (*ownership.Hold, error) {
	for {
		hold, err := attempt(ctx)
		if mustRequeue(err) && ctx.Err() == nil {
			l.log.Info("place in the queue lost: enqueueing again", zap.Error(err))
			continue
		}
		return hold, l.acquireError(ctx, err)
	}
}

// mustRequeue reports whether an attempt has failed because its node or session was lost, which
// the caller need not know.
func mustRequeue(err error) bool {
	return errors.Is(err, ErrOwnNodeDeleted) || errors.Is(err, framework.ErrSessionLost)
}

// acquireError turns the error of an attempt into the error for the caller.
func (l *Lock) acquireError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBusy):
		err = recipes.ErrNotAcquired
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = fmt.Errorf("%w: %w", ctxerr.Of(ctx), err)
	}
	return fmt.Errorf("acquire %s: %w", l.name(), err)
}

// checkFree returns ErrBusy if the lock is not free. It only reads.
func (l *Lock) checkFree(ctx context.Context) error {
	for _, q := range l.Queues {
		children, _, err := l.Client.Children(ctx, q.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		case locknode.Has(children, q.rules.Conflicting):
			return ErrBusy
		}
	}
	if l.Gate != nil {
		return l.Gate.Ready(ctx)
	}
	return nil
}

// attempt creates a node in each queue and waits until they are at the front. If it fails, it
// deletes them. Without a warner it does not wait for other holders.
func (l *Lock) attempt(ctx context.Context, warner *waitWarner) (*ownership.Hold, error) {
	session, err := l.Client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if l.Gate != nil {
		hold, err := l.Gate.TryFast(ctx, session)
		if !errors.Is(err, ErrBusy) {
			return hold, err
		}
	}
	waiters, err := enqueue(ctx, session, l.Queues)
	if err != nil {
		return nil, err
	}
	held := false
	defer func() {
		if !held {
			deleteAll(ctx, waiters)
		}
	}()
	for _, w := range waiters {
		w.warnOfCounter()
	}
	warner.setWaiters(waiters)
	hold, err := l.waitAndGrant(ctx, waiters, warner)
	held = err == nil
	return hold, err
}

// waitAndGrant waits until the nodes are at the front, and makes the hold.
func (l *Lock) waitAndGrant(ctx context.Context, waiters []*waiter, warner *waitWarner) (*ownership.Hold, error) {
	waited, err := l.waitForFront(ctx, waiters, warner)
	switch {
	case err != nil:
		return nil, err
	case l.Gate != nil:
		return l.Gate.Admit(ctx, &FrontWaiter{waiter: waiters[0], warner: warner})
	}
	return l.grant(ctx, waiters, waited && len(waiters) > 1)
}

// waitForFront waits until all nodes are at the front, for all of them at the same time.
func (l *Lock) waitForFront(ctx context.Context, waiters []*waiter, warner *waitWarner) (waited bool, err error) {
	if len(waiters) == 1 {
		return waiters[0].waitForFront(ctx, warner)
	}
	requestLists(ctx, waiters)
	all, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	var mu sync.Mutex
	for _, w := range waiters {
		running.Go(func() {
			behind, failure := false, errGoroutineEnded
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				waited = waited || behind
				if failure != nil && err == nil {
					err = failure
					stop()
				}
			}()
			behind, failure = w.waitForFront(all, warner)
		})
	}
	running.Wait()
	return waited, err
}

// requestLists requests the lists of the queues that were not requested behind the creates, at
// most maxLists at a time. Each waiter sees the error of its own list.
func requestLists(ctx context.Context, waiters []*waiter) {
	for i := maxLists; i < len(waiters) && ctx.Err() == nil; i++ {
		if before := waiters[i-maxLists]; before.pendingList != nil {
			_ = before.pendingList.wait(ctx, before.session)
		}
		if w := waiters[i]; !w.isFirst() && !w.queue.hasLocalWaiter(w.session) {
			w.pendingList = w.queue.requestList(w.session)
		}
	}
}

// grant makes a hold of nodes at the front. checkNodes: during the wait for one node another may
// have been deleted, so all are checked.
func (l *Lock) grant(ctx context.Context, waiters []*waiter, checkNodes bool) (*ownership.Hold, error) {
	session := waiters[0].session
	lifetime, err := HoldLifetime(ctx, session, func(ctx context.Context, again bool) error {
		if again || checkNodes {
			return checkAll(ctx, waiters)
		}
		return confirmAll(ctx, waiters)
	})
	if err != nil {
		return nil, err
	}
	g := ownership.Grant{Session: session, Lifetime: lifetime, Recipe: l.Recipe, Key: l.Key}
	for _, w := range waiters {
		lock, node := w.grantParts()
		g.Locks, g.Nodes = append(g.Locks, lock), append(g.Nodes, node)
	}
	return l.NewHold(g), nil
}

// NewHold makes a hold of the lock, and logs it.
func (l *Lock) NewHold(g ownership.Grant) *ownership.Hold {
	if entry := l.log.Check(zap.DebugLevel, "acquired"); entry != nil { // the fields are made only if needed
		entry.Write(zap.String("node", g.Nodes[0].Path), logfield.Session(g.Session.ID()),
			logfield.Token(g.Locks[0].Token))
	}
	return ownership.New(g)
}

// confirmAll reads the tokens that are not known.
func confirmAll(ctx context.Context, waiters []*waiter) error {
	for _, w := range waiters {
		if err := w.readToken(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkAll checks in one transaction that all nodes still exist, after it has read the tokens
// that are not known.
func checkAll(ctx context.Context, waiters []*waiter) error {
	if err := confirmAll(ctx, waiters); err != nil {
		return err
	}
	var checks []framework.Op
	for _, w := range waiters {
		checks = append(checks, framework.CheckOp(w.path(), -1))
	}
	s := waiters[0].session
	_, err := RetryInSession(ctx, s, func(ctx context.Context) ([]framework.Result, error) {
		return s.Multi(ctx, checks...)
	})
	return nodeDeleted(ctx, err)
}

// HoldLifetime calls confirm and returns the lifetime of a hold that begins now. A node survives
// a suspended connection, but a hold under the Strict policy does not. After a suspension
// HoldLifetime calls confirm again, which then needs an answer of the servers. It returns an
// error if ctx has ended, even now.
func HoldLifetime(ctx context.Context, s *framework.Session,
	confirm func(ctx context.Context, again bool) error) (bridge.Lifetime, error) {
	for again := false; ; again = true {
		lifetime := bridge.OfSession(s).Lifetime()
		if err := confirm(ctx, again); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		if err := lifetime.Err(); !errors.Is(err, framework.ErrSuspended) {
			return lifetime, err
		}
	}
}

// deleteAll deletes the own nodes, except those that do not exist or belong to another session.
func deleteAll(ctx context.Context, waiters []*waiter) {
	var nodes []string
	for _, w := range waiters {
		if !w.deleted {
			nodes = append(nodes, w.path())
		}
	}
	if len(nodes) > 0 {
		DeleteNodes(ctx, waiters[0].session, nodes...)
	}
}

// deleteWait bounds how long an attempt that has failed waits for the deletion of its nodes.
const deleteWait = time.Second

// DeleteNodes deletes nodes that no hold is to have. The deletion does not depend on ctx. It
// goes on in the background if it takes longer than deleteWait or ctx ends.
func DeleteNodes(ctx context.Context, s *framework.Session, nodes ...string) {
	ctx, cancel := context.WithTimeout(ctx, deleteWait)
	defer cancel()
	err := s.DeleteGuaranteed(ctx, nodes...)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.Logger().Debug("deletion of the nodes of a failed attempt not confirmed yet",
			zap.Strings("nodes", nodes), zap.Error(err))
	}
}
