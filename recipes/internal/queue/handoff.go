package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
)

// Handoff lets the goroutines of a client that want the same lock share one node, and pass it on among themselves without the servers.
// Others wait meanwhile, so it is bounded: then the node is given up.
type Handoff struct {
	Streak int           // how often a node is passed on
	Span   time.Duration // for how long a node is passed on
}

// party are those of one client who want one lock. One place in line serves them all: it is the party's, not that of whoever came first,
// and whoever gives up costs the others nothing.
type party struct {
	lock  *Lock // of whoever came first
	key   partyKey
	limit Handoff

	// Guarded by mu of parties.
	waiting []*guest           // first come first
	leave   context.CancelFunc // while the party is in line: leaves it
	passed  int                // how often the present node was passed on
	since   time.Time          // since when it is held
}

// partyKey tells parties apart: by the lock, by the path under which it is known, for a hold shows that, and by what its node is named, for
// that is who else waits for it.
type partyKey struct {
	lock any
	path string
	kind string
}

// guest is one who waits.
type guest struct{ turn chan turn } // has room for one

// turn is what a guest gets in the end, unless it gives up before.
type turn struct {
	hold *recipes.Hold
	err  error
}

// parties are those that are in line, or hold. One lock serves all: nothing waits under it.
var parties = struct {
	mu  sync.Mutex
	all map[partyKey]*party
}{all: map[partyKey]*party{}}

// locally acquires the lock as one of a party.
func (l *Lock) locally(ctx context.Context, a *alarm) (*recipes.Hold, error) {
	if ctx.Err() != nil {
		return nil, l.failed(ctx, ctxerr.Of(ctx))
	}
	a.start()
	p, g := l.join()
	select {
	case t := <-g.turn:
		return l.take(ctx, t)
	case <-ctx.Done():
	}
	if p.dismiss(g) {
		return nil, l.failed(ctx, Waited(ctx, ctxerr.Of(ctx)))
	}
	return l.take(ctx, <-g.turn) // it has just become our turn
}

// take accepts a hold, unless ctx has ended: then it goes on to the next, which nobody waits for.
func (l *Lock) take(ctx context.Context, t turn) (*recipes.Hold, error) {
	if t.err != nil || ctx.Err() == nil {
		return t.hold, t.err
	}
	if !l.Client.Go(func() { _ = t.hold.Release() }) { // whatever it says, the hold is over
		_ = t.hold.Release() // which takes no time once the client is closed
	}
	return nil, l.failed(ctx, Waited(ctx, ctxerr.Of(ctx)))
}

// join makes a guest of the party, and a party if there is none.
func (l *Lock) join() (*party, *guest) {
	g := &guest{turn: make(chan turn, 1)}
	key := partyKey{l.LockKey(), l.name(), l.Lines[0].rules.Name}
	parties.mu.Lock()
	p, there := parties.all[key]
	if !there {
		p = &party{lock: l, key: key, limit: *l.HandOff}
		parties.all[key] = p
	}
	p.waiting = append(p.waiting, g)
	parties.mu.Unlock()
	if !there {
		p.fetch()
	}
	return p, g
}

// dismiss takes a guest out of the party; false if it is its turn already.
func (p *party) dismiss(g *guest) bool {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	i := slices.Index(p.waiting, g)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	if len(p.waiting) == 0 && p.leave != nil {
		p.leave()
	}
	return true
}

// fetch gets in line for the party.
func (p *party) fetch() {
	if !p.lock.Client.Go(p.stand) {
		p.disappoint(p.lock.failed(context.Background(), framework.ErrClosed))
	}
}

// stand stands in line until the lock is there, or cannot be had, or nobody waits any more.
func (p *party) stand() {
	for {
		ctx, wanted := p.begin()
		if !wanted {
			return
		}
		hold, err := p.lock.acquire(ctx, &alarm{})
		switch {
		case err == nil:
			p.present(hold)
			return
		case ctx.Err() == nil:
			p.disappoint(err)
			return
		}
	}
}

// begin is the party's context in line, which ends when nobody waits any more; false if that is so already, and the party over.
func (p *party) begin() (context.Context, bool) {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	if len(p.waiting) == 0 {
		p.dissolve()
		return nil, false
	}
	ctx, leave := context.WithCancel(context.Background())
	p.leave = leave
	return ctx, true
}

// present gives a hold that has just begun to the first guest.
func (p *party) present(hold *recipes.Hold) {
	parties.mu.Lock()
	p.leave()
	p.leave = nil
	p.passed, p.since = 0, time.Now()
	first := p.first()
	parties.mu.Unlock()
	recipes.Bequeath(hold, p)
	if first == nil {
		_ = hold.Release() // all have given up; whatever it says, the hold is over
		return
	}
	first.turn <- turn{hold: hold}
}

// disappoint tells all who wait that the lock cannot be had, and is the end of the party.
func (p *party) disappoint(err error) {
	parties.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.dissolve()
	parties.mu.Unlock()
	for _, g := range waiting {
		g.turn <- turn{err: err}
	}
}

// Next is the first guest, unless the node is due. It makes the party the recipes.Heirs of its holds.
func (p *party) Next() func(*recipes.Hold) {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	if p.passed >= p.limit.Streak || time.Since(p.since) >= p.limit.Span {
		return nil
	}
	next := p.first()
	if next == nil {
		return nil
	}
	p.passed++
	return func(h *recipes.Hold) { next.turn <- turn{hold: h} }
}

// Over gets in line again for those who still wait.
func (p *party) Over() {
	parties.mu.Lock()
	wanted := len(p.waiting) > 0
	if !wanted {
		p.dissolve()
	}
	parties.mu.Unlock()
	if wanted {
		p.fetch()
	}
}

// dissolve ends the party. It is called with mu of parties held.
func (p *party) dissolve() {
	if parties.all[p.key] == p {
		delete(parties.all, p.key)
	}
}

// first takes the first guest, nil if there is none. It is called with mu of parties held.
func (p *party) first() *guest {
	if len(p.waiting) == 0 {
		return nil
	}
	g := p.waiting[0]
	p.waiting = p.waiting[1:]
	return g
}
