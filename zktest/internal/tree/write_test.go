package tree

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

func TestStatCountsWhatHappened(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/a", "old")
	want := &proto.Stat{Czxid: 1, Mzxid: 1, Pzxid: 1, Ctime: 1, Mtime: 1, DataLength: 3}
	require.Equal(t, want, f.tree.Watched("/a"))
	f.make("/a/b", "")
	f.make("/a/c", "")
	require.Equal(t, proto.OK, f.do(removal("/a/b", -1), anyone).Code)
	require.Equal(t, proto.OK, f.do(set("/a", 0), anyone).Code)
	acl := proto.Request{Op: fault.OpSetACL, Path: "/a", ACL: openACL, Version: 0}
	out := f.do(acl, anyone)
	require.Equal(t, &proto.Stat{
		Czxid: 1, Mzxid: 5, Pzxid: 4, Ctime: 1, Mtime: 5, Version: 1, Cversion: 3, Aversion: 1,
		DataLength: 3, NumChildren: 1,
	}, out.Stat)
}

func TestVersionsGuardWrites(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/a", "")
	requests := []proto.Request{
		set("/a", 5), removal("/a", 5), {Op: fault.OpCheck, Path: "/a", Version: 5},
		{Op: fault.OpSetACL, Path: "/a", ACL: openACL, Version: 5},
	}
	for _, req := range requests {
		require.Equal(t, proto.BadVersion, f.do(req, anyone).Code, req.Op)
		req.Version = -1
		if req.Op != fault.OpDelete {
			require.Equal(t, proto.OK, f.do(req, anyone).Code, req.Op)
		}
	}
	require.Equal(t, proto.OK, f.do(removal("/a", 1), anyone).Code, "after one set")
}

func TestSequenceNumbersCountAllChildrenEverCreated(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/q", "")
	f.make("/q/other", "")
	require.Equal(t, "/q/n-0000000001", f.do(creation("/q/n-", proto.FlagSequential), anyone).Path)
	require.Equal(t, proto.OK, f.do(removal("/q/n-0000000001", -1), anyone).Code)
	require.Equal(t, "/q/m-0000000002", f.do(creation("/q/m-", proto.FlagEphemeralSequential), anyone).Path)
	require.Equal(t, "/q/0000000003", f.do(creation("/q/", proto.FlagSequential), anyone).Path)
}

func TestLargestSequenceNumberSticks(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/q", "")
	for _, tree := range []*Tree{f.tree, f.copy} {
		require.NoError(t, tree.SetSequence("/q", math.MaxInt32))
	}
	require.Equal(t, "/q/n2147483647", f.do(creation("/q/n", proto.FlagSequential), anyone).Path)
	require.Equal(t, proto.NodeExists, f.do(creation("/q/n", proto.FlagSequential), anyone).Code)
}

func TestEphemeralNodesHaveNoChildrenAndEndWithTheirSession(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/p", "")
	for _, path := range []string{"/p/2", "/p/1"} {
		out := f.do(creation(path, proto.FlagEphemeral), anyone)
		require.Equal(t, anyone.Session, out.Stat.EphemeralOwner)
	}
	require.Equal(t, proto.OK, f.do(creation("/p/3", proto.FlagEphemeral), user).Code)
	require.Equal(t, proto.NoChildrenForEphem, f.do(creation("/p/1/x", 0), anyone).Code)
	require.Equal(t, []string{"/p/1", "/p/2"}, f.tree.Ephemerals(anyone.Session))
	require.Equal(t, []int64{7, 8}, f.tree.Sessions())

	f.zxid++
	effects := f.tree.EndSession(anyone.Session, Stamp{f.zxid, f.zxid})
	f.copy.Apply(effects, Stamp{f.zxid, f.zxid})
	f.compare()
	require.Empty(t, f.tree.Ephemerals(anyone.Session))
	names, stat, _ := f.tree.Children("/p", nil)
	require.Equal(t, []string{"3"}, names)
	require.Equal(t, f.zxid, stat.Pzxid)
}

func TestRefusedWrites(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/a", "")
	f.make("/a/b", "")
	tests := []struct {
		req  proto.Request
		want proto.Code
	}{
		{creation("/a", 0), proto.NodeExists},
		{creation("/no/child", 0), proto.NoNode},
		{creation("/a/", 0), proto.BadArguments},
		{creation("/a//c", 0), proto.NoNode}, // the parent is looked for first
		{creation("/a/.", 0), proto.BadArguments},
		{creation("/c\x00", 0), proto.BadArguments},
		{creation("c", 0), proto.BadArguments},
		{creation("/c", 99), proto.BadArguments},
		{proto.Request{Op: fault.OpCreate, Path: "/c"}, proto.InvalidACL},
		{removal("/a", -1), proto.NotEmpty},
		{removal("/no", -1), proto.NoNode},
		{removal("/", -1), proto.BadArguments},
		{removal("/zookeeper/quota", -1), proto.BadArguments},
		{set("/no", -1), proto.NoNode},
		{set("", -1), proto.BadArguments},
		{proto.Request{
			Op: fault.OpSetACL, Path: "/a", ACL: []proto.ACL{{Perms: 1, Scheme: "nosuch", ID: "x"}}, Version: -1,
		}, proto.InvalidACL},
		{proto.Request{Op: fault.OpPing}, proto.Unimplemented},
	}
	before := f.tree.Paths()
	for _, test := range tests {
		out := f.do(test.req, anyone)
		require.Equal(t, test.want, out.Code, "%v %q", test.req.Op, test.req.Path)
		require.Empty(t, out.Effects)
		require.Equal(t, before, f.tree.Paths())
	}
}

func multi(parts ...proto.Request) proto.Request {
	return proto.Request{Op: fault.OpMulti, Parts: parts}
}

func TestFailedMultiLeavesTheACLsByWhichWritesAreAllowed(t *testing.T) {
	for _, part := range []proto.Request{set("/a", -1), creation("/a/c", 0), removal("/a/b", -1)} {
		f := newForest(t, Rules{})
		f.make("/a", "")
		f.make("/a/b", "")
		closing := proto.Request{
			Op: fault.OpSetACL, Path: "/a", Version: -1,
			ACL: []proto.ACL{{Perms: proto.PermRead, Scheme: "world", ID: "anyone"}},
		}
		require.Equal(t, proto.OK, f.do(closing, anyone).Code)
		closed := f.zxid
		require.Equal(t, proto.NoNode, f.behind(closed-1, multi(part, set("/no", -1)), anyone).Parts[1].Code)
		require.Equal(t, proto.NoAuth, f.behind(closed, set("/a", -1), anyone).Code)
	}
}

func TestPartsOfAMultiSeeThoseBefore(t *testing.T) {
	f := newForest(t, Rules{})
	out := f.do(multi(creation("/a", 0), creation("/a/b", 0), set("/a/b", 0),
		proto.Request{Op: fault.OpCheck, Path: "/a/b", Version: 1},
		removal("/a/b", 1)), anyone)
	require.Equal(t, proto.OK, out.Code)
	require.Len(t, out.Parts, 5)
	require.Len(t, out.Effects, 4, "a check changes nothing")
	require.Equal(t, int64(1), f.tree.Watched("/a").Pzxid, "one transaction")
	require.Equal(t, int32(2), f.tree.Watched("/a").Cversion)
}

func TestFailedMultiChangesNothing(t *testing.T) {
	f := newForest(t, Rules{})
	f.make("/a", "old")
	f.make("/a/gone", "")
	before := f.tree.Clone()
	out := f.do(multi(set("/a", -1), creation("/a/n", proto.FlagSequential), creation("/a/e", proto.FlagEphemeral),
		removal("/a/gone", -1), removal("/a/none", -1), set("/a", -1)), anyone)
	var codes []proto.Code
	for _, part := range out.Parts {
		require.Equal(t, fault.Op(-1), part.Op)
		codes = append(codes, part.Code)
	}
	require.Equal(t, []proto.Code{0, 0, 0, 0, proto.NoNode, proto.RuntimeInconsist}, codes)
	require.Empty(t, out.Effects)
	require.Equal(t, before.Paths(), f.tree.Paths())
	require.Equal(t, before.Watched("/a"), f.tree.Watched("/a"))
	require.Empty(t, f.tree.Ephemerals(anyone.Session))
	next := f.do(creation("/a/n", proto.FlagSequential), anyone)
	require.Equal(t, "/a/n0000000001", next.Path, "the number was not used")
}

func TestOverdueNodes(t *testing.T) {
	f := newForest(t, Rules{})
	timed := creation("/ttl", proto.FlagTTL)
	timed.Op, timed.TTL = fault.OpCreateTTL, 100
	require.Equal(t, proto.OK, f.do(timed, anyone).Code) // at 1
	box := creation("/box", proto.FlagContainer)
	box.Op = fault.OpCreateContainer
	require.Equal(t, proto.OK, f.do(box, anyone).Code) // at 2
	require.Empty(t, f.tree.Overdue(101, 0))
	require.Equal(t, []string{"/ttl"}, f.tree.Overdue(102, 0), "past its TTL")
	require.Equal(t, []string{"/box", "/ttl"}, f.tree.Overdue(103, 100), "never used")
	f.make("/box/x", "")
	f.make("/ttl/x", "")
	require.Empty(t, f.tree.Overdue(math.MaxInt32, 100), "while they have children")
	require.Equal(t, proto.OK, f.do(removal("/box/x", -1), anyone).Code)
	require.Equal(t, []string{"/box"}, f.tree.Overdue(6, 0))
	require.Equal(t, proto.NotEmpty, f.do(proto.Request{Op: fault.OpDeleteContainer, Path: "/ttl"}, Caller{}).Code)
	require.Equal(t, proto.OK, f.do(proto.Request{Op: fault.OpDeleteContainer, Path: "/box"}, Caller{}).Code)
	require.Empty(t, f.tree.Overdue(6, 0))
}

func TestInvalidTimesToLive(t *testing.T) {
	timed := creation("/ttl", proto.FlagTTL)
	timed.Op = fault.OpCreateTTL
	for _, ttl := range []int64{-1, 0, maxTTL + 1} {
		timed.TTL = ttl
		require.Equal(t, proto.BadArguments, newForest(t, Rules{}).do(timed, anyone).Code, ttl)
	}
	timed.TTL = maxTTL
	require.Equal(t, proto.OK, newForest(t, Rules{}).do(timed, anyone).Code)
	require.Equal(t, proto.Unimplemented, newForest(t, Rules{NoTTL: true}).do(timed, anyone).Code)
}
