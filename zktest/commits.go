package zktest

import "github.com/docent-zk/docent/zktest/internal/tree"

// Change describes what a transaction has done to one node.
type Change struct {
	Kind ChangeKind
	Path string
	Data []byte // of the node after the transaction; nil if the node does not exist then
}

// ChangeKind is the kind of a [Change].
type ChangeKind int

// The kinds of changes.
const (
	NodeCreated ChangeKind = iota + 1
	NodeDeleted
	NodeDataChanged
)

var changeKinds = map[tree.Kind]ChangeKind{
	tree.Created: NodeCreated, tree.Deleted: NodeDeleted, tree.Changed: NodeDataChanged,
}

// OnCommit makes the server call fn with each later transaction, in order, before it notifies any
// client. A checker that models clients can learn from it which nodes exist after each transaction.
// fn is called with the server's lock held: it must not call the server or wait for anything. A nil
// fn ends the calls.
func (s *Server) OnCommit(fn func(zxid int64, changes []Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCommit = fn
}

// report calls onCommit with a transaction that is in s.tree. The caller holds s.mu.
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
		if n, ok := s.tree.Look(e.Path); ok {
			c.Data = n.Data
		}
		changes = append(changes, c)
	}
	s.onCommit(t.Zxid, changes)
}
