package condition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Wait releases the lock, waits for a signal, acquires the lock again and returns the new hold.
// Between the release and the wait no signal can be missed. What the waiter waits for may have
// changed again until it has the lock, so call Wait in a loop that examines it:
//
//	for !ready() {
//		if hold, err = cond.Wait(ctx, hold); err != nil {
//			return err
//		}
//	}
//
// hold must be a valid hold of the mutex, of the client that the Condition was made with, and the
// only one: Wait cannot release a lock that was entered more than once. ctx must not be a context of
// the hold (recipes.Hold.Context), because that one ends with the release. The new hold has a token
// and contexts of its own.
//
// With an error Wait returns hold itself. It has ended, and there is no other one, unless the error
// comes from before the release: see hold.Err. To release it in a defer is right in both cases. Wait
// fails
//
//   - with ErrOtherLock, ErrOtherHolds, for a context of the hold, and with the reason of hold.Err,
//     without a request. Java: IllegalMonitorStateException;
//   - when the waiter's node cannot be created, and as Mutex.Acquire fails. If the lock was lost, or
//     its node was deleted before the release, with the reason;
//   - when ctx ends. A signal that the waiter had then goes to the next waiter that was waiting
//     already. If ctx ends after the waiter has the lock again and has seen its signal, Wait returns
//     the hold;
//   - with framework.ErrSessionLost if the session is lost in the wait. Acquire the lock again and
//     examine what was waited for: only a waiter that holds the lock can wait again without a gap;
//   - with recipes.ErrNodeDeleted if another client deletes the waiter's node.
//
// The node of a Wait that fails is deleted, in the background if that is not possible at once.
//
// While a waiter that has a signal is paused, or its process has died, the waiters behind it wait
// until its session expires, or their time is over. An outage that ends before the session's
// deadline costs nothing. Java: Condition.await, which acquires the lock again before it throws.
func (c *Condition) Wait(ctx context.Context, hold *recipes.Hold) (*recipes.Hold, error) {
	next, _, err := c.waitUntil(ctx, hold, nil)
	return c.result(hold, next, err)
}

// WaitWithin is Wait that waits at most d for a signal, from the call. Then it acquires the lock
// again all the same, and returns the new hold. It reports whether the waiter was signaled: with the
// lock it takes the signal that it has by then, or leaves without one. So a signal that comes when
// the time is over is either reported, or is there for the other waiters. To wait until a time in a
// loop, call it with what is left:
//
//	deadline := time.Now().Add(time.Minute)
//	for signaled := true; signaled && !ready(); {
//		if hold, signaled, err = cond.WaitWithin(ctx, hold, time.Until(deadline)); err != nil {
//			return err
//		}
//	}
//
// After the loop the lock is held, and ready() may still be false. What is waited for may also be
// there although signaled is false: examine it before giving up.
//
// d limits the wait for a signal, ctx also the wait for the lock. Once the time is over, the waiter
// does not wait for the waiters ahead of it, only for the lock. With a d of 0 or less WaitWithin still
// releases the lock and acquires it again, after the clients that wait for it. WaitWithin fails like
// Wait, without the lock; the end of d is no error. Java: Condition.await(time, unit), awaitNanos and
// awaitUntil.
func (c *Condition) WaitWithin(
	ctx context.Context, hold *recipes.Hold, d time.Duration,
) (next *recipes.Hold, signaled bool, err error) {
	over := make(chan struct{})
	defer time.AfterFunc(d, func() { close(over) }).Stop()
	next, signaled, err = c.waitUntil(ctx, hold, over)
	next, err = c.result(hold, next, err)
	return next, signaled, err
}

// result returns what Wait returns for hold.
func (c *Condition) result(hold, next *recipes.Hold, err error) (*recipes.Hold, error) {
	switch {
	case err == nil:
		return next, nil
	case hold == nil || hold.Err() == nil:
		return hold, fmt.Errorf("wait %s: %w", c.path, err)
	}
	return hold, fmt.Errorf("wait %s: the lock is not held now: %w", c.path, err)
}

var errOwnContext = errors.New("the context ends with the hold: use the one that the lock was acquired with")

// waitUntil waits until there is a signal, or over is closed, and returns a new hold.
func (c *Condition) waitUntil(
	ctx context.Context, hold *recipes.Hold, over <-chan struct{},
) (next *recipes.Hold, signaled bool, err error) {
	own, err := c.held(ctx, hold)
	if err != nil {
		return nil, false, err
	}
	if _, carried := ownership.Current(ctx, c.key); carried {
		return nil, false, errOwnContext
	}
	w, err := c.enter(ctx, own, over)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if next == nil {
			enqueue.DeleteNodes(ctx, w.session, w.node)
		}
	}()
	if err := w.release(ctx, own); err != nil {
		return nil, false, err
	}
	for {
		if err := w.awaitSignal(ctx); err != nil {
			return nil, false, err
		}
		if next, signaled, err = w.acquire(ctx); next != nil || err != nil {
			return next, signaled, err
		}
	}
}

// waiter is one Wait. Its node is in the directory of the condition from before the release until it
// has the lock again.
type waiter struct {
	*Condition
	session *framework.Session
	node    string          // the path of its node
	name    string          // of the node
	over    <-chan struct{} // closed when the time for a signal is over; nil: there is no limit
}

func (w *waiter) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// enter creates the node of a waiter while the lock is held.
func (c *Condition) enter(ctx context.Context, own *ownership.Hold, over <-chan struct{}) (*waiter, error) {
	if own.HasOthers() {
		return nil, ErrOtherHolds
	}
	session := own.Session()
	create := framework.CreateOp(c.path+"/"+waiterKind, c.data, enqueue.LockNodeOptions()...)
	for attempts := 0; ; attempts++ {
		results, err := own.Guard(ctx, create)
		if err == nil {
			return c.newWaiter(ctx, session, results[0].Path, over)
		}
		if !ctxerr.Answered(ctx, err, zk.ErrNoNode) || attempts == bridge.MaxEnsures {
			return nil, ctxerr.With(ctx, err)
		}
		if err := session.CreateContainers(ctx, c.path); err != nil {
			return nil, err
		}
	}
}

// newWaiter returns the waiter with a node that was just created.
func (c *Condition) newWaiter(
	ctx context.Context, s *framework.Session, node string, over <-chan struct{},
) (*waiter, error) {
	if node == "" {
		return nil, errDeleted
	}
	name := path.Base(node)
	if n, ok := locknode.Parse(name, []string{waiterKind}); !ok || n.AtCounterEnd() {
		enqueue.DeleteNodes(ctx, s, node)
		return nil, fmt.Errorf("the directory's counter of sequence numbers is at its end "+
			"(delete it while no client uses the condition): %s", node)
	}
	return &waiter{c, s, node, name, over}, nil
}

var errDeleted = fmt.Errorf("%w: that of the waiter", recipes.ErrNodeDeleted)

// release releases the lock. It does not wait longer than ctx.
func (w *waiter) release(ctx context.Context, own *ownership.Hold) error {
	released, ok := own.StartReleaseAlone()
	switch {
	case !ok:
		return ErrOtherHolds
	case released == nil:
		return nil
	}
	_, err := w.inBackground(ctx, released)
	refused := errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNotEmpty)
	if errors.Is(err, recipes.ErrReleasePending) && !refused && ctx.Err() == nil {
		return nil // the deletion continues, or the session is lost, which the wait reports
	}
	return err
}

// inBackground calls fn in a goroutine of the session, and waits until it returns or ctx ends. It
// reports whether fn has returned.
func (w *waiter) inBackground(ctx context.Context, fn func() error) (returned bool, err error) {
	result := make(chan error, 1)
	started := bridge.OfSession(w.session).Go(func() {
		err := errGoroutineEnded
		defer func() { result <- err }()
		err = fn()
	})
	if !started {
		return true, cmp.Or(fn(), w.session.Err()) // fn sends nothing any more
	}
	select {
	case err := <-result:
		return true, err
	case <-ctx.Done():
		return false, ctxerr.Of(ctx)
	}
}

// errGoroutineEnded: metrics or a retry policy have called runtime.Goexit on a goroutine
// of the client.
var errGoroutineEnded = errors.New("code of the program ended a goroutine of the waiter")

// awaitSignal waits until the waiter is the first one and has a signal, or its time is over. The
// waiters behind it wait for the deletion of the node before their own.
func (w *waiter) awaitSignal(ctx context.Context) error {
	for {
		change, err := queue.RetryInSession(ctx, w.session, w.look)
		if err != nil || change == nil {
			return ctxerr.With(ctx, err)
		}
		select {
		case <-change.Fired():
		case <-w.over:
			return nil
		case <-w.session.Done():
			return w.session.Err()
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// look returns a watch for what the waiter waits for; nil: it may go on.
func (w *waiter) look(ctx context.Context) (*framework.Watch, error) {
	for {
		st, err := w.read(ctx)
		if err != nil {
			return nil, err
		}
		i := st.position(w.name)
		if i <= 0 {
			break
		}
		_, _, watch, err := w.session.GetW(ctx, w.path+"/"+st.waiters[i-1].Name)
		if !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			return watch, err
		}
	}
	children, _, watch, err := w.session.ChildrenW(ctx, w.path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, errDeleted
	}
	st := newState(children)
	switch {
	case err != nil:
		return nil, err
	case st.position(w.name) < 0:
		return nil, errDeleted
	case st.isSignaled(w.name):
		return nil, nil
	}
	return watch, nil
}

// acquire acquires the lock and takes the signal, or leaves without one if the time is over. It
// returns neither a hold nor an error if there is no signal any more and there is time left.
func (w *waiter) acquire(ctx context.Context) (next *recipes.Hold, signaled bool, err error) {
	within, stop := w.whileSession(ctx)
	defer stop()
	acquired, err := w.mutex.Acquire(within)
	if err != nil {
		if lost := w.session.Err(); lost != nil && ctx.Err() == nil {
			return nil, false, lost
		}
		return nil, false, err
	}
	defer func() {
		if next == nil {
			undo(ctx, acquired)
		}
	}()
	left, signaled, err := w.take(ctx)
	if !left || err != nil {
		return nil, false, err
	}
	return acquired, signaled, nil
}

// whileSession returns a context that ends with ctx or with the session.
func (w *waiter) whileSession(ctx context.Context) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	watching := bridge.OfSession(w.session).Go(func() {
		select {
		case <-w.session.Done():
			cancel(w.session.Err())
		case <-within.Done():
		}
	})
	if !watching {
		cancel(w.session.Err())
	}
	return within, func() { cancel(nil) }
}

// undoTimeout bounds how long a Wait that fails waits for the release of the lock.
const undoTimeout = time.Second

// undo releases a hold that no caller gets. ctx limits only the wait for the release.
func undo(ctx context.Context, acquired *recipes.Hold) {
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	_ = ownership.ReleaseAll(ctx, []*ownership.Hold{ownership.Of(acquired)})
}

// take takes the signal while the lock is held: one transaction deletes the node of the waiter and
// the signal. Once one was seen, the transaction is repeated as long as the session lasts, also after
// ctx has ended. So a signal is lost with a session only, and the hold is lost with the same session.
// Without a signal the waiter leaves if its time is over. take reports whether the waiter has left,
// and whether it was signaled.
func (w *waiter) take(ctx context.Context) (left, signaled bool, err error) {
	for sent := false; ; sent = true {
		st, err := queue.RetryInSession(ctx, w.session, w.read)
		switch {
		case err != nil:
			return false, false, ctxerr.With(ctx, err)
		case st.position(w.name) < 0 && sent:
			return true, false, nil // deleted by an attempt whose answer was lost
		case st.position(w.name) < 0:
			return false, false, errDeleted
		case st.isSignaled(w.name):
			if returned, err := w.inBackground(ctx, func() error { return w.leave(st) }); returned && err != nil {
				return false, false, err
			}
			return true, true, nil
		case !w.isOver():
			return false, false, nil
		}
		_, err = queue.RetryInSession(ctx, w.session, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.send(ctx, st)
		})
		if !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			return err == nil, false, ctxerr.With(ctx, err)
		}
	}
}

func (w *waiter) read(ctx context.Context) (state, error) { return readState(ctx, w.session, w.path) }

// leave deletes the node of a waiter that has a signal, the signal, and those that are useless then.
func (w *waiter) leave(st state) error {
	first := true
	_, err := queue.RetryInSession(context.Background(), w.session, func(ctx context.Context) (_ struct{}, err error) {
		for {
			if !first {
				if st, err = w.read(ctx); err != nil {
					return struct{}{}, err
				}
			}
			first = false
			if st.position(w.name) < 0 {
				return struct{}{}, nil // deleted by an attempt whose answer was lost
			}
			err = w.send(ctx, st)
			if !errors.Is(err, zk.ErrNoNode) {
				return struct{}{}, err
			}
		}
	})
	return err
}

// send sends the transaction by which the waiter leaves. Without a signal, it fails if a waiter that
// could pass one on has left since.
func (w *waiter) send(ctx context.Context, st state) error {
	var ops []framework.Op
	for _, other := range st.passing(w.name) {
		ops = append(ops, framework.CheckOp(w.path+"/"+other.Name, -1))
	}
	names := append([]string{w.name}, st.taken(w.name)...)
	useless := st.without(names).match().useless
	return tidily(append(ops, deletions(w.path, names)...), deletions(w.path, useless), func(ops []framework.Op) error {
		_, err := w.session.Multi(ctx, ops...)
		return err
	})
}
