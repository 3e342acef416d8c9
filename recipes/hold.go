package recipes

import (
	"context"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/hooks"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Hold is an acquired lock. Every successful acquire returns a new Hold. A Hold ends once, by
// Release or by a loss, and is never held again. Each of several reentrant holds of a lock ends by
// itself; the last one releases the lock. Safe for concurrent use. The zero value is a hold that has
// ended, with an error that matches ErrNotHeld and framework.ErrZeroValue.
//
// A hold is lost when its session has expired, when the ZooKeeper leader has not answered until the
// deadline, when another client has deleted the lock node, when the client is closed, or when the
// connection is suspended and the client's loss policy is Strict.
//
// Done and the contexts report a loss promptly while the process runs. A deleted node is noticed by
// a watch once the hold has lasted a tenth of a second, or by the next Guard or Release. Err,
// ValidUntil and Guard compare clocks when they are called, so the first call in a process that was
// paused reports the loss. A process can be paused again between the call and what follows. Then
// only the resource can refuse a late write by the Token, or the servers by Guard.
type Hold struct {
	hold          *ownership.Hold
	aroundRelease func(release func() error) error // see bridge.AroundRelease; nil: none
}

func init() {
	hooks.HoldSession = func(hold any) any { return hold.(*Hold).get().Session() }
	hooks.AroundRelease = func(hold any, around func(func() error) error) { hold.(*Hold).aroundRelease = around }
	ownership.SetOf(func(hold any) *ownership.Hold {
		if h := hold.(*Hold); h != nil {
			return h.hold
		}
		return nil
	})
}

// NewHold returns a Hold for a lock that a recipe of this module has acquired, or nil and err. Other
// programs cannot call it, because its argument has a type of an internal package: call HoldForeign.
func NewHold(h *ownership.Hold, err error) (*Hold, error) {
	if h == nil || err != nil {
		return nil, err
	}
	return &Hold{hold: h}, nil
}

func (h *Hold) get() *ownership.Hold { return h.hold }

// Done returns a channel that is closed when the hold ends.
func (h *Hold) Done() <-chan struct{} { return h.get().Done() }

// Err returns nil while the hold is valid, and then why it has ended: ErrNotHeld after Release;
// framework.ErrSessionLost; framework.ErrClosed; ErrNodeDeleted; framework.ErrSuspended, if the
// client's loss policy is Strict; ErrForeignLost, if it has a lock of another service. Err checks
// the deadline itself, so it can report the loss before Done is closed. It waits for nothing: the loss is
// logged and measured by a goroutine of the client. Curator: isAcquiredInThisProcess, which notices no loss.
func (h *Hold) Err() error { return h.get().Err() }

// Token returns the fencing token: the czxid of the lock node. A later holder of the lock has a
// larger one, in any session, and also if the parent node was deleted and created again. Only a
// restore of the ensemble from a backup sets tokens back.
//
// Reentrant holds of one lock have the same token. So have holds of one node that was passed on or
// kept (mutex.WithLocalHandoff). A read hold that was acquired under a write hold, or the reverse,
// has the token of that hold: see package rwlock.
//
// For several locks that are held as one (package multilock) it returns 0, which is no token, and
// which fence.Register refuses: use Tokens. Where one of these locks re-enters, its hold has the
// token of that lock.
//
// The token stays readable after the hold has ended. It is 0 in the zero value.
func (h *Hold) Token() int64 { return h.get().Token() }

// Tokens returns the fencing tokens of a multi-lock, in the order in which the locks were given.
// Give each resource the token of the lock that protects it, and a resource that all of them
// protect the largest one. A lock of another service has the token 0. For a single lock Tokens
// returns one token. It returns nil for the zero value.
func (h *Hold) Tokens() []int64 { return h.get().Tokens() }

// Path returns the path of the lock node, as the client names it. For several nodes it returns the
// first of Paths. It returns "" for the zero value.
func (h *Hold) Path() string { return h.get().Path() }

// Paths returns the paths of all nodes of the hold, as the client names them. There is one node for
// most locks, and more for several permits of a semaphore and for a multi-lock. It returns nil for
// the zero value.
func (h *Hold) Paths() []string { return h.get().Paths() }

// ValidUntil returns the local time at which the hold ends unless the ZooKeeper leader answers
// again before. It is the zero Time once the hold has ended. Suspensions of the machine until the
// call make the time earlier. A time that was returned before a suspension is too late after it. To
// find out whether the hold is valid call Err.
func (h *Hold) ValidUntil() time.Time { return h.get().ValidUntil() }

// Context returns a context that ends with parent or with the hold. context.Cause then returns the
// reason. The context carries the hold: acquiring the same lock with it re-enters, if the lock is
// reentrant. The usual call is ctx = hold.Context(ctx). After it the outer context cannot be used
// by mistake. No cancel function is needed: resources are freed when parent or the hold ends. Like
// context.WithCancel it panics if parent is nil.
//
// The context carries only this hold. Once it is released, acquiring with the context does not
// re-enter, even if an outer hold of the same lock is still held. An acquire with
// context.WithoutCancel of that context would wait for the outer hold, and deadlock. Use the
// context of the hold that is held.
func (h *Hold) Context(parent context.Context) context.Context { return h.get().Context(parent) }

// Revoked returns a channel that is closed when another client asks for the release of the lock:
// see Revoke. The holder should release it soon. The hold stays valid until then. For several nodes
// a request for one of them is enough. A call makes no request and sets no watch. A revocation is
// noticed by the watch that also notices a deleted node, once the hold has lasted a tenth of a
// second. That of a waiter is noticed when its hold begins. The channel of the zero value is
// nil, and that of a lock of another service is never closed.
//
// Curator: makeRevocable and RevocationListener. There a lock is revocable if the listener was set
// before the acquire, and the release removes it. Here every hold is revocable. Curator's Revoker
// closes the channel.
func (h *Hold) Revoked() <-chan struct{} { return h.get().Revoked() }

// Release ends the hold: first Done and the contexts. With the last hold of the lock it then
// deletes the lock node. It takes no context. It waits at most for the session timeout until the
// node is deleted. A deletion that is not confirmed by then continues in the background. Release
// returns
//
//   - nil: the hold was valid until now. If it was the last one, its nodes are deleted in one
//     transaction, or passed on, or kept for the next hold of this client (mutex.WithLocalHandoff);
//   - framework.ErrSessionLost, framework.ErrClosed, framework.ErrSuspended, ErrNodeDeleted or
//     ErrForeignLost: the hold had been lost before. The work may not have been exclusive to its
//     end;
//   - ErrNotHeld: the hold was released before, or is a zero value, and nothing was done;
//   - ErrReleasePending: the hold was valid until now and has ended, but its node may still exist.
//     The deletion continues in the background. If the session has ended meanwhile, the servers
//     delete the node with it. If the servers refuse the deletion (zk.ErrNoAuth), the node stays
//     until the session ends.
//
// For locks that were acquired one after another it returns all of their errors, joined. Curator:
// release, Lease.close, returnAll.
func (h *Hold) Release() error {
	if h.aroundRelease != nil {
		return h.aroundRelease(h.get().Release)
	}
	return h.get().Release()
}

// Guard applies ops in one transaction, only if the hold's nodes still exist. If the hold has
// ended, noticed or not, it changes nothing. It protects data in the same ensemble without a token.
// Without ops it only asks the servers whether the hold is valid.
//
// It returns the results of ops. It fails like framework.Session.Multi, and with the reason of Err
// if the hold has ended. It fails with ErrManySessions for locks of several clients that are held
// as one (multilock.Combine), and with ErrUnsupported for locks of other services alone. Where both
// are held as one, it checks the nodes only.
func (h *Hold) Guard(ctx context.Context, ops ...framework.Op) ([]framework.Result, error) {
	return h.get().Guard(ctx, ops...)
}
