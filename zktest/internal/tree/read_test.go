package tree

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

func TestPermissions(t *testing.T) {
	f := newForest(t, Rules{ExistsNeedsRead: true})
	own := creation("/own", 0)
	own.ACL = []proto.ACL{{Perms: proto.PermAll, Scheme: "auth"}}
	require.Equal(t, proto.InvalidACL, f.do(own, anyone).Code, "the client has not authenticated")
	require.Equal(t, proto.OK, f.do(own, user).Code)

	_, _, code := f.tree.Data("/own", anyone.IDs)
	require.Equal(t, proto.NoAuth, code)
	_, code = f.tree.Exists("/own", anyone.IDs)
	require.Equal(t, proto.NoAuth, code)
	_, _, code = f.tree.Children("/own", anyone.IDs)
	require.Equal(t, proto.NoAuth, code)
	_, _, code = f.tree.ACL("/own", anyone.IDs)
	require.Equal(t, proto.NoAuth, code)
	requests := []proto.Request{
		set("/own", -1), creation("/own/x", 0), {Op: fault.OpSetACL, Path: "/own", ACL: openACL, Version: -1},
	}
	for _, req := range requests {
		require.Equal(t, proto.NoAuth, f.do(req, anyone).Code, req.Op)
		require.Equal(t, proto.OK, f.do(req, Caller{IDs: []proto.ID{{Scheme: SuperScheme}}}).Code, req.Op)
	}
	_, _, code = f.tree.Data("/own", anyone.IDs)
	require.Equal(t, proto.OK, code, "the last of them opened it")
}

func TestDeleteNeedsAPermissionOnTheParent(t *testing.T) {
	f := newForest(t, Rules{})
	parent := creation("/p", 0)
	parent.ACL = []proto.ACL{{Perms: proto.PermCreate, Scheme: "world", ID: "anyone"}}
	require.Equal(t, proto.OK, f.do(parent, anyone).Code)
	f.make("/p/x", "")
	require.Equal(t, proto.NoAuth, f.do(removal("/p/x", -1), anyone).Code)
}

func TestExistsNeedsNoPermissionOnOldServers(t *testing.T) {
	f := newForest(t, Rules{})
	own := creation("/own", 0)
	own.ACL = []proto.ACL{{Perms: proto.PermAll, Scheme: "auth"}}
	require.Equal(t, proto.OK, f.do(own, user).Code)
	_, code := f.tree.Exists("/own", anyone.IDs)
	require.Equal(t, proto.OK, code)
}

func TestHashesOfPasswordsAreForAdmins(t *testing.T) {
	f := newForest(t, Rules{})
	id := Digest("user:secret")
	node := creation("/a", 0)
	node.ACL = []proto.ACL{
		{Perms: proto.PermAll, Scheme: "digest", ID: id}, {Perms: proto.PermRead, Scheme: "world", ID: "anyone"},
	}
	require.Equal(t, proto.OK, f.do(node, user).Code)
	acl, _, _ := f.tree.ACL("/a", user.IDs)
	require.Equal(t, id, acl[0].ID)
	acl, _, _ = f.tree.ACL("/a", anyone.IDs)
	require.Equal(t, "user:x", acl[0].ID)
	acl, _, _ = f.tree.ACL("/a", user.IDs)
	require.Equal(t, id, acl[0].ID, "the masked ACL is a copy")
}

func TestDigestIsThatOfTheRealServer(t *testing.T) {
	require.Equal(t, "super:lK75jTNcA+U9vtVEw5vB51mj/w4=", Digest("super:secret"))
}

func TestAddressesInAnACL(t *testing.T) {
	tests := []struct {
		acl, address string
		want         bool
	}{
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.0/8", "10.9.9.9", true},
		{"10.0.0.0/8", "11.0.0.1", false},
		{"0.0.0.0/0", "1.2.3.4", true},
		{"::1", "::1", true},
		{"nonsense", "10.0.0.1", false},
	}
	for _, test := range tests {
		acl := []proto.ACL{{Perms: proto.PermRead, Scheme: "ip", ID: test.acl}}
		ids := []proto.ID{{Scheme: "ip", ID: test.address}}
		require.Equal(t, test.want, Allowed(acl, proto.PermRead, ids), "%+v", test)
		require.False(t, Allowed(acl, proto.PermWrite, ids))
	}
}

func TestPaths(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/b", "/a.b", "/..a", "/ä", "/a b"} {
		require.True(t, Valid(path), "%q", path)
	}
	invalid := []string{
		"", "a", "/a/", "//", "/a//b", "/.", "/a/../b", "/a\x00", "/a\x1f", "/a\x7f",
		"/a\ue000", "/a\ufff0", "/a\U0001f600", "/a\xff",
	}
	for _, path := range invalid {
		require.False(t, Valid(path), "%q", path)
	}
	require.Equal(t, "/a", Parent("/a/b"))
	require.Empty(t, Parent("/a"))
	require.Empty(t, Parent("/"))
}

func TestChildrenAreAllThereInAnyOrder(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/p", "")
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("c%02d", i)
		f.make("/p/"+name, "")
		if i%3 == 0 {
			require.Equal(t, proto.OK, f.do(removal("/p/"+name, -1), anyone).Code)
			continue
		}
		want = append(want, name)
	}
	names, stat, code := f.tree.Children("/p", nil)
	require.Equal(t, proto.OK, code)
	require.Equal(t, int32(len(want)), stat.NumChildren)
	require.ElementsMatch(t, want, names)
	require.False(t, slices.IsSorted(names), "clients must not rely on an order")
	names[0] = "changed"
	again, _, _ := f.tree.Children("/p", nil)
	require.ElementsMatch(t, want, again)
}

func TestCountBelow(t *testing.T) {
	f := newForest(t, Rules{})
	for _, path := range []string{"/a", "/a/b", "/a/b/c", "/ab"} {
		f.make(path, "xy")
	}
	for path, want := range map[string]int{"/a": 2, "/a/b": 1, "/ab": 0, "/": 7} {
		count, code := f.tree.CountBelow(path, nil)
		require.Equal(t, proto.OK, code)
		require.Equal(t, want, count, path)
	}
	_, code := f.tree.CountBelow("/no", nil)
	require.Equal(t, proto.NoNode, code)
	nodes, ephemerals, bytes := f.tree.Size()
	require.Equal(t, 8, nodes)
	require.Zero(t, ephemerals)
	empty, _, before := New(Rules{}).Size()
	require.Equal(t, 4, empty)
	require.Equal(t, int64(len("/a/a/b/a/b/c/ab")+4*2), bytes-before)
}

func TestClonesAreIndependent(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/a", "old")
	require.Equal(t, proto.OK, f.do(creation("/e", proto.FlagEphemeral), anyone).Code)
	clone := f.tree.Clone()
	f.make("/a/b", "")
	require.Equal(t, proto.OK, f.do(set("/a", -1), anyone).Code)
	f.tree.EndSession(anyone.Session, Stamp{9, 9})
	data, stat, _ := clone.Data("/a", nil)
	require.Equal(t, "old", string(data))
	require.Zero(t, stat.NumChildren)
	require.Equal(t, []string{"/e"}, clone.Ephemerals(anyone.Session))
	require.NotNil(t, clone.Watched("/e"))
}
