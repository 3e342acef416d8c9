package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Handoff lets the goroutines of a client that want the same lock share one node, and pass it on among themselves without the servers.
// Others may wait meanwhile, so it is bounded: then the node is given up.
type Handoff struct {
	Streak int           // how often a node is passed on
	Span   time.Duration // for how long a node is passed on
	Idle   time.Duration // for how long a node is kept that none of them wants; 0: not at all
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
	node    *tenancy           // while the party has one
}

// partyKey tells parties apart: by the lock, by the path under which it is known, for a hold shows that, and by what its node is named, for
// that is who else waits for it.
type partyKey struct {
	lock any
	path string
	kind string
}

// guest is one who waits.
type guest struct {
	party *party    // nil: it is in none; of its goroutine
	turn  chan turn // has room for one
	taken *turn     // that it has received; of its goroutine
}

// turn is what a guest gets in the end, unless it gives up before.
type turn struct {
	hold *ownership.Hold
	err  error
}

// parties are those that are in line, or hold. One lock serves all: nothing waits under it.
var parties = struct {
	mu  sync.Mutex
	all map[partyKey]*party
}{all: map[partyKey]*party{}}

// locally acquires the lock as one of a party.
func (l *Lock) locally(ctx context.Context, a *alarm) (*ownership.Hold, error) {
	if ctx.Err() != nil {
		return nil, l.failed(ctx, ctxerr.Of(ctx))
	}
	a.start()
	g, returned := newGuest(), false
	defer func() {
		if !returned {
			g.forfeit()
		}
	}()
	hold, err := l.await(ctx, g)
	returned = true
	return hold, err
}

// await waits for the turn of a guest that joins the party.
func (l *Lock) await(ctx context.Context, g *guest) (*ownership.Hold, error) {
	l.join(g)
	select {
	case t := <-g.turn:
		return l.take(ctx, g, t)
	case <-ctx.Done():
	}
	if g.party.dismiss(g) {
		return nil, l.failed(ctx, Waited(ctx, ctxerr.Of(ctx)))
	}
	return l.take(ctx, g, <-g.turn) // it has just become our turn
}

// forfeit gives up what a guest waits for, or has just been given: its goroutine is ended by a
// panic or runtime.Goexit in code of the program's, such as a logger.
func (g *guest) forfeit() {
	switch {
	case g.taken != nil:
		_ = g.taken.hold.Release()
	case g.party != nil && !g.party.dismiss(g):
		_ = (<-g.turn).hold.Release()
	}
}

// take accepts a hold, unless ctx has ended: then it goes on to the next, which nobody waits for.
func (l *Lock) take(ctx context.Context, g *guest, t turn) (*ownership.Hold, error) {
	g.taken = &t
	if t.err != nil || ctx.Err() == nil {
		return t.hold, t.err
	}
	if !bridge.Of(l.Client).Go(func() { _ = t.hold.Release() }) { // whatever it says, the hold is over
		_ = t.hold.Release() // which takes no time once the client is closed
	}
	return nil, l.failed(ctx, Waited(ctx, ctxerr.Of(ctx)))
}

// join makes g a guest of the party, and a party if there is none.
func (l *Lock) join(g *guest) {
	parties.mu.Lock()
	p, there := l.party()
	p.admit(g)
	node, kept := p.spare()
	parties.mu.Unlock()
	if !there {
		p.fetch()
	}
	node.release(kept)
}

// admit is called with mu of parties held.
func (p *party) admit(g *guest) {
	g.party = p
	p.waiting = append(p.waiting, g)
}

func newGuest() *guest { return &guest{turn: make(chan turn, 1)} }

// party is that of the lock, which is made if it is not there. It is called with mu of parties held.
func (l *Lock) party() (p *party, there bool) {
	key := partyKey{l.LockKey(), l.name(), l.Lines[0].rules.Name}
	if p, there = parties.all[key]; !there {
		p = &party{lock: l, key: key, limit: *l.HandOff}
		parties.all[key] = p
	}
	return p, there
}

// tryLocally takes the node that the party keeps, or one for a party that is not there yet. Otherwise it is as without a party.
func (l *Lock) tryLocally(ctx context.Context) (hold *ownership.Hold, err error) {
	if ctx.Err() != nil {
		return nil, l.failed(ctx, ctxerr.Of(ctx))
	}
	g := newGuest()
	parties.mu.Lock()
	p, there := l.party()
	node, kept := p.spare()
	if kept != nil {
		p.admit(g)
	}
	parties.mu.Unlock()
	switch {
	case !there:
		return p.try(ctx)
	case kept == nil:
		return l.try(ctx)
	}
	returned := false
	defer func() {
		if !returned {
			g.forfeit()
		}
	}()
	node.release(kept)
	if p.dismiss(g) {
		hold, err = l.try(ctx) // the node is being given up, or looked after, or was lost
	} else {
		hold, err = l.take(ctx, g, <-g.turn)
	}
	returned = true
	return hold, err
}

// try is Try for a new party. Whatever the end, the party has the node, or gets in line for those
// who have joined it meanwhile.
func (p *party) try(ctx context.Context) (*ownership.Hold, error) {
	held := false
	defer func() {
		if !held {
			p.again()
		}
	}()
	hold, err := p.lock.try(ctx)
	if held = err == nil; !held {
		return nil, err
	}
	node := p.lodge(hold)
	parties.mu.Lock()
	p.node = node
	parties.mu.Unlock()
	hold.SetHandoff(node)
	return hold, nil
}

// dismiss takes a guest out of the party; false if it is its turn already.
func (p *party) dismiss(g *guest) bool {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	i := slices.Index(p.waiting, g)
	if i < 0 {
		return false
	}
	p.waiting, g.party = slices.Delete(p.waiting, i, i+1), nil
	if len(p.waiting) == 0 && p.leave != nil {
		p.leave()
	}
	return true
}

// fetch gets in line for the party.
func (p *party) fetch() {
	if !bridge.Of(p.lock.Client).Go(p.stand) {
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
		var a alarm
		hold, err := p.acquire(ctx, &a)
		switch {
		case err == nil:
			p.present(hold, a.waited.Load())
			return
		case ctx.Err() == nil:
			p.disappoint(err)
			return
		}
	}
}

// acquire stands in line. If that ends the goroutine, those who wait hear of it.
func (p *party) acquire(ctx context.Context, a *alarm) (*ownership.Hold, error) {
	returned := false
	defer func() {
		if !returned {
			p.disappoint(p.lock.failed(context.Background(), errGoroutineEnded))
		}
	}()
	hold, err := p.lock.acquire(ctx, a)
	returned = true
	return hold, err
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

// present gives a hold that has just begun to the first guest. Where the party has waited for others, it is better to give the node up
// when it is due than to ask whether there still are others.
func (p *party) present(hold *ownership.Hold, waited bool) {
	node := p.lodge(hold)
	node.parting = waited && p.limit.Idle == 0
	parties.mu.Lock()
	p.leave()
	p.leave, p.node = nil, node
	first := p.first()
	parties.mu.Unlock()
	hold.SetHandoff(node)
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

// again gets in line for those who wait.
func (p *party) again() {
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

// spare is the node that the party keeps, and its hold, which is to be released for a guest. It is called with mu of parties held.
func (p *party) spare() (*tenancy, *ownership.Hold) {
	if p.node == nil {
		return nil, nil
	}
	return p.node, p.node.unkeep()
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
