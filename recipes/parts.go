package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
)

// Join makes one hold of several, at least one, which must not be used by themselves any more: it ends when any of them ends, and
// then the others are released. It is for recipes.
func Join(key any, holds ...*Hold) *Hold {
	p := &parts{key: key, holds: holds}
	t := newTenure(p)
	h := t.newLevel()
	for _, part := range holds {
		part.join(t)
		if isClosed(part.tenure.revoked) {
			t.heed()
		}
	}
	t.check() // one may have ended before
	return h
}

// join makes a hold a part of something.
func (h *Hold) join(whole *tenure) {
	h.tenure.mu.Lock()
	defer h.tenure.mu.Unlock()
	h.whole = whole
}

// parts are holds as an estate.
type parts struct {
	holds []*Hold
	key   any // of all together, which re-enter as one; nil: each re-enters by itself
}

func (p *parts) session() *framework.Session { return p.holds[0].tenure.session() }
func (p *parts) paths() []string             { return nil }
func (p *parts) parts() []*Hold              { return p.holds }

func (p *parts) locks() []Lock {
	var all []Lock
	for _, h := range p.holds {
		all = append(all, h.tenure.locks()...)
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

func (p *parts) trouble() error {
	for _, h := range p.holds {
		if err := h.Err(); err != nil {
			return err
		}
	}
	return nil
}

// forsake releases the parts that are still held, in the background.
func (p *parts) forsake(reason error) {
	for _, h := range slices.Backward(p.holds) {
		if len(h.tenure.parts()) > 0 {
			h.tenure.end(reason)
			continue
		}
		h.tenure.session().Go(func() { _ = h.Release() }) // if the session is over, so is the hold
	}
}

// Undo releases holds that nobody is to have, the last first: each in the background of its own session, and ctx bounds only the wait. It
// is for recipes.
func Undo(ctx context.Context, holds []*Hold) error {
	var leaves []*Hold
	for _, h := range holds {
		leaves = append(leaves, h.leaves()...)
	}
	errs := make(chan error, len(leaves))
	before := closed
	for _, leaf := range slices.Backward(leaves) {
		wait, previous, gone := leaf.quit(), before, make(chan struct{})
		release := func() {
			defer close(gone)
			select {
			case <-previous:
			case <-time.After(patience):
			case <-leaf.tenure.session().Done():
			}
			errs <- finally(wait)
		}
		if !leaf.tenure.session().Go(release) {
			release() // the session is over, so there is nothing to wait for
		}
		before = gone
	}
	var all []error
	for range leaves {
		select {
		case err := <-errs:
			all = append(all, err)
		case <-ctx.Done():
			return errors.Join(append(all, fmt.Errorf("%w: %w", ErrReleasePending, ctx.Err()))...)
		}
	}
	return errors.Join(all...)
}

// giveUp releases the parts. All of them end before the first request is made. Their nodes go the last first; but where that takes long
// nobody waits for another, so that it takes all of them about as long as one.
func (p *parts) giveUp() error {
	var waits []func() error
	for _, h := range slices.Backward(p.holds) {
		waits = append(waits, h.quit())
	}
	errs := make([]error, len(waits))
	haste := time.NewTimer(patience)
	defer haste.Stop()
	var running sync.WaitGroup
	for i, wait := range waits {
		gone := make(chan struct{})
		running.Go(func() {
			defer close(gone)
			errs[i] = finally(wait)
		})
		select {
		case <-gone:
		case <-haste.C:
			haste.Reset(0)
		}
	}
	running.Wait()
	return errors.Join(errs...)
}

// patience is for how long the parts of a hold are released one after another.
const patience = 500 * time.Millisecond

func (p *parts) rest() {}

func (p *parts) attend() {
	for _, h := range p.holds {
		h.tenure.attend()
	}
}

func (p *parts) carry(ctx context.Context, h *Hold) context.Context {
	if p.key != nil {
		return newCarrier(ctx, h, p.key, p.locks())
	}
	for _, part := range p.holds {
		ctx = part.tenure.carry(ctx, part)
	}
	return ctx
}

// measure does nothing: the parts are measured.
func (p *parts) measure(time.Duration, error) {}
