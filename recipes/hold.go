package recipes

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Hold is one level of ownership of a lock. Every successful acquire returns a new one; it ends once, with Release or because it was
// lost, and is never held again. Safe for concurrent use. The zero value and nil are holds that were released.
//
// A hold can be lost at any time: the session is over, nothing was heard of the leader for too long, somebody deleted the node,
// the client was closed, or the connection was suspended where the client's loss policy is Strict. Done and the contexts tell
// promptly while the process runs (a deleted node is noticed by a watch once the hold has lasted a tenth of a second, or by the
// next Guard or Release); Err, ValidUntil and Guard compare clocks at the moment of asking, so that a process that was paused
// learns it from its first question. Between asking and acting a process can still be paused: only the resource itself can
// refuse what comes late, by the Token, or the servers, by Guard.
type Hold struct {
	tenure *tenure // nil in the zero value
	focus  *Lock   // that it was entered by, of several; nil: it is of all of them
	done   chan struct{}

	// Guarded by mu of the tenure.
	released bool
	whole    *tenure // that this is a part of; nil if it is none

	mu      sync.Mutex
	err     error // why it ended; set once, with mu of the tenure held too
	cancels map[*cancellation]struct{}
}

// cancellation ends one context that was made from a hold.
type cancellation struct{ cancel context.CancelCauseFunc }

// Done is closed when the hold ends, however it ends.
func (h *Hold) Done() <-chan struct{} {
	if h == nil || h.tenure == nil {
		return closed
	}
	return h.done
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Err is nil while the hold is valid, and then why it ended: ErrNotHeld after Release; framework.ErrSessionLost;
// framework.ErrClosed; ErrNodeDeleted; framework.ErrSuspended, if the client's loss policy is Strict. If the hold's time has run
// out without anybody noticing, asking ends it. Curator: isAcquiredInThisProcess, which notices no loss.
func (h *Hold) Err() error {
	if h == nil || h.tenure == nil {
		return ErrNotHeld
	}
	h.tenure.check()
	return h.reason()
}

func (h *Hold) reason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Token is the fencing token: the czxid of the lock node. A later holder of the lock has a larger one, in whatever session, on
// whatever incarnation of the parent node; only a restore of the ensemble from a backup sets tokens back. All levels of one
// ownership share it, and so do holds of one node that was passed on or kept (mutex.WithLocalHandoff). Of several locks held as one
// (package multilock) it is the largest of Tokens, which is not for a resource that only one of them protects; a level
// that was entered by one of the locks has the token of that one. A read hold
// that was acquired under a write hold, or the reverse, has the token of that, see package rwlock. It stays readable after the end; 0
// in the zero value.
func (h *Hold) Token() int64 {
	var token int64
	for _, t := range h.Tokens() {
		token = max(token, t)
	}
	return token
}

// Tokens are the fencing tokens of several locks held as one, in the order in which the locks were given; of a single lock there
// is one. Nil in the zero value.
func (h *Hold) Tokens() []int64 {
	if h == nil || h.tenure == nil {
		return nil
	}
	if h.focus != nil {
		return []int64{h.focus.Token}
	}
	var tokens []int64
	for _, l := range h.tenure.locks() {
		tokens = append(tokens, l.Token)
	}
	return tokens
}

// Path is the lock node's path, as seen by the client, and the first of Paths if there are several; "" in the zero value.
func (h *Hold) Path() string {
	if paths := h.Paths(); len(paths) > 0 {
		return paths[0]
	}
	return ""
}

// Paths are the paths of all nodes that the hold stands for, as seen by the client: one for most locks; for several permits of a semaphore,
// or several locks held as one, more. Nil in the zero value.
func (h *Hold) Paths() []string {
	var paths []string
	for _, leaf := range h.leaves() {
		paths = append(paths, leaf.tenure.paths()...)
	}
	return paths
}

// leaves are the holds of which this one is made: itself, unless it has parts.
func (h *Hold) leaves() []*Hold {
	if h == nil || h.tenure == nil {
		return nil
	}
	parts := h.tenure.parts()
	if len(parts) == 0 {
		return []*Hold{h}
	}
	var all []*Hold
	for _, part := range parts {
		all = append(all, part.leaves()...)
	}
	return all
}

// ValidUntil is how long the hold can be relied on from what is known now, by this machine's clock: it moves forward with every
// answer of the ZooKeeper leader, and the hold ends when it passes. It is the zero Time once the hold has ended. To ask whether
// the hold is valid use Err, which also knows of a machine that was suspended; comparing this with time.Now does not.
func (h *Hold) ValidUntil() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	return h.tenure.validUntil()
}

// Context returns a context that ends with parent or with the hold, whichever is first; context.Cause then tells why. It also carries
// the hold: acquiring the same lock under it re-enters, where the lock is reentrant. The usual way is
// ctx = hold.Context(ctx), after which the outer context cannot be used by mistake. There is nothing to cancel: what it costs is given
// back when parent or the hold ends. Like context.WithCancel it panics if parent is nil.
//
// The context carries this hold only. Once this level is released nothing re-enters under the context, also if an outer level of the
// same lock is still held: under context.WithoutCancel of the context of a released level an acquire waits for the outer level, and so
// for itself. Use the context of the level that is held.
func (h *Hold) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	if err := h.Err(); err != nil {
		cancel(err)
		return ctx
	}
	if entry := h.register(cancel); entry != nil {
		context.AfterFunc(ctx, func() { h.unregister(entry) })
	}
	return h.tenure.carry(ctx, h)
}

func (h *Hold) register(cancel context.CancelCauseFunc) *cancellation {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		cancel(h.err)
		return nil
	}
	entry := &cancellation{cancel}
	if h.cancels == nil {
		h.cancels = map[*cancellation]struct{}{}
	}
	h.cancels[entry] = struct{}{}
	return entry
}

func (h *Hold) unregister(entry *cancellation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.cancels, entry)
}

// Revoked is closed when somebody asks for the lock back. It is a request: the holder should release soon. See Revoke of the
// recipes; for several nodes a request to one of them is enough. It is nil in the zero value. Curator: RevocationListener.
func (h *Hold) Revoked() <-chan struct{} {
	if h == nil || h.tenure == nil {
		return nil
	}
	h.tenure.attend()
	return h.tenure.revoked
}

// Release ends the hold: first Done and the contexts, then, with the last level, the lock node. It takes no context and is not cut
// short by any: it waits for the deletion for the session timeout at most, and what it cannot confirm is finished in the background.
// It returns
//
//   - nil: this level is over, and if it was the last its nodes are gone, in one transaction, or passed on, or kept for the next
//     of this client (mutex.WithSticky);
//   - framework.ErrSessionLost, framework.ErrClosed, framework.ErrSuspended or ErrNodeDeleted: the hold had ended before.
//     Exclusivity may not have lasted to the end of the work;
//   - ErrNotHeld: it was released before, or is nil; nothing was done;
//   - ErrReleasePending: the hold was valid until now and is over, and its node may still be in the way: the deletion goes on in the
//     background, or the session has ended meanwhile and takes the node along, or the servers refuse it (zk.ErrNoAuth), then the
//     node stays until the session ends.
//
// Of several locks that were acquired one after another it returns what came of each, joined. Curator: release, Lease.close, returnAll.
func (h *Hold) Release() error {
	if h == nil || h.tenure == nil {
		return ErrNotHeld
	}
	return finally(h.quit())
}

// finally waits for what quit has left to wait for.
func finally(wait func() error) error {
	if wait == nil {
		return nil
	}
	return wait()
}

// Quit is Release for those who do not wait: what it returns waits, and must be called; nil if there is nothing to wait for. It is for
// recipes.
func Quit(h *Hold) (wait func() error) { return h.quit() }

// quit ends the hold; what it returns waits until the nodes are gone, and says what came of it; nil if they stay.
func (h *Hold) quit() (wait func() error) {
	h.tenure.check()
	end, tell, err := h.tenure.leave(h)
	switch {
	case err != nil:
		return func() error { return fmt.Errorf("release %s: %w", h.Path(), err) }
	case end == vacant:
		return func() error { return h.tenure.relinquish(tell) }
	case end == passed:
		tell(nil)
	}
	return nil
}

// finish ends this level and its contexts. It is called once, with mu of the tenure held, so that whoever finds the tenure ended
// finds the contexts ended too; to end a context runs nobody's code here.
func (h *Hold) finish(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = reason
	close(h.done)
	for entry := range h.cancels {
		entry.cancel(reason)
	}
	h.cancels = nil
}
