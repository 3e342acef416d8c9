package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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

// Lock is what is acquired by coming to the front of a line, or of several at once. Safe for concurrent use.
type Lock struct {
	Spec
	log          *zap.Logger
	waitWarnings *rateLimit
	labels       []metrics.Labels // of each path
}

// Spec is what tells one kind of lock from another.
type Spec struct {
	Client  *framework.Client
	Recipe  string   // what measurements and logs call it
	Paths   []string // what measurements and errors call it: one for each lock
	Queues  []*Queue
	Key     any      // for re-entry, of the lines together; nil if there is no such thing
	Gate    Gate     // nil: who is at the front has the lock
	HandOff *Handoff // nil: every hold has a node of its own
	Standby bool     // to wait for long is nothing to warn of
}

// Admission is what is between the front of the line and a lock for which a place in line is not enough.
type Gate interface {
	// Peek returns ErrBusy if the lock cannot be had now; it only reads.
	Ready(ctx context.Context) error
	// Direct acquires the lock without standing in line; ErrBusy if that cannot be.
	TryFast(ctx context.Context, s *framework.Session) (*ownership.Hold, error)
	// Admit acquires the lock in exchange for the place at the front. If it must not wait, it fails with ErrBusy instead.
	Admit(ctx context.Context, f *FrontWaiter) (*ownership.Hold, error)
	// Holder reads somebody who has the lock.
	Holder(ctx context.Context) (recipes.Participant, error)
}

// New makes a lock. It asks no server.
func New(s Spec) *Lock {
	l := &Lock{Spec: s, waitWarnings: &rateLimit{}}
	l.log = s.Client.Logger().Named(s.Recipe).With(zap.String("path", l.name()))
	for _, path := range s.Paths {
		l.labels = append(l.labels, metrics.Labels{Recipe: s.Recipe, Path: path})
	}
	return l
}

// With is the same lock with another admission.
func (l *Lock) WithGate(a Gate) *Lock {
	other := *l
	other.Gate = a
	return &other
}

// name is what errors and logs call the lock.
func (l *Lock) name() string {
	const enough = 5
	if more := len(l.Paths) - enough; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(l.Paths[:enough], ", "), more)
	}
	return strings.Join(l.Paths, ", ")
}

// Single makes a lock that is a place in one line.
func Single(client *framework.Client, recipe, path string, rules Rules, data []byte) *Lock {
	return New(Spec{Client: client, Recipe: recipe, Paths: []string{path}, Queues: []*Queue{NewQueue(client, path, rules, data)}})
}

var (
	// ErrVanished: our node was deleted by somebody else while we waited.
	ErrOwnNodeDeleted = errors.New("queue: our node was deleted while waiting")
	// ErrBusy: somebody is ahead, and we are not to wait.
	ErrBusy = errors.New("queue: somebody is ahead")
	// ErrAgain: something has changed between looking and acting.
	ErrRetry = errors.New("queue: look again")

	// errGoroutineEnded: a logger, metrics or a retry policy has called runtime.Goexit on a
	// goroutine of the client's.
	errGoroutineEnded = errors.New("queue: code of the program's has ended the goroutine that waits in line")
)

// LockKey is for re-entry: that of the lock, or of the only line.
func (l *Lock) LockKey() any {
	if l.Key == nil {
		return l.Queues[0].Key()
	}
	return l.Key
}

// Acquire waits in line until the lock is ours. A place that is lost, with the session or because somebody deleted the node, is
// taken again at the end of the line. Whatever the end, no node stays behind that is not held.
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

// Try enters the line only if nobody is in it, and leaves it if somebody was faster.
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

// persist takes another place when one is lost.
func (l *Lock) requeueWhenLost(ctx context.Context, attempt func(context.Context) (*ownership.Hold, error)) (*ownership.Hold, error) {
	for {
		hold, err := attempt(ctx)
		if mustRequeue(err) && ctx.Err() == nil {
			l.log.Info("place in line lost: queueing again", zap.Error(err))
			continue
		}
		return hold, l.acquireError(ctx, err)
	}
}

// again reports whether the place was lost for a reason that does not concern the caller.
func mustRequeue(err error) bool {
	return errors.Is(err, ErrOwnNodeDeleted) || errors.Is(err, framework.ErrSessionLost)
}

// failed turns the end of an attempt into the caller's error.
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

// peek reads whether the lock may be had without waiting.
func (l *Lock) checkFree(ctx context.Context) error {
	for _, q := range l.Queues {
		children, _, err := l.Client.Children(ctx, q.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		case hasNode(children, q.rules.Conflicting):
			return ErrBusy
		}
	}
	if l.Gate != nil {
		return l.Gate.Ready(ctx)
	}
	return nil
}

// once takes a place in each line and brings it to the front. Without an alarm it does not wait for others.
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

// advance brings places to the front.
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

// arrive waits until nobody is ahead of any place, for all of them at the same time.
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
			behind, trouble := false, errGoroutineEnded
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				waited = waited || behind
				if trouble != nil && err == nil {
					err = trouble
					stop()
				}
			}()
			behind, trouble = w.waitForFront(all, warner)
		})
	}
	running.Wait()
	return waited, err
}

// listAll asks for the lists of lines that were not asked for behind the creates, a few at a time. What went wrong each place finds out.
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

// grant makes a hold of places at the front. If we have waited for some of them, the others may have been lost meanwhile.
func (l *Lock) grant(ctx context.Context, waiters []*waiter, doubtful bool) (*ownership.Hold, error) {
	session := waiters[0].session
	lifetime, err := HoldLifetime(ctx, session, func(ctx context.Context, again bool) error {
		if again || doubtful {
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

// Begin makes a hold of the lock.
func (l *Lock) NewHold(g ownership.Grant) *ownership.Hold {
	if entry := l.log.Check(zap.DebugLevel, "acquired"); entry != nil { // else its fields are not made
		entry.Write(logfield.Session(g.Session.ID()), logfield.Token(g.Locks[0].Token))
	}
	return ownership.New(g)
}

func confirmAll(ctx context.Context, waiters []*waiter) error {
	for _, w := range waiters {
		if err := w.readToken(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkAll asks whether all places are still there, in one transaction, after learning the tokens that are not known.
func checkAll(ctx context.Context, waiters []*waiter) error {
	if err := confirmAll(ctx, waiters); err != nil {
		return err
	}
	var checks []framework.Op
	for _, w := range waiters {
		checks = append(checks, framework.CheckOp(w.path(), -1))
	}
	s := waiters[0].session
	_, err := RetryInSession(ctx, s, func(ctx context.Context) ([]framework.Result, error) { return s.Multi(ctx, checks...) })
	return nodeDeleted(ctx, err)
}

// Settle is the lifetime of a hold that begins now. A context that has ended loses, even now. A place outlives a suspended connection,
// but where a hold would not, it takes an answer of the servers to go on: then confirm is called again.
func HoldLifetime(ctx context.Context, s *framework.Session, confirm func(ctx context.Context, again bool) error) (bridge.Lifetime, error) {
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

// leave deletes our nodes, but for those that are not there, or not ours.
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

// leavePatience bounds how long a caller whose attempt has failed waits to see its node gone.
const deleteWait = time.Second

// Withdraw deletes nodes that nobody is to have. The deletion does not depend on ctx: only how long we wait for it does.
func DeleteNodes(ctx context.Context, s *framework.Session, nodes ...string) {
	ctx, cancel := context.WithTimeout(ctx, deleteWait)
	defer cancel()
	err := s.DeleteGuaranteed(ctx, nodes...)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.Logger().Debug("left the line, deletion not confirmed yet", zap.Strings("nodes", nodes), zap.Error(err))
	}
}
