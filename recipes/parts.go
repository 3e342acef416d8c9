package recipes

import (
	"context"
	"errors"
	"slices"
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
	key   any // nil if there is no such thing
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
func (p *parts) forsake(error) {
	for _, h := range slices.Backward(p.holds) {
		h.tenure.session().Go(func() { _ = h.Release() }) // if the session is over, so is the hold
	}
}

// giveUp releases the parts, the last first.
func (p *parts) giveUp() error {
	var all []error
	for _, h := range slices.Backward(p.holds) {
		all = append(all, h.Release())
	}
	return errors.Join(all...)
}

func (p *parts) attend() {
	for _, h := range p.holds {
		h.tenure.attend()
	}
}

func (p *parts) carry(ctx context.Context, h *Hold) context.Context {
	for _, part := range p.holds {
		ctx = part.tenure.carry(ctx, part)
	}
	if p.key != nil {
		ctx = context.WithValue(ctx, holdKey{p.key}, h)
	}
	return ctx
}

// measure does nothing: the parts are measured.
func (p *parts) measure(time.Duration, error) {}
