package zktest

import "github.com/docent-zk/docent/zktest/internal/tree"

// Change is what a transaction has done to one node.
type Change struct {
	Kind ChangeKind
	Path string
	Data []byte // of the node after the transaction; nil if it is not there
}

// ChangeKind is the kind of a [Change].
type ChangeKind int

// The kinds of changes.
const (
	NodeCreated ChangeKind = iota + 1
	NodeDeleted
	NodeDataChanged
)

var changeKinds = map[tree.Kind]ChangeKind{tree.Created: NodeCreated, tree.Deleted: NodeDeleted, tree.Changed: NodeDataChanged}

// OnCommit has fn called with each later transaction, in their order, before any client is told of
// it. A checker that models what clients do learns from it which nodes there are as of each
// transaction. fn is called with the server's lock held: it must not call the server, nor wait for
// anything. Nil ends the calls.
func (s *Server) OnCommit(fn func(zxid int64, changes []Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCommit = fn
}

// report tells of a transaction that the leader's tree has applied. It needs s.mu.
func (s *Server) report(t transaction) {
	if s.onCommit == nil {
		return
	}
	var changes []Change
	for _, e := range t.effects {
		kind, ok := changeKinds[e.Kind]
		if !ok {
			continue
		}
		c := Change{Kind: kind, Path: e.Path}
		if n, ok := s.leader.tree.Look(e.Path); ok {
			c.Data = n.Data
		}
		changes = append(changes, c)
	}
	s.onCommit(t.Zxid, changes)
}
