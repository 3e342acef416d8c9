package differential

import (
	"fmt"

	"github.com/docent-zk/docent/internal/rawzk"
)

// oddPaths returns paths close to the limits of valid ones. Some are valid.
func oddPaths(s *script) []string {
	paths := []string{"", "/", "//", "relative", "rel/ative", "/.", "/..", "/...", "\x00", "/\x00", " ", "/ "}
	for _, name := range []string{
		"a/", "a//b", "/b", ".", "..", "...", "a.", ".a", "a/.", "a/./b", "a/../a", "a/..", "..a", "a\x00", "\x00a",
		"\x01", "\x1f", "a\tb", "a b", " ", "\x7f", "\u0080", "\u009f", "\u00a0", "\u00e9", "\u2028", "\ud7ff",
		"\ue000", "\uf8ff", "\uf900", "\uffef", "\ufff0", "\uffff", "\U0001F600", "\xed\xa0\x80",
		"\xed\xa0\xbd\xed\xb8\x80", "\xff", "a\xc3", "\xc0\x80", "\\", "%2F", "*",
	} {
		paths = append(paths, s.path(name))
	}
	return paths
}

func oddPathsWritten(s *script) {
	a := s.connect("a")
	a.do(node(s.path("a")))
	for _, p := range oddPaths(s) {
		a.each(rawzk.SetData(p, []byte("0"), 9), rawzk.Create(p, nil, rawzk.Open(), rawzk.Persistent),
			rawzk.SetData(p, []byte("1"), 0), rawzk.Create2(p, nil, rawzk.Open(), rawzk.EphemeralSequential),
			rawzk.CreateContainer(p, nil, rawzk.Open(), rawzk.Container),
			rawzk.CreateTTL(p, nil, rawzk.Open(), rawzk.TTL, hour), rawzk.SetACL(p, rawzk.Open(), 0),
			rawzk.Multi(rawzk.Check(p, -1), rawzk.SetData(p, nil, 1)), rawzk.GetChildren(s.root(), false), del(p))
	}
}

func oddPathsRead(s *script) {
	a := s.connect("a")
	w := s.connect("w") // sets the watches
	a.do(node(s.path("a")))
	for _, p := range oddPaths(s) {
		for range 2 { // without the node, and with it if it can be created
			a.each(rawzk.Exists(p, false), rawzk.GetData(p, false), rawzk.GetChildren(p, false),
				rawzk.GetChildren2(p, false), rawzk.GetACL(p), rawzk.Sync(p), rawzk.GetEphemerals(p),
				rawzk.GetAllChildrenNumber(p), rawzk.MultiRead(rawzk.GetData(p, false), rawzk.GetChildren(p, false)))
			w.each(rawzk.AddWatch(p, 0), rawzk.Exists(p, true), rawzk.CheckWatches(p, 3), rawzk.RemoveWatches(p, 3),
				rawzk.RemoveWatches(p, 3), rawzk.AddWatch(p, 1))
			a.do(node(p))
			w.barrier()
			w.each(rawzk.SetWatches2(0, []string{p}, []string{p}, []string{p}, []string{p}, []string{p}),
				rawzk.RemoveWatches(p, 3))
		}
		a.do(del(p))
		w.barrier()
	}
}

// nullPaths sends a null string for a path. Each request has a connection of its own, because it
// may end the connection.
func nullPaths(s *script) {
	open := rawzk.ACLs(rawzk.Open())
	for _, request := range []struct {
		code int32
		rest []byte
	}{
		{rawzk.OpCreate, rawzk.Join(rawzk.Null(), open, rawzk.Int(0))},
		{rawzk.OpCreate2, rawzk.Join(rawzk.Null(), open, rawzk.Int(1))},
		{rawzk.OpCreateContainer, rawzk.Join(rawzk.Null(), open, rawzk.Int(4))},
		{rawzk.OpCreateTTL, rawzk.Join(rawzk.Null(), open, rawzk.Int(5), rawzk.Long(hour))},
		{rawzk.OpDelete, rawzk.Int(-1)},
		{rawzk.OpExists, rawzk.Bool(false)},
		{rawzk.OpGetData, rawzk.Bool(false)},
		{rawzk.OpSetData, rawzk.Join(rawzk.Null(), rawzk.Int(-1))},
		{rawzk.OpGetACL, nil},
		{rawzk.OpSetACL, rawzk.Join(open, rawzk.Int(-1))},
		{rawzk.OpGetChildren, rawzk.Bool(false)},
		{rawzk.OpGetChildren2, rawzk.Bool(false)},
		{rawzk.OpGetAllChildrenNumber, nil},
		{rawzk.OpGetEphemerals, nil},
		{rawzk.OpCheckWatches, rawzk.Int(3)},
		{rawzk.OpRemoveWatches, rawzk.Int(3)},
	} {
		c := s.connect("c")
		c.do(bodied(request.code, fmt.Sprintf("op %d of null", request.code), rawzk.Null(), request.rest))
		c.do(rawzk.Sync("/"))
		c.close()
	}
}

// emptyPathIsTheRoot shows that the empty path is the root in reads.
func emptyPathIsTheRoot(s *script) {
	a, w := s.connect("a"), s.connect("w")
	lookAt(a, "")
	for _, reg := range []rawzk.Op{
		rawzk.Exists("", true), rawzk.GetData("", true), rawzk.GetChildren("", true), rawzk.AddWatch("", 0),
		rawzk.AddWatch("", 1),
	} {
		w.do(reg)
		a.each(rawzk.SetData("/", []byte("r"), -1), node(s.path("x")), del(s.path("x")), node("/top"), del("/top"))
		w.barrier()
		w.each(rawzk.CheckWatches("", 3), rawzk.CheckWatches("/", 3), rawzk.RemoveWatches("", 3),
			rawzk.RemoveWatches("/", 3))
	}
	a.each(set(""), del(""), node(""), rawzk.SetACL("", rawzk.Open(), -1), rawzk.Multi(rawzk.Check("", -1)),
		rawzk.GetEphemerals(""))
}

// descendantsAreCounted shows that only descendants count, not those of nodes whose names have the
// same prefix.
func descendantsAreCounted(s *script) {
	a := s.connect("a")
	count := func() {
		for _, name := range []string{"", "a", "ab", "a/b", "a/b/c", "none", "a/none"} {
			a.do(rawzk.GetAllChildrenNumber(s.path(name)))
		}
		a.each(rawzk.GetAllChildrenNumber("/"), rawzk.GetAllChildrenNumber(""),
			rawzk.GetAllChildrenNumber("/zookeeper"))
	}
	for _, name := range []string{"a", "ab", "ab/x", "a/b", "a/b/c", "a/b/d", "ab/y"} {
		a.do(node(s.path(name)))
		count()
	}
	a.each(del(s.path("a/b/d")), del(s.path("ab/x")))
	count()
}

// ephemeralsByPrefix lists a session's own ephemeral nodes, by the plain text of the path.
func ephemeralsByPrefix(s *script) {
	a, b := s.connect("a"), s.connect("b")
	for _, name := range []string{"a", "ab", "b", "n-"} {
		a.do(rawzk.Create(s.path(name), nil, rawzk.Open(), rawzk.Ephemeral))
		b.do(rawzk.Create2(s.path(name+"s"), nil, rawzk.Open(), rawzk.EphemeralSequential))
	}
	for _, prefix := range []string{"", "/", s.root(), s.path("a"), s.path("ab"), s.path("c"), s.root() + "/", "none",
		"/zookeeper"} {
		a.do(rawzk.GetEphemerals(prefix))
		b.do(rawzk.GetEphemerals(prefix))
	}
	b.each(del(s.path("a")), rawzk.Create(s.path("a"), nil, rawzk.Open(), rawzk.Ephemeral), rawzk.GetEphemerals("/"))
	a.do(rawzk.GetEphemerals("/"))
	a.close()
	b.each(rawzk.GetEphemerals("/"), rawzk.GetChildren(s.root(), false))
}

// missingNodeKeepsOnlyExistsWatch shows that other reads that fail set no watch.
func missingNodeKeepsOnlyExistsWatch(s *script) {
	a := s.connect("a")
	for i, read := range []func(string, bool) rawzk.Op{rawzk.GetData, rawzk.GetChildren, rawzk.GetChildren2,
		rawzk.Exists} {
		w := s.connect(fmt.Sprintf("w%d", i))
		x := s.path(fmt.Sprintf("x%d", i))
		w.each(read(x, true), rawzk.CheckWatches(x, 3), rawzk.CheckWatches(x, 1), rawzk.CheckWatches(x, 2))
		a.each(node(x), set(x), node(x+"/kid"), del(x+"/kid"), del(x))
		w.barrier()
	}
}
