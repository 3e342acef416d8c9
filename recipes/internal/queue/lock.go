package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Lock is acquired by a node at the front of its queue, or of each of several queues. It is safe
// for concurrent use.
type Lock struct {
	Spec
	Log *zap.Logger // of acquires and holds
}

// Spec describes a lock.
type Spec struct {
	Client *framework.Client
	Recipe string   // the name in metrics and logs
	Paths  []string // the names in metrics and errors; a semaphore's is the parent of its queue's
	Queues []*Queue
	Key    any  // for re-entry of several queues together; nil: for one queue, see LockKey
	Gate   Gate // nil: the front of the queue is the lock
}

// Gate is what has to be passed after the front of the queue, such as the permits of a
// semaphore.
type Gate interface {
	// Ready returns ErrBusy if the lock is not free. It only reads.
	Ready(ctx context.Context) error
	// TryFast acquires the lock without a node in the queue. It returns ErrQueueNeeded if that is not
	// possible.
	TryFast(ctx context.Context, s *framework.Session) (*ownership.Hold, error)
	// Admit acquires the lock in exchange for the node at the front. It returns ErrBusy where it would
	// have to wait and must not.
	Admit(ctx context.Context, f *FrontWaiter) (*ownership.Hold, error)
}

// Observer is told that an acquire waits. An acquire without one (dontWait) does not wait for other
// holders.
type Observer interface {
	// Waits is called when the acquire begins to wait for other nodes, with its own nodes. own is nil
	// for a wait in memory (package handoff). Waits is called again when the acquire waits again, and
	// by several goroutines at a time.
	Waits(own OwnNodes)
}

// dontWait is the Observer of an acquire that does not wait for other holders. Such an acquire
// returns ErrBusy instead.
var dontWait Observer // nil

// allNodes passes on that one of several nodes of an acquire waits.
type allNodes struct {
	Observer
	own OwnNodes // all nodes of the acquire
}

func (w allNodes) Waits(OwnNodes) { w.Observer.Waits(w.own) }

// OwnNodes are the nodes of an acquire.
type OwnNodes []*waiter

// Contain reports whether node is one of the nodes.
func (o OwnNodes) Contain(node string) bool {
	for _, w := range o {
		if w.path == node {
			return true
		}
	}
	return false
}

// Busy returns ErrBusy, with the node that one of the nodes waits for.
func (o OwnNodes) Busy() error {
	for _, w := range o {
		if node := w.waitsFor.Load(); node != nil && !w.reachedFront.Load() {
			return Busy("behind " + w.queue.Child(node.Name))
		}
	}
	return ErrBusy
}

// ErrBusy: the lock is not free, and the caller does not wait.
var ErrBusy = errors.New("queue: the lock is not free")

// busyError is ErrBusy with what is in the way.
type busyError struct{ why string }

// Busy returns ErrBusy with what is in the way, for the text of the error for the caller.
func Busy(why string) error { return busyError{why} }

func (b busyError) Error() string { return ErrBusy.Error() + ": " + b.why }

func (busyError) Is(target error) bool { return target == ErrBusy }

// notAcquired returns ErrNotAcquired with what ErrBusy says is in the way.
func notAcquired(busy error) error {
	if why := (busyError{}); errors.As(busy, &why) {
		return fmt.Errorf("%w: %s", recipes.ErrNotAcquired, why.why)
	}
	return recipes.ErrNotAcquired
}

// ErrQueueNeeded: a Gate does not acquire the lock without a node in the queue.
var ErrQueueNeeded = errors.New("queue: the lock needs a node in the queue")

// New makes a lock. It sends no request.
func New(s Spec) *Lock {
	l := &Lock{Spec: s}
	l.Log = s.Client.Logger().Named(s.Recipe).With(zap.String("path", l.String()))
	for _, q := range s.Queues {
		q.recipe = s.Recipe
	}
	return l
}

// Single makes a lock with a node in one queue.
func Single(client *framework.Client, recipe, path string, rules Rules, data []byte) *Lock {
	queues := []*Queue{NewQueue(client, path, rules, data)}
	return New(Spec{Client: client, Recipe: recipe, Paths: []string{path}, Queues: queues})
}

// WithGate returns a copy of the lock with gate g.
func (l *Lock) WithGate(g Gate) *Lock {
	other := *l
	other.Gate = g
	return &other
}

// String returns the name of the lock in errors and logs.
func (l *Lock) String() string {
	const enough = 5
	if more := len(l.Paths) - enough; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(l.Paths[:enough], ", "), more)
	}
	return strings.Join(l.Paths, ", ")
}

// LockKey returns the key for re-entry: Spec.Key, or that of the only queue if Spec.Key is nil.
func (l *Lock) LockKey() any {
	if l.Key == nil {
		return l.Queues[0].dir.Key
	}
	return l.Key
}

// CallerError turns the error of an attempt to acquire the lock into the error for the caller.
func (l *Lock) CallerError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBusy):
		err = notAcquired(err)
	default:
		err = ctxerr.With(ctx, err)
	}
	return fmt.Errorf("acquire %s: %w", l.String(), err)
}

// WaitError adds ErrNotAcquired to an error by which the context has ended a wait, with what busy, an
// ErrBusy, says was in the way. It does not if busy is nil: nothing was known to be in the way. While the
// client is not connected, it adds the reason instead, such as framework.ErrNotConnected: what was in the
// way may have been deleted meanwhile. It returns nil for nil: a context that ends after the wait ends
// nothing.
func WaitError(ctx context.Context, client *framework.Client, busy, err error) error {
	switch {
	case err == nil, failed(ctx, err, framework.ErrNotConnected), failed(ctx, err, framework.ErrAuthFailed),
		failed(ctx, err, framework.ErrClosed):
		return err
	case ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if reason := bridge.Of(client).Disconnected(); reason != nil {
		return errtext.Because(withBusy(reason, busy), err)
	}
	if busy == nil {
		return err
	}
	return errtext.Because(notAcquired(busy), err)
}

// failed reports whether an operation with ctx failed with target. The cause of ctx does not count.
func failed(ctx context.Context, err, target error) bool {
	return errors.Is(err, target) && !errors.Is(context.Cause(ctx), target)
}

// withBusy returns the reason why there is no connection, with what ErrBusy says was in the way.
func withBusy(reason, busy error) error {
	if why := (busyError{}); errors.As(busy, &why) {
		return fmt.Errorf("%w, before that %s", reason, why.why)
	}
	return reason
}
