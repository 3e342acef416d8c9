package zktest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/docent-zk/docent/zktest/internal/gate"
	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/tree"
	"github.com/docent-zk/docent/zktest/internal/watch"
)

// replica is one server of the ensemble: the state that its clients see, and its role. The server's
// mutex guards it.
type replica struct {
	srv     *Server
	number  int        // in the ensemble; the first server is 1
	tree    *tree.Tree // the server's own, or that of the leader's transactions if it has applied all
	watches *watch.Manager[*conn]
	applied int64 // the last transaction in the tree

	role    role
	link    *link      // to the leader; a leader has one to itself; nil without a leader
	process *gate.Gate // closed while the server's process is frozen
	holds   bool       // requests to the leader wait
	bounds  *bounds    // of session timeouts; nil for those of all servers

	lag     time.Duration
	held    bool // the server applies no transactions
	pending []transaction
	waiting []waiting // by transaction
}

// waiting is a call to make when a transaction has been applied, before the next one is.
type waiting struct {
	zxid int64
	do   func()
}

// when calls do when the transaction zxid has been applied. The caller holds the server's mutex, as
// does the caller of do. It never calls do if the server is stopped before the transaction is
// applied.
func (r *replica) when(zxid int64, do func()) {
	i, _ := slices.BinarySearchFunc(r.waiting, zxid+1, func(w waiting, z int64) int {
		return cmp.Compare(w.zxid, z)
	})
	r.waiting = slices.Insert(r.waiting, i, waiting{zxid, do})
}

// answer makes the calls that waited for transactions that are applied now.
func (r *replica) answer() {
	for len(r.waiting) > 0 && r.waiting[0].zxid <= r.applied {
		do := r.waiting[0].do
		r.waiting = r.waiting[1:]
		do()
	}
}

// transaction is a change that the leader sends to its followers.
type transaction struct {
	tree.Stamp
	effects []tree.Effect
	ended   *session // by the transaction, or nil
}

func newReplica(s *Server, number int, t *tree.Tree) *replica {
	return &replica{
		srv: s, number: number, tree: t, watches: watch.NewManager[*conn](s.cfg.compat == V38), process: gate.New(),
	}
}

func (s *Server) newTree() *tree.Tree { return tree.New(s.cfg.rules()) }

// reset replaces the replica's state with t.
func (r *replica) reset(t *tree.Tree) {
	r.tree, r.applied, r.pending, r.waiting = t, 0, nil, nil
}

// stamp returns the stamp of the next transaction.
func (s *Server) stamp() tree.Stamp {
	s.zxid++
	return tree.Stamp{Zxid: s.zxid, Time: s.clock.now().UnixMilli()}
}

// commit publishes a transaction that is already in s.tree.
func (s *Server) commit(t transaction) {
	s.report(t)
	s.leader.receive(t)
	for _, r := range s.replicas {
		if r != s.leader {
			r.receive(t)
		}
	}
	s.reapLater()
}

// receive gives a server a transaction, to apply after its lag.
func (r *replica) receive(t transaction) {
	if r.tree == r.srv.tree {
		r.show(t)
		return
	}
	r.pending = append(r.pending, t)
	if r.lag == 0 {
		r.catchUp()
		return
	}
	r.srv.clock.at(r.srv.clock.now().Add(r.lag), func() { r.applyUntil(t.Zxid) })
}

func (r *replica) catchUp() { r.applyUntil(r.srv.zxid) }

// applyUntil applies all transactions up to zxid, unless the server cannot learn of them.
func (r *replica) applyUntil(zxid int64) {
	leads := r == r.srv.leader && r.role == leading
	if r.held || !leads && r.role != following || !r.srv.passes(r.srv.leader.number, r.number) {
		return
	}
	r.apply(zxid)
}

func (r *replica) apply(zxid int64) {
	for len(r.pending) > 0 && r.pending[0].Zxid <= zxid {
		t := r.pending[0]
		r.pending = r.pending[1:]
		r.tree.Apply(t.effects, t.Stamp)
		r.show(t)
	}
}

// show lets the server's clients know of a transaction that is in its tree.
func (r *replica) show(t transaction) {
	r.publish(t)
	r.answer()
	if t.ended != nil {
		r.closeConnOf(t.ended)
	}
}

// trail gives a leader that applies transactions late a tree of its own. Other leaders need none.
func (r *replica) trail() {
	if r.tree == r.srv.tree && (r.held || r.lag > 0) {
		r.tree = r.srv.tree.Clone()
	}
}

// closeConnOf ends the replica's connection of a session that has ended. The connection that has
// asked for the end stays, because it must still be answered.
func (r *replica) closeConnOf(sess *session) {
	if c := sess.at[r]; c != nil && c != sess.closer {
		c.end(flushAll)
	}
}

// publish sends the events of a transaction to the watching connections.
func (r *replica) publish(t transaction) {
	r.applied = t.Zxid
	for _, e := range t.effects {
		r.sendEvents(e, t.Zxid)
	}
}

func (r *replica) sendEvents(e tree.Effect, zxid int64) {
	parent := tree.Parent(e.Path)
	if parent == "" {
		parent = "/"
	}
	switch e.Kind {
	case tree.Created:
		node, above := r.watches.Created(e.Path, parent)
		r.send(node, zxid, proto.EventCreated, e.Path, e.ACL)
		r.send(above, zxid, proto.EventChildrenChanged, parent, e.ParentACL)
	case tree.Deleted:
		node, above := r.watches.Deleted(e.Path, parent)
		r.send(node, zxid, proto.EventDeleted, e.Path, e.ACL)
		r.send(above, zxid, proto.EventChildrenChanged, parent, e.ParentACL)
	case tree.Changed:
		r.send(r.watches.Changed(e.Path), zxid, proto.EventDataChanged, e.Path, e.ACL)
	}
}

// send sends an event to those connections in to that may read the node.
func (r *replica) send(to map[*conn]bool, zxid int64, kind int32, path string, acl []proto.ACL) {
	if len(to) == 0 {
		return
	}
	if r.srv.cfg.compat == V38 {
		zxid = -1
	}
	all := slices.SortedFunc(maps.Keys(to), func(a, b *conn) int { return a.number - b.number })
	for _, c := range all {
		if tree.Allowed(acl, proto.PermRead, c.ids) {
			c.event(zxid, kind, path)
		}
	}
}
