package queue

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// tenancy is what a party has of one node, from when it has come to the front until it is over: it is the ownership.Decisions of the node's
// holds. The party itself may keep the node, by a hold of its own, while none of the guests has it: because none wants it, or because it is
// due, and the line is being looked at for others who want it.
type tenancy struct {
	party   *party
	session *framework.Session
	name    string // of the node

	// Guarded by mu of parties.
	passed  int             // how often the node was passed on, since anybody else has waited
	since   time.Time       // since when it is held, and anybody else may have waited
	parting bool            // the node is not kept any more: once no guest may have it, it goes
	kept    *ownership.Hold // of the party itself
	idle    *time.Timer     // of kept: its end
	lookout *lookout        // nil: it is not known whether others wait
}

// lookout is kept over the line of a node, for others who want it.
type lookout struct {
	stop  context.CancelFunc
	watch *framework.Watch // that has not fired since nobody else was in line; nil while the line is being read
}

// lodge makes a tenancy of a hold that has just begun.
func (p *party) lodge(h *ownership.Hold) *tenancy {
	return &tenancy{party: p, session: h.Session(), name: path.Base(h.Path()), since: time.Now()}
}

// Next gives a hold to the first guest, unless the node is due. A node that is not to go yet is kept.
func (n *tenancy) Next(h *ownership.Hold) ownership.Decision {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	wanted := len(n.party.waiting) > 0
	switch {
	case wanted && !n.due():
		n.passed++
		n.party.first().turn <- turn{hold: h}
		return ownership.Passed
	case n.parting || !wanted && n.party.limit.Idle == 0:
		return ownership.Delete
	}
	n.keep(h)
	return ownership.Kept
}

// due reports whether the node has been passed on often enough, or for long enough, for the case that others wait. If nobody does, that
// begins anew. It is called with mu of parties held.
func (n *tenancy) due() bool {
	switch l := n.party.limit; {
	case n.passed < l.Streak && time.Since(n.since) < l.Span:
		return false
	case n.lookout == nil || n.lookout.watch == nil:
		return true
	}
	n.passed, n.since = 0, time.Now()
	return false
}

// keep is called with mu of parties held.
func (n *tenancy) keep(h *ownership.Hold) {
	n.kept = h
	if limit := n.party.limit.Idle; limit > 0 {
		n.idle = time.AfterFunc(limit, n.part)
	}
	if n.lookout == nil {
		n.look()
	}
}

// unkeep takes the hold away from the party; nil if that has none. It is called with mu of parties held.
func (n *tenancy) unkeep() *ownership.Hold {
	h := n.kept
	n.kept = nil
	if n.idle != nil {
		n.idle.Stop()
	}
	return h
}

// release ends a hold of the party's, if there is one: Next says what becomes of the node.
func (n *tenancy) release(kept *ownership.Hold) {
	if kept == nil {
		return
	}
	wait := kept.StartRelease()
	if wait != nil && !bridge.Of(n.party.lock.Client).Go(func() { _ = wait() }) { // whatever it says, nobody has the hold
		_ = wait() // which takes no time once the client is closed
	}
}

// part gives up the node as soon as no guest may have it.
func (n *tenancy) part() {
	parties.mu.Lock()
	n.parting = true
	kept := n.unkeep()
	parties.mu.Unlock()
	n.release(kept)
}

// Requested gives up the node.
func (n *tenancy) Requested() { n.part() }

// Ended gets in line again for those who still wait.
func (n *tenancy) Ended() {
	parties.mu.Lock()
	n.party.node = nil
	n.unkeep()
	if n.lookout != nil {
		n.lookout.stop()
	}
	parties.mu.Unlock()
	n.party.again()
}

// look reads the line, in the background. It is called with mu of parties held.
func (n *tenancy) look() {
	ctx, stop := context.WithCancel(context.Background())
	o := &lookout{stop: stop}
	n.lookout = o
	bridge.OfSession(n.session).Go(func() { n.read(ctx, o) }) // else the session is over, and so is the node
}

// read gives up the node if there are others in line, or if that cannot be told. If there are none it lets the party go on, until somebody
// may have come.
func (n *tenancy) read(ctx context.Context, o *lookout) {
	defer o.stop()
	seen := false
	defer func() {
		if !seen {
			n.part()
		}
	}()
	line := n.party.lock.Lines[0]
	watch, err := Patiently(ctx, n.session, func(ctx context.Context) (*framework.Watch, error) {
		children, _, w, err := n.session.ChildrenW(ctx, line.path)
		if err == nil && !n.alone(lineup(children, line.rules.all())) {
			err = ErrBusy
		}
		return w, err
	})
	if seen = err == nil; !seen {
		return
	}
	parties.mu.Lock()
	o.watch = watch
	var kept *ownership.Hold
	if len(n.party.waiting) > 0 || n.party.limit.Idle == 0 {
		kept = n.unkeep()
	}
	parties.mu.Unlock()
	n.release(kept)
	bridge.OfWatch(watch).Then(func() { n.stirred(o) })
}

func (n *tenancy) alone(line []member) bool {
	return !slices.ContainsFunc(line, func(m member) bool { return m.name != n.name })
}

// stirred hears that others may have come. It must not wait.
func (n *tenancy) stirred(o *lookout) {
	parties.mu.Lock()
	defer parties.mu.Unlock()
	if n.lookout != o {
		return
	}
	n.lookout = nil
	if n.kept != nil {
		n.look()
	}
}
