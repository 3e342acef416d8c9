package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
)

// Handoff lets the goroutines of a client that want the same lock share one node and pass it on among themselves, without the servers.
// Others wait meanwhile, so it is bounded: then the node is given up.
type Handoff struct {
	Streak int           // how often a node is passed on
	Span   time.Duration // how long a node is kept for passing it on
}

// party is those of one client who want, or have, the lock of one line: one of them is in line with a node or holds it, the others wait for
// that one, in their order.
type party struct {
	key   any
	limit Handoff

	mu      sync.Mutex
	present int       // who has joined and has not left; guarded by mu of parties
	busy    bool      // one of them is in line or holds
	waiting []*guest  // first come first
	passed  int       // how often the present node was passed on
	since   time.Time // since when it is held
}

// guest is one who waits for another of the party.
type guest struct {
	turn chan *recipes.Hold // has room for one: a hold that was passed on, or nil if it is the guest's turn to get in line
}

// parties are those that there are, by the locks' keys: any number of recipes on one lock have one party.
var parties = struct {
	mu  sync.Mutex
	all map[any]*party
}{all: map[any]*party{}}

func join(key any, limit Handoff) *party {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	p := parties.all[key]
	if p == nil {
		p = &party{key: key, limit: limit}
		parties.all[key] = p
	}
	p.present++
	return p
}

func (p *party) quit() {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	if p.present--; p.present == 0 {
		delete(parties.all, p.key)
	}
}

// HandOff makes the holds of the line pass their nodes on. Call it before the line is used.
func (l *Line) HandOff(limit Handoff) { l.handoff = &limit }

// heirs are those who may have the node of a hold that begins now. Whoever acquires has joined the party before.
func (l *Line) heirs() recipes.Heirs {
	if l.handoff == nil {
		return nil
	}
	parties.mu.Lock()
	p := parties.all[l.Key()]
	parties.mu.Unlock()
	p.begin()
	return p
}

// locally acquires the lock as one of the party: from another of it, or in line.
func (l *Line) locally(ctx context.Context, a *alarm) (*recipes.Hold, error) {
	p := join(l.Key(), *l.handoff)
	if g := p.enter(); g != nil {
		a.start()
		hold, err := p.await(ctx, g)
		if hold != nil || err != nil {
			return hold, l.failed(ctx, err)
		}
	}
	return p.settled(l.acquire(ctx, a))
}

// tryLocally is locally without waiting for anybody.
func (l *Line) tryLocally(ctx context.Context) (*recipes.Hold, error) {
	p := join(l.Key(), *l.handoff)
	if !p.enterFirst() {
		p.quit()
		return nil, l.failed(ctx, errBusy)
	}
	return p.settled(l.try(ctx))
}

// settled lets the next get in line if there is no hold, whose end would do it.
func (p *party) settled(hold *recipes.Hold, err error) (*recipes.Hold, error) {
	if err != nil {
		p.Vacated()
	}
	return hold, err
}

// await waits for another of the party to pass on its hold, which is nil if the guest has to get in line itself.
func (p *party) await(ctx context.Context, g *guest) (*recipes.Hold, error) {
	select {
	case hold := <-g.turn:
		return taken(ctx, hold)
	case <-ctx.Done():
	}
	if !p.dismiss(g) { // it has just become its turn
		return taken(ctx, <-g.turn)
	}
	p.quit()
	return nil, waited(ctx, ctxerr.Of(ctx))
}

// taken accepts a hold that was passed on, unless ctx has ended: then it is passed on again.
func taken(ctx context.Context, hold *recipes.Hold) (*recipes.Hold, error) {
	if hold == nil || ctx.Err() == nil {
		return hold, nil // and to get in line fails if ctx has ended
	}
	_ = hold.Release() // whatever it says, the hold is over
	return nil, waited(ctx, ctxerr.Of(ctx))
}

// enter takes a place in the party: nil if nobody has to be waited for.
func (p *party) enter() *guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.busy {
		p.busy = true
		return nil
	}
	g := &guest{turn: make(chan *recipes.Hold, 1)}
	p.waiting = append(p.waiting, g)
	return g
}

func (p *party) enterFirst() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy {
		return false
	}
	p.busy = true
	return true
}

// dismiss takes a guest out of the line; false if it is its turn already.
func (p *party) dismiss(g *guest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, g)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	return true
}

// begin notes that one of the party has got the lock with a node of its own.
func (p *party) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed, p.since = 0, time.Now()
}

// Inherit passes the node of a hold that is over on to the next of the party, if there is one and the node is not due. It makes
// party the recipes.Heirs of its holds.
func (p *party) Inherit(g recipes.Grant) bool {
	if g.Footing.Err() != nil {
		return false
	}
	next := p.heir()
	if next == nil {
		return false
	}
	next.turn <- recipes.NewHold(g)
	p.quit()
	return true
}

func (p *party) heir() *guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 || p.passed >= p.limit.Streak || time.Since(p.since) >= p.limit.Span {
		return nil
	}
	p.passed++
	return p.first()
}

// Vacated lets the next of the party get in line: a hold is over, and its node was not passed on; or there was none.
func (p *party) Vacated() {
	p.mu.Lock()
	if len(p.waiting) == 0 {
		p.busy = false
	} else {
		p.first().turn <- nil
	}
	p.mu.Unlock()
	p.quit()
}

// first takes the first of those who wait. It is called with mu held, and only if there is one.
func (p *party) first() *guest {
	g := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	return g
}
