package ownership

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/signal"
)

// Hold is a hold as the recipes use it; recipes.Hold describes its methods. The zero value is a
// released hold.
type Hold struct {
	owned  *ownership // nil in the zero value
	single *Lock      // by which it was re-entered, of several; nil: it is of all of them
	done   chan struct{}

	// Guarded by mu of the ownership.
	released bool
	wholes   []*ownership // that this is a part of

	mu      sync.Mutex
	err     error // why it has ended; set once, with mu of the ownership held too
	cancels map[*cancellation]struct{}
}

// cancellation ends one context that was made from a hold.
type cancellation struct{ cancel context.CancelCauseFunc }

// of returns the Hold of a *recipes.Hold.
var of func(hold any) *Hold

// Of returns the Hold of a *recipes.Hold; nil for nil.
func Of(hold any) *Hold { return of(hold) }

// SetOf lets Of reach what package recipes does not export. Package recipes calls it when it is
// initialized.
func SetOf(fn func(hold any) *Hold) { of = fn }

func (h *Hold) Done() <-chan struct{} {
	if h == nil || h.owned == nil {
		return signal.Closed
	}
	return h.done
}

func (h *Hold) Err() error {
	if h == nil || h.owned == nil {
		return errZeroHold
	}
	h.owned.endIfLost()
	return h.reason()
}

func (h *Hold) reason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// HasOthers reports whether there are other holds of the same nodes at the moment.
func (h *Hold) HasOthers() bool {
	h.owned.mu.Lock()
	defer h.owned.mu.Unlock()
	return len(h.owned.holds) > 1
}

// NodesEnded reports whether all holds of the nodes have ended: the nodes are deleted, or being deleted,
// or the client knows that they are lost.
func (h *Hold) NodesEnded() bool {
	h.owned.mu.Lock()
	defer h.owned.mu.Unlock()
	return h.owned.err != nil
}

// IsOnlyOf reports whether the hold is, or was, one of the lock with this key and of no other lock.
func (h *Hold) IsOnlyOf(key any) bool {
	if h == nil || h.owned == nil {
		return false
	}
	locks := h.owned.locks()
	return len(locks) == 1 && locks[0].Key == key
}

// Keys returns the keys of the locks that the hold is, or was, of.
func (h *Hold) Keys() []any {
	if h == nil || h.owned == nil {
		return nil
	}
	var keys []any
	for _, l := range h.owned.locks() {
		keys = append(keys, l.Key)
	}
	return keys
}

// Session is the session of the hold's nodes, or of some of them; nil if there is none, and in the
// zero value.
func (h *Hold) Session() *framework.Session {
	if h == nil || h.owned == nil {
		return nil
	}
	return h.owned.session()
}

// sessionDone is closed when the hold's session has ended; nil: it has none.
func (h *Hold) sessionDone() <-chan struct{} {
	if s := h.Session(); s != nil {
		return s.Done()
	}
	return nil
}

func (h *Hold) Tokens() []int64 {
	if h == nil || h.owned == nil {
		return nil
	}
	if h.single != nil {
		return []int64{h.single.Token}
	}
	var tokens []int64
	for _, l := range h.owned.locks() {
		tokens = append(tokens, l.Token)
	}
	return tokens
}

// Token returns the only one of Tokens, and 0 if there are none or several.
func (h *Hold) Token() int64 {
	if tokens := h.Tokens(); len(tokens) == 1 {
		return tokens[0]
	}
	return 0
}

func (h *Hold) Path() string {
	if paths := h.Paths(); len(paths) > 0 {
		return paths[0]
	}
	return ""
}

// name is what errors call the hold.
func (h *Hold) name() string {
	if path := h.Path(); path != "" || h == nil || h.owned == nil {
		return path
	}
	return h.owned.locks()[0].Path
}

func (h *Hold) Paths() []string {
	var paths []string
	for _, leaf := range h.leaves() {
		paths = append(paths, leaf.owned.paths()...)
	}
	return paths
}

// leaves are the holds of which h is made: h itself, unless it has parts.
func (h *Hold) leaves() []*Hold {
	if h == nil || h.owned == nil {
		return nil
	}
	parts := h.owned.parts()
	if len(parts) == 0 {
		return []*Hold{h}
	}
	var all []*Hold
	for _, part := range parts {
		all = append(all, part.leaves()...)
	}
	return all
}

func (h *Hold) ValidUntil() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	return h.owned.validUntil()
}

func (h *Hold) Context(parent context.Context) context.Context {
	// The methods of parent may be code of the program. They are called when within is canceled.
	within, stop := context.WithCancel(parent)
	ctx, cancel := context.WithCancelCause(within)
	if err := h.Err(); err != nil {
		cancel(err)
		stop()
		return ctx
	}
	entry := h.register(cancel)
	context.AfterFunc(ctx, func() {
		stop()
		h.unregister(entry)
	})
	return h.owned.carry(ctx, h)
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

func (h *Hold) Revoked() <-chan struct{} {
	if h == nil || h.owned == nil {
		return nil
	}
	return h.owned.requested
}

func (h *Hold) Release() error {
	if h == nil || h.owned == nil {
		return errZeroHold
	}
	return call(h.StartRelease())
}

// call calls what StartRelease returned.
func call(wait func() error) error {
	if wait == nil {
		return nil
	}
	return wait()
}

// StartRelease ends the hold. What it returns waits until the nodes are deleted, and must be
// called; nil: there is nothing to wait for.
func (h *Hold) StartRelease() (wait func() error) {
	h.owned.endIfLost()
	result, measured, err := h.owned.releaseHold(h)
	return h.afterRelease(result, measured, err)
}

// StartReleaseAlone is StartRelease, unless there are other holds of the same nodes. Then it returns
// false, and the hold goes on.
func (h *Hold) StartReleaseAlone() (wait func() error, ok bool) {
	h.owned.endIfLost()
	result, measured, err := h.owned.releaseAlone(h)
	if result == stillHeld && err == nil {
		return nil, false
	}
	return h.afterRelease(result, measured, err), true
}

// afterRelease ends what h was a part of, and returns what waits for the result of a release.
func (h *Hold) afterRelease(result releaseResult, measured func(error), err error) (wait func() error) {
	if err != nil {
		return func() error { return fmt.Errorf("release %s: %w", h.name(), err) }
	}
	loseAll(h.partOf(), ErrNotHeld)
	switch result {
	case released:
		return func() error { return h.owned.finish(measured) }
	case passedOn:
		measured(nil)
	}
	return nil
}

// partOf returns what h is a part of.
func (h *Hold) partOf() []*ownership {
	h.owned.mu.Lock()
	defer h.owned.mu.Unlock()
	return h.wholes
}

// endLocked ends the hold and its contexts, once. It needs mu of the ownership, so that what finds the
// ownership ended finds the contexts ended too. To cancel them calls no code of the program: see Context.
func (h *Hold) endLocked(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = reason
	close(h.done)
	for entry := range h.cancels {
		entry.cancel(reason)
	}
	h.cancels = nil
}
