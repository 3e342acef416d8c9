package tree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// forest is a tree with a copy that gets the effects of all changes.
type forest struct {
	t    *testing.T
	tree *Tree
	copy *Tree
	zxid int64
}

func newForest(t *testing.T, rules Rules) *forest {
	return &forest{t: t, tree: New(rules), copy: New(rules)}
}

// do executes a request in a transaction of its own, a millisecond after the last one, and compares
// the copy with the tree.
func (f *forest) do(req proto.Request, caller Caller) Outcome {
	f.t.Helper()
	return f.behind(f.zxid, req, caller)
}

// behind is do for a leader that has applied the transactions up to applied.
func (f *forest) behind(applied int64, req proto.Request, caller Caller) Outcome {
	f.t.Helper()
	f.zxid++
	at := Stamp{Zxid: f.zxid, Time: f.zxid}
	f.tree.SetApplied(applied)
	out := f.tree.Execute(&req, caller, at)
	f.copy.Apply(out.Effects, at)
	f.compare()
	return out
}

func (f *forest) compare() {
	f.t.Helper()
	require.Equal(f.t, f.tree.Paths(), f.copy.Paths())
	for _, path := range f.tree.Paths() {
		require.Equal(f.t, f.tree.Watched(path), f.copy.Watched(path), path)
		want, _ := f.tree.Look(path)
		got, _ := f.copy.Look(path)
		require.Equal(f.t, want, got)
	}
}

// anyone calls with session 7 and only the permissions of every client.
var anyone = Caller{Session: 7, IDs: []proto.ID{{Scheme: "ip", ID: "10.0.0.1"}}}

var user = Caller{Session: 8, IDs: []proto.ID{{Scheme: "digest", ID: Digest("user:secret")}}}

func creation(path string, flags int32) proto.Request {
	return proto.Request{Op: fault.OpCreate, Path: path, Flags: flags, ACL: openACL}
}

// make creates an open persistent node with data.
func (f *forest) make(path, data string) {
	f.t.Helper()
	req := creation(path, proto.FlagPersistent)
	req.Data = []byte(data)
	require.Equal(f.t, proto.OK, f.do(req, anyone).Code, path)
}

func set(path string, version int32) proto.Request {
	return proto.Request{Op: fault.OpSetData, Path: path, Data: []byte("new"), Version: version}
}

func removal(path string, version int32) proto.Request {
	return proto.Request{Op: fault.OpDelete, Path: path, Version: version}
}
