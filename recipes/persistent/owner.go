package persistent

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
)

// owner knows which nodes on the servers belong to a Node, and which may still be created. They
// include what the last Nodes of the path have left, which may be of another kind. Only the Node's
// goroutine uses it.
type owner struct {
	kind    config
	name    string             // the path of the node; "": sequential and not created
	session *framework.Session // in which a create was sent last; nil: none
	former  []int64            // ids of the sessions with ephemeral nodes, the last first
	czxid   int64              // of the node that was created last; 0: not known, or deleted
	made    config             // the kind of that node
	lost    []lostCreate
}

// lostCreate is a create at a fixed path whose answer was lost. The servers may still apply it.
type lostCreate struct {
	kind    config
	data    []byte
	session *framework.Session
	since   time.Time
}

// lateTimeout is for how long the servers may apply a request whose answer was lost. The ZooKeeper
// leader drops a follower that is silent for some ticks, with the requests that the follower has
// not passed on.
const lateTimeout = 5 * time.Minute

// maxFormer is the number of sessions that are remembered. The nodes of older ones are deleted.
const maxFormer = 16

// creating notes that a create is sent in session.
func (o *owner) creating(session *framework.Session) {
	if o.kind.ephemeral() && !slices.Contains(o.former, session.ID()) {
		o.former = slices.Insert(o.former, 0, session.ID())
		o.former = o.former[:min(len(o.former), maxFormer)]
	}
	o.session = session
}

// created notes the node that a create has made.
func (o *owner) created(made framework.Result) {
	o.name = made.Path
	o.adopt(made.Czxid, o.kind)
}

// lostAnswer notes that the answer to a create was lost. The client itself looks for sequential
// nodes, which are protected.
func (o *owner) lostAnswer(session *framework.Session, data []byte) {
	if !o.kind.sequential {
		o.lost = append(o.lost, lostCreate{o.kind, data, session, time.Now()})
	}
}

// adopt notes that the node with this czxid is the Node's, and its kind.
func (o *owner) adopt(czxid int64, kind config) { o.czxid, o.made = czxid, kind }

// deleted notes that the node was deleted.
func (o *owner) deleted() { o.czxid = 0 }

// madeIn reports whether the last create was sent in session.
func (o *owner) madeIn(session *framework.Session) bool {
	return o.session != nil && o.session.ID() == session.ID()
}

// owns reports whether a node belongs to the Node: whether it is the one that was created, or that
// of a lost answer, or an ephemeral node of the client's session. A node of a lost session does not.
func (o *owner) owns(node *found, session *framework.Session) bool {
	of := node.stat.EphemeralOwner
	switch {
	case o.kind.sequential:
		return true
	case isEphemeral(of) && of != session.ID():
		return false
	case node.stat.Czxid == o.czxid || o.explains(node):
		return true
	}
	return isEphemeral(of) && (o.kind.ephemeral() || o.ofFormerSession(node))
}

// explains reports whether a lost create has made the node, which then has the data of the create.
// It is that create's no more than once.
func (o *owner) explains(node *found) bool {
	i := slices.IndexFunc(o.lost, func(l lostCreate) bool {
		return node.stat.Version == 0 && bytes.Equal(l.data, node.data) &&
			l.kind.ephemeral() == isEphemeral(node.stat.EphemeralOwner)
	})
	if i < 0 {
		return false
	}
	o.adopt(node.stat.Czxid, o.lost[i].kind)
	o.lost = slices.Delete(o.lost, i, i+1) // it is not applied twice
	return true
}

// fits reports whether a node that belongs to the Node is of its kind. A node that the last Node of
// the path has left may not be.
func (o *owner) fits(node *found) bool {
	switch {
	case o.kind.sequential:
		return true
	case node.stat.Czxid == o.czxid:
		return o.kind.like(o.made)
	}
	return o.kind.ephemeral() // as the node is: see owns
}

// survives reports whether a node that is not deleted with a session may be there.
func (o *owner) survives() bool {
	return o.czxid != 0 && !o.made.ephemeral() ||
		slices.ContainsFunc(o.lost, func(l lostCreate) bool { return !l.kind.ephemeral() })
}

// isEphemeral reports whether the owner in the Stat of a node is a session. Containers and nodes
// with a time to live have other values there.
func isEphemeral(owner int64) bool {
	const ttlMark = 0xff // the first byte
	return owner != 0 && owner != math.MinInt64 && uint64(owner)>>56 != ttlMark
}

// ofFormerSession reports whether a node belongs to a session in which an ephemeral node of the
// path was created.
func (o *owner) ofFormerSession(node *found) bool {
	return slices.Contains(o.former, node.stat.EphemeralOwner)
}

// forgetLost forgets the creates that have made no node which is there. looked is when the last
// read began: the servers have applied no create that was too old by then.
func (o *owner) forgetLost(looked time.Time) {
	o.lost = slices.DeleteFunc(o.lost, func(l lostCreate) bool {
		return looked.Sub(l.since) >= lateTimeout || l.kind.ephemeral() && l.session.Err() != nil
	})
}

// lateFor returns for how long the servers may still apply the first lost create, or NoLimit if
// there is none.
func (o *owner) lateFor() time.Duration {
	if len(o.lost) == 0 {
		return NoLimit
	}
	return time.Until(o.lost[0].since.Add(lateTimeout))
}

// inherit makes the nodes of the last Node of the place this one's.
func (o *owner) inherit(before owner) {
	o.session, o.former, o.lost = before.session, before.former, before.lost
	o.adopt(before.czxid, before.made)
}
