package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/signal"
)

// Combine makes one hold of at least one others, which must not be used by themselves any more.
// It ends when one of them ends, and then the others are released. key re-enters all of them as
// one; nil: each is re-entered by itself.
func Combine(key any, holds ...*Hold) *Hold {
	p := &parts{key: key, holds: holds}
	o := newOwnership(p)
	h := o.newHoldLocked()
	for _, part := range holds {
		part.becomePartOf(o)
		if isClosed(part.owned.requested) {
			o.request()
		}
	}
	if err := p.check(); err != nil { // one has ended before
		o.lose(err)
	}
	return h
}

func (h *Hold) becomePartOf(whole *ownership) {
	h.owned.mu.Lock()
	defer h.owned.mu.Unlock()
	h.wholes = append(h.wholes, whole)
}

// parts are holds as a resource.
type parts struct {
	holds []*Hold
	key   any // of all together; nil: each is re-entered by itself
}

func (p *parts) background(fn func()) bool {
	return slices.ContainsFunc(p.holds, func(h *Hold) bool { return h.owned.background(fn) })
}

func (p *parts) paths() []string { return nil }
func (p *parts) parts() []*Hold  { return p.holds }

func (p *parts) locks() []Lock {
	var all []Lock
	for _, h := range p.holds {
		all = append(all, h.owned.locks()...)
	}
	return all
}

func (p *parts) validUntil() time.Time {
	first := p.holds[0].ValidUntil()
	for _, h := range p.holds[1:] {
		if t := h.ValidUntil(); t.Before(first) {
			first = t
		}
	}
	return first
}

func (p *parts) check() error {
	for _, h := range p.holds {
		if err := h.Err(); err != nil {
			return err
		}
	}
	return nil
}

// abandon releases the parts that are still held, in the background.
func (p *parts) abandon(reason error) {
	for _, h := range slices.Backward(p.holds) {
		if len(h.owned.parts()) > 0 {
			h.owned.lose(reason)
			continue
		}
		h.owned.background(func() { _ = h.Release() }) // if the session has ended, so has the hold
	}
}

// session returns that of the first part that has one.
func (p *parts) session() *framework.Session {
	for _, h := range p.holds {
		if s := h.owned.session(); s != nil {
			return s
		}
	}
	return nil
}

// ReleaseAll releases holds, the last first: each in the background of a session of its own. ctx
// bounds only the wait.
func ReleaseAll(ctx context.Context, holds []*Hold) error {
	errs := make(chan error, len(holds))
	before := signal.Closed
	for _, h := range slices.Backward(holds) {
		wait, previous, done := h.StartRelease(), before, make(chan struct{})
		release := func() {
			defer close(done)
			select {
			case <-previous:
			case <-time.After(inTurnFor):
			case <-h.sessionDone():
			}
			errs <- call(wait)
		}
		if !h.owned.background(release) {
			release() // the session has ended, so there is nothing to wait for
		}
		before = done
	}
	var all []error
	for range holds {
		select {
		case err := <-errs:
			all = append(all, err)
		case <-ctx.Done():
			return errors.Join(append(all, fmt.Errorf("%w: %w", ErrReleasePending, ctx.Err()))...)
		}
	}
	return errors.Join(all...)
}

// release releases the parts. All of them end before the first request is made. Their nodes are
// deleted the last first. Where that takes long no deletion waits for another one, so that all of
// them take about as long as one.
func (p *parts) release() error {
	var waits []func() error
	for _, h := range slices.Backward(p.holds) {
		waits = append(waits, h.StartRelease())
	}
	errs := make([]error, len(waits))
	inTurn, cancel := context.WithTimeout(context.Background(), inTurnFor)
	defer cancel()
	var running sync.WaitGroup
	for i, wait := range waits {
		done := make(chan struct{})
		running.Go(func() {
			defer close(done)
			errs[i] = call(wait)
		})
		select {
		case <-done:
		case <-inTurn.Done():
		}
	}
	running.Wait()
	return errors.Join(errs...)
}

// inTurnFor is for how long the parts of a hold are released one after another.
const inTurnFor = 500 * time.Millisecond

func (p *parts) stopLocked() {}

func (p *parts) carry(ctx context.Context, h *Hold) context.Context {
	if p.key != nil {
		return newCarrier(ctx, h, p.key, p.locks())
	}
	for _, part := range p.holds {
		ctx = part.owned.carry(ctx, part)
	}
	return ctx
}

// logLoss does nothing: the losses of the parts are logged.
func (p *parts) logLoss(error) {}

// measure does nothing: the parts are measured.
func (p *parts) measure(time.Duration, error) {}

// addHeld does nothing: the parts are counted.
func (p *parts) addHeld(int64) {}
