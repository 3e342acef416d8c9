package persistent

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
)

// owner knows which nodes on the servers belong to a Node, and which may still be created. Only the
// Node's goroutine uses it.
type owner struct {
	kind    config
	name    string             // the path of the node; "": sequential and not created
	session *framework.Session // in which a create was sent last; nil: none
	former  []int64            // ids of the sessions in which creates were sent, the last first
	czxid   int64              // of the node, if it is not ephemeral; 0: not known
	lost    []lostCreate
}

// lostCreate is a create at a fixed path whose answer was lost. The servers may still apply it.
type lostCreate struct {
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
	if !o.madeIn(session) {
		o.former = slices.Insert(o.former, 0, session.ID())
		o.former = o.former[:min(len(o.former), maxFormer)]
	}
	o.session = session
}

// created notes the node that a create has made.
func (o *owner) created(made framework.Result) { o.name, o.czxid = made.Path, made.Czxid }

// lostAnswer notes that the answer to a create was lost. The client itself looks for sequential
// nodes, which are protected.
func (o *owner) lostAnswer(session *framework.Session, data []byte) {
	if !o.kind.sequential {
		o.lost = append(o.lost, lostCreate{data, session, time.Now()})
	}
}

// adopt notes that a node that is not ephemeral is the Node's.
func (o *owner) adopt(node *found) { o.czxid = node.stat.Czxid }

// madeIn reports whether the last create was sent in session.
func (o *owner) madeIn(session *framework.Session) bool {
	return o.session != nil && o.session.ID() == session.ID()
}

// owns reports whether a node belongs to the Node: whether it belongs to the client's session or,
// if it is not ephemeral, whether the Node has created it. After a lost answer that is a node which
// still has the data of the create.
func (o *owner) owns(node *found, session *framework.Session) bool {
	switch {
	case o.kind.sequential:
		return true
	case o.kind.ephemeral():
		return node.stat.EphemeralOwner == session.ID()
	case isEphemeral(node.stat.EphemeralOwner):
		return false
	case node.stat.Czxid == o.czxid:
		return true
	}
	i := slices.IndexFunc(o.lost, func(l lostCreate) bool {
		return node.stat.Version == 0 && bytes.Equal(l.data, node.data)
	})
	if i < 0 {
		return false
	}
	o.lost = slices.Delete(o.lost, i, i+1) // it is not applied twice
	o.adopt(node)
	return true
}

// isEphemeral reports whether the owner in the Stat of a node is a session. Containers and nodes
// with a time to live have other values there.
func isEphemeral(owner int64) bool {
	const ttlMark = 0xff // the first byte
	return owner != 0 && owner != math.MinInt64 && uint64(owner)>>56 != ttlMark
}

// ofFormerSession reports whether a node belongs to a session that the Node has used.
func (o *owner) ofFormerSession(node *found) bool {
	return slices.Contains(o.former, node.stat.EphemeralOwner)
}

// forgetLost forgets the creates that the servers do not apply any more.
func (o *owner) forgetLost() {
	o.lost = slices.DeleteFunc(o.lost, func(l lostCreate) bool {
		return time.Since(l.since) >= lateTimeout || o.kind.ephemeral() && l.session.Err() != nil
	})
}

// lateFor returns for how long the servers may still apply a create. It is 0 if there is none.
func (o *owner) lateFor() time.Duration {
	if len(o.lost) == 0 {
		return 0
	}
	return time.Until(o.lost[len(o.lost)-1].since.Add(lateTimeout))
}

// inherit makes the nodes of the last Node of the place this one's.
func (o *owner) inherit(before owner) {
	o.session, o.former, o.lost = before.session, before.former, before.lost
	if o.kind.ephemeral() == before.kind.ephemeral() {
		o.czxid = before.czxid
	}
}
