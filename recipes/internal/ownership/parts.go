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

// abandon releases the parts that are still held, in the background, the last first. If code of the program ends
// the goroutine, the others are released nevertheless.
func (p *parts) abandon(error) {
	for _, h := range p.holds {
		defer h.abandon()
	}
}

func (h *Hold) abandon() {
	h.owned.background(func() { // if the session has ended, so has the hold
		startReleases([]*Hold{h}, func(leaf *Hold, wait func() error) {
			release := func() { _ = call(wait) }
			if !leaf.owned.background(release) {
				release() // the session has ended, so there is nothing to wait for
			}
		})
	})
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

// startReleases starts the release of holds, the last first, and of their parts. It calls add for each hold
// without parts. What add gets waits for the release, and must be called. If code of the program ends the
// goroutine, the other releases are started nevertheless.
//
// All holds with parts end first: the release of a part that is in two of them would end the other as lost.
func startReleases(holds []*Hold, add func(leaf *Hold, wait func() error)) {
	r := &releases{add: add}
	defer r.startLeaves()
	r.endWholes(holds)
}

// releases are the releases of holds that are started together.
type releases struct {
	add    func(leaf *Hold, wait func() error)
	leaves []*Hold // holds without parts, each once
}

// endWholes ends those of holds that have parts, the last first, and collects the leaves.
func (r *releases) endWholes(holds []*Hold) {
	for _, h := range holds {
		defer func() {
			switch {
			case len(h.owned.parts()) > 0:
				r.start(h)
			case !slices.Contains(r.leaves, h):
				r.leaves = append(r.leaves, h)
			}
		}()
	}
}

func (r *releases) startLeaves() {
	for _, h := range slices.Backward(r.leaves) {
		defer r.start(h)
	}
}

func (r *releases) start(h *Hold) {
	defer func() {
		result, measured, err := h.owned.releasePart(h)
		wait := h.afterRelease(result, measured, err)
		switch parts := h.owned.parts(); {
		case err != nil || len(parts) == 0:
			r.add(h, wait)
		case result == released:
			r.endWholes(parts) // instead of wait
		}
	}()
	h.owned.endIfLost()
}

// ReleaseAll releases holds, the last first: each part in the background of its own session, which must not wait
// for another one. ctx bounds only the wait.
func ReleaseAll(ctx context.Context, holds []*Hold) error {
	var waits []<-chan error
	before := signal.Closed
	startReleases(holds, func(leaf *Hold, wait func() error) {
		previous, done, result := before, make(chan struct{}), make(chan error, 1)
		release := func() {
			defer close(done)
			err := errReleaseEnded
			defer func() { result <- err }()
			select {
			case <-previous:
			case <-time.After(inTurnFor):
			case <-leaf.sessionDone():
			}
			err = call(wait)
		}
		if !leaf.owned.background(release) {
			release() // the session has ended, so there is nothing to wait for
		}
		before, waits = done, append(waits, result)
	})
	var all []error
	for _, result := range waits {
		select {
		case err := <-result:
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
func (p *parts) release() (err error) {
	var waits []func() error
	defer func() { err = callInTurn(waits) }()
	startReleases(p.holds, func(_ *Hold, wait func() error) { waits = append(waits, wait) })
	return nil
}

// callInTurn calls functions one after another, and after a while at the same time.
func callInTurn(waits []func() error) error {
	errs := make([]error, len(waits))
	inTurn, cancel := context.WithTimeout(context.Background(), inTurnFor)
	defer cancel()
	var running sync.WaitGroup
	for i, wait := range waits {
		done := make(chan struct{})
		running.Go(func() {
			defer close(done)
			errs[i] = errReleaseEnded
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

// errReleaseEnded is the result of a release whose goroutine code of the program has ended, such as a service
// or metrics.
var errReleaseEnded = fmt.Errorf("%w: code of the program ended the goroutine", ErrReleasePending)

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
