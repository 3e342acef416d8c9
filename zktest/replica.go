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

// replica is one server of the ensemble: what its clients see, and its part in the ensemble. It is guarded by the server's mutex.
type replica struct {
	srv     *Server
	number  int // of the server in its ensemble, the first is 1
	tree    *tree.Tree
	watches *watch.Manager[*conn]
	applied int64 // the last transaction that the tree has

	role    role
	link    *link      // to the leader; of the leader, to itself; nil while there is none
	process *gate.Gate // closed while the server's process is frozen
	holds   bool       // requests to the leader wait
	bounds  *bounds    // of session timeouts, if not those of all servers

	lag     time.Duration // of a follower
	held    bool          // a follower gets nothing at all
	pending []transaction
	waiting []waiting // in the order of their transactions
}

// waiting is what is to be done as soon as a transaction is applied, before the next one is.
type waiting struct {
	zxid int64
	do   func()
}

// when needs the server's mutex, and do is called with it. A transaction that a stopped server has not applied is waited for in vain.
func (r *replica) when(zxid int64, do func()) {
	i, _ := slices.BinarySearchFunc(r.waiting, zxid+1, func(w waiting, z int64) int { return cmp.Compare(w.zxid, z) })
	r.waiting = slices.Insert(r.waiting, i, waiting{zxid, do})
}

// answer does what has waited for what is applied.
func (r *replica) answer() {
	for len(r.waiting) > 0 && r.waiting[0].zxid <= r.applied {
		do := r.waiting[0].do
		r.waiting = r.waiting[1:]
		do()
	}
}

// transaction is what the leader sends to its followers.
type transaction struct {
	tree.Stamp
	effects []tree.Effect
	ended   *session // by it, or nil
}

func newReplica(s *Server, number int, t *tree.Tree) *replica {
	return &replica{
		srv: s, number: number, tree: t, watches: watch.NewManager[*conn](s.cfg.compat == V38), process: gate.New(),
	}
}

func (s *Server) newTree() *tree.Tree { return tree.New(s.cfg.rules()) }

// reset gives a follower the leader's state.
func (r *replica) reset(t *tree.Tree) {
	r.tree, r.applied, r.pending, r.waiting = t, 0, nil, nil
}

// stamp is the next transaction's.
func (s *Server) stamp() tree.Stamp {
	s.zxid++
	return tree.Stamp{Zxid: s.zxid, Time: s.clock.now().UnixMilli()}
}

// commit makes a transaction known that the leader's tree has already.
func (s *Server) commit(t transaction) {
	s.report(t)
	s.leader.tell(t)
	if t.ended != nil {
		s.leader.closeConnOf(t.ended)
	}
	for _, r := range s.replicas {
		if r != s.leader {
			r.receive(t)
		}
	}
	s.reapLater()
}

// receive gives a follower a transaction, for when its lag has passed.
func (r *replica) receive(t transaction) {
	r.pending = append(r.pending, t)
	if r.lag == 0 {
		r.catchUp()
		return
	}
	r.srv.clock.at(r.srv.clock.now().Add(r.lag), func() { r.applyUntil(t.Zxid) })
}

func (r *replica) catchUp() { r.applyUntil(r.srv.zxid) }

// applyUntil makes the changes of all transactions up to zxid, unless something keeps the follower from learning of them.
func (r *replica) applyUntil(zxid int64) {
	if r.held || r.role != follows || !r.srv.passes(r.srv.leader.number, r.number) {
		return
	}
	r.apply(zxid)
}

func (r *replica) apply(zxid int64) {
	for len(r.pending) > 0 && r.pending[0].Zxid <= zxid {
		t := r.pending[0]
		r.pending = r.pending[1:]
		r.tree.Apply(t.effects, t.Stamp)
		r.tell(t)
		r.answer()
		if t.ended != nil {
			r.closeConnOf(t.ended)
		}
	}
}

// closeConnOf ends the replica's connection of a session that has ended. The one that has asked for that is still to be answered.
func (r *replica) closeConnOf(sess *session) {
	if c := sess.at[r]; c != nil && c != sess.closer {
		c.end(flushAll)
	}
}

// tell sends the events of a transaction to those who watch.
func (r *replica) tell(t transaction) {
	r.applied = t.Zxid
	for _, e := range t.effects {
		r.tellOf(e, t.Zxid)
	}
}

func (r *replica) tellOf(e tree.Effect, zxid int64) {
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

// send tells those who may read the node.
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
