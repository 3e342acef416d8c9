package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// ready is the name of the node that says that the members may enter. Curator and kazoo use the
// same name.
const ready = "ready"

// Double is a barrier that a number of members enter together and leave together. Each member is an
// ephemeral node below the path. A Double may be used for any number of members at the same time.
// Safe for concurrent use. Curator: DistributedDoubleBarrier, which has the same nodes.
type Double struct {
	place
	n        int
	data     []byte
	orphaned atomic.Int64 // the czxid of a node ready whose members have all crashed inside
	remains  remains
}

// NewDouble returns the double barrier at path. The n-th member opens it. n is no limit: members
// that come while others are inside enter at once. All members must be given the same n. NewDouble
// makes no request. It returns an error if c is nil or a zero value, for an invalid path or option,
// and if n is not between 1 and 5000.
func NewDouble(c *framework.Client, path string, n int, opts ...Option) (*Double, error) {
	at, err := newPlace(c, path)
	if err != nil {
		return nil, fmt.Errorf("new double barrier: %w", err)
	}
	data, err := newData(opts)
	if err == nil {
		err = checkParties(n)
	}
	if err != nil {
		return nil, fmt.Errorf("new double barrier %s: %w", path, err)
	}
	return &Double{place: at, n: n, data: data}, nil
}

// Enter waits until n members are present, and returns the Entry of this one. ctx bounds only the
// wait. It never enters before n members were present in one instant, members of other languages
// aside.
//
// Enter fails when ctx ends; with framework.ErrSessionLost if the session is lost while it waits;
// with framework.ErrClosed when the client is closed; with ErrNodeDeleted if another client deletes
// the member's node; with framework.ErrTooLarge if the names of n members do not fit into one
// transaction; and with what the servers refuse. An outage that ends before the session is lost is no
// failure. The text of the error has the number of members that this one has seen. Members that came
// later are not counted.
//
// After a failure the member's node is deleted, in the background if necessary, and the next Enter of
// this Double waits until that is confirmed. The others may have counted the member, and have
// entered. Curator: enter, which leaves the node of a timed-out call.
func (d *Double) Enter(ctx context.Context) (*Entry, error) {
	if err := d.begin(ctx, "Double"); err != nil {
		return nil, fmt.Errorf("enter double barrier %s: %w", d.path, err)
	}
	m, err := d.arrive(ctx)
	if err != nil {
		return nil, d.failed(ctx, "enter double barrier", err)
	}
	if err := m.awaitReady(ctx); err != nil {
		m.abandon()
		return nil, d.failed(ctx, "enter double barrier", m.withSeen(err))
	}
	return newEntry(m), nil
}

// member is a member that has created its node.
type member struct {
	*Double
	session *framework.Session
	name    string
	seen    int  // how many members there were when it looked last, with itself; 0: not known
	late    bool // it enters a round in progress, or has tried to
}

// arrive creates the node of a member.
func (d *Double) arrive(ctx context.Context) (*member, error) {
	if err := d.remains.clear(ctx, d.client); err != nil {
		return nil, err
	}
	session, err := d.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	m := &member{Double: d, session: session, name: newID()}
	_, err = session.Create(ctx, m.own(), d.data, framework.Ephemeral(), framework.Parents(), bridge.Named())
	if err != nil {
		if framework.OutcomeOf(err) == framework.Unknown {
			d.remains.add(m.own())
		}
		return nil, err
	}
	return m, nil
}

func (m *member) own() string   { return m.child(m.name) }
func (m *member) ready() string { return m.child(ready) }

// withSeen adds to err how many members there were. A member that waits does not hear of those that
// come later.
func (m *member) withSeen(err error) error {
	if m.seen == 0 {
		return err
	}
	return fmt.Errorf("had seen %d of %d members: %w", m.seen, m.n, err)
}

// abandon deletes the member's node in the background.
func (m *member) abandon() {
	m.remains.add(m.own())
	bridge.OfSession(m.session).DeleteLater(m.own())
}

// awaitReady waits until the members may enter. The servers list all nodes that are older than the
// member's. So the last of n members sees n, and creates the node ready. The others wait only for
// that node.
func (m *member) awaitReady(ctx context.Context) error {
	for {
		w, err := queue.RetryInSession(ctx, m.session, m.look)
		if err != nil || w.entered {
			return err
		}
		if w.again {
			continue
		}
		if err := m.await(ctx, w.ready, w.own); err != nil {
			return err
		}
		if w.ready.Event() == zk.EventNodeCreated {
			return nil // also if it is deleted by now: the first members may leave quickly
		}
	}
}

// waiting is what a member waits for.
type waiting struct {
	entered    bool
	again      bool // to be looked at again at once
	ready, own *framework.Watch
}

// look reports whether the member may enter, and opens the barrier if n members are there.
func (m *member) look(ctx context.Context) (w waiting, err error) {
	_, own, watch, err := m.session.GetW(ctx, m.own())
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		err = fmt.Errorf("%w: %s", ErrNodeDeleted, m.own())
	}
	if err != nil {
		return w, err
	}
	w.own = watch
	if m.late && own.Version > 0 { // the answer to the write of enterLate was lost
		w.entered = true
		return w, nil
	}
	stat, watch, err := m.session.ExistsW(ctx, m.ready())
	if err != nil {
		return w, err
	}
	w.ready = watch
	if stat != nil && stat.Czxid > own.Czxid {
		w.entered = true
		return w, nil
	}
	names, _, err := m.session.Children(ctx, m.path)
	others := m.othersOf(names)
	if err == nil {
		m.seen = len(others) + 1
	}
	if err == nil && stat != nil {
		w.entered, err = m.enterLate(ctx, stat, others)
	}
	if err == nil && !w.entered && len(others)+1 >= m.n {
		err = m.open(ctx, stat, others[:m.n-1])
		w.entered = err == nil
	}
	if isChanged(ctx, err) || ctxerr.Answered(ctx, err, zk.ErrNodeExists) {
		w.again, err = true, nil // a member has gone, or another one has opened the barrier
	}
	return w, err
}

// isChanged reports whether a transaction has failed because a node is not as it was read.
func isChanged(ctx context.Context, err error) bool {
	return ctxerr.Answered(ctx, err, zk.ErrNoNode) || ctxerr.Answered(ctx, err, zk.ErrBadVersion)
}

// othersOf returns the names of the other members, in order.
func (m *member) othersOf(names []string) []string {
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == ready || name == m.name })
	slices.Sort(others)
	return others
}

// enterLate enters a round in progress, and reports whether there is one. It writes the member's node. The version of
// the node tells other members that this one is inside.
func (m *member) enterLate(ctx context.Context, open *zk.Stat, others []string) (bool, error) {
	inside, err := m.inProgress(ctx, open, others)
	if err != nil || !inside {
		return false, err
	}
	m.late = true // from now on others may see the write
	if _, err := m.session.Set(ctx, m.own(), m.data, -1); err != nil {
		return false, err
	}
	return true, nil
}

// inProgress reports whether a member is inside: one that is older than the node ready. Without one
// its members have all crashed. That stays so, because members that come later are younger.
func (m *member) inProgress(ctx context.Context, open *zk.Stat, others []string) (bool, error) {
	if m.orphaned.Load() == open.Czxid {
		return false, nil
	}
	stats, err := m.stats(ctx, others)
	if err != nil {
		return false, err
	}
	for _, stat := range stats {
		if stat.Czxid < open.Czxid {
			return true, nil
		}
	}
	m.orphaned.Store(open.Czxid)
	return false, nil
}

// stats returns the Stats of the members that are there.
func (m *member) stats(ctx context.Context, names []string) (all []*zk.Stat, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	var reads []framework.ReadOp
	for _, name := range names {
		reads = append(reads, framework.GetOp(m.child(name)))
	}
	results, err := m.session.MultiRead(ctx, reads...)
	if ctxerr.Answered(ctx, err, framework.ErrUnimplemented) {
		results, err = m.readEach(ctx, names)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		switch {
		case r.Err == nil:
			all = append(all, r.Stat)
		case !errors.Is(r.Err, zk.ErrNoNode):
			return nil, r.Err
		}
	}
	return all, nil
}

// readEach is MultiRead for servers before 3.6.
func (m *member) readEach(ctx context.Context, names []string) (all []framework.ReadResult, err error) {
	for _, name := range names {
		stat, err := m.session.Exists(ctx, m.child(name))
		if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			return nil, err
		}
		all = append(all, framework.ReadResult{Stat: stat, Err: err})
	}
	return all, nil
}

// open creates the node ready in a transaction that fails if one of the members has gone. So the
// barrier opens only while n members are there. old is a node ready whose members have all crashed,
// or nil: it is replaced, because it lets nothing in. The new node has another version, so that
// another member that has read the same does not replace the new one.
func (m *member) open(ctx context.Context, old *zk.Stat, others []string) error {
	ops := []framework.Op{framework.CheckOp(m.own(), -1)}
	for _, name := range others {
		ops = append(ops, framework.CheckOp(m.child(name), -1))
	}
	if old != nil {
		ops = append(ops, framework.DeleteOp(m.ready(), old.Version))
	}
	ops = append(ops, framework.CreateOp(m.ready(), m.data))
	if old != nil && old.Version == 0 {
		ops = append(ops, framework.SetOp(m.ready(), m.data, 0))
	}
	_, err := m.session.Multi(ctx, ops...)
	return err
}
