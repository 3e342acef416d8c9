package differential

import (
	"fmt"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestData(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		statsOfThreeGenerations,
		recreatedNodesStartOver,
		builtInNodes,
		sequenceNumbersComeFromTheParent,
		sequenceNumbersSurviveDeletes,
		takenSequenceNameBlocks,
		failedMultiBurnsNoSequenceNumber,
		nullDataIsNotEmpty,
		createFlags,
		createFlagsInMulti,
		timesToLive,
		createChecksInOrder,
		deleteChecksInOrder,
		changesCheckInOrder,
		oddPathsWritten,
		oddPathsRead,
		nullPaths,
		emptyPathIsTheRoot,
		versionsOfDataAndACL,
		descendantsAreCounted,
		ephemeralsByPrefix,
		missingNodeKeepsOnlyExistsWatch,
	}})
}

func TestFreshServer(t *testing.T) {
	compare(t, group{bare: true, scenarios: []scenario{firstLook}})
}

// firstLook reads the nodes of a new server.
func firstLook(s *script) {
	a := s.connect("a")
	a.do(rawzk.Sync("/"))
	for _, p := range []string{"/", "", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		lookAt(a, p)
	}
	a.each(node("/x"), rawzk.Exists("/", false), del("/x"), rawzk.Exists("/", false))
	a.close()
}

// lookAt reads everything about a node.
func lookAt(c *client, path string) {
	c.each(rawzk.Exists(path, false), rawzk.GetData(path, false), rawzk.GetACL(path), rawzk.GetChildren(path, false),
		rawzk.GetChildren2(path, false), rawzk.GetAllChildrenNumber(path))
}

// statsOfThreeGenerations compares which change shows in which Stat of a node, its parent and the
// parent above.
func statsOfThreeGenerations(s *script) {
	a := s.connect("a")
	parent, child := s.path("p"), s.path("p/c")
	a.do(node(parent))
	look := func() { a.each(rawzk.Exists(child, false), rawzk.Exists(parent, false), rawzk.Exists(s.root(), false)) }
	look()
	for _, op := range []rawzk.Op{
		node(child), node(child), set(child), rawzk.SetData(child, []byte("y"), 7), rawzk.SetData(child, nil, 1),
		rawzk.SetACL(child, world(permAll), 0), rawzk.SetACL(child, world(permRead|permAdmin), 7),
		del(parent), set(parent), rawzk.SetACL(parent, rawzk.Open(), -1),
		rawzk.Multi(set(child), set(child), node(child+"/1"), node(child+"/2"), del(child+"/1")),
		rawzk.Multi(set(child), set(child+"/none")),
		del(child), del(child + "/2"), rawzk.Delete(child, 9), del(child), del(child),
		rawzk.Create2(child, []byte{}, rawzk.Open(), rawzk.Ephemeral), del(child),
		rawzk.CreateContainer(child, nil, rawzk.Open(), rawzk.Container), del(child),
		rawzk.CreateTTL(child, []byte("12345"), rawzk.Open(), rawzk.TTL, hour), del(child),
		rawzk.Create2(child, []byte("1"), rawzk.Open(), rawzk.Sequential),
	} {
		a.do(op)
		look()
	}
}

// recreatedNodesStartOver shows that nothing of a deleted node is left in a new node of its name.
func recreatedNodesStartOver(s *script) {
	a := s.connect("a")
	x := s.path("x")
	for range 2 {
		a.each(node(x), set(x), rawzk.SetACL(x, world(permAll), -1), node(x+"/k"), rawzk.GetACL(x),
			rawzk.Create(x+"/n-", nil, rawzk.Open(), rawzk.Sequential), rawzk.Exists(x, false),
			del(x+"/k"), del(x+"/n-0000000001"), rawzk.Exists(x, false), del(x))
	}
	a.do(rawzk.Exists(s.root(), false))
}

// builtInNodes shows that the nodes of every server cannot be deleted, but have data and children
// as others do.
func builtInNodes(s *script) {
	a := s.connect("a")
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		a.each(del(p), rawzk.Delete(p, 99), node(p), rawzk.GetACL(p), rawzk.SetData(p, []byte("d"), 77),
			rawzk.SetACL(p, rawzk.Open(), 77), rawzk.Multi(del(p)), rawzk.Multi(rawzk.Check(p, -1)))
		lookAt(a, p)
	}
	a.each(node("/zookeeper/own"), set("/zookeeper/own"), rawzk.Exists("/zookeeper", false), del("/zookeeper/own"),
		rawzk.SetData("/zookeeper", []byte("z"), 0), rawzk.GetData("/zookeeper", false), node("/zookeeper/config/x"))
}

// sequenceNumbersComeFromTheParent shows that the parent counts every child ever created, of any
// kind and name.
func sequenceNumbersComeFromTheParent(s *script) {
	a := s.connect("a")
	seq := func(name string, flags int32) rawzk.Op { return rawzk.Create(s.path(name), nil, rawzk.Open(), flags) }
	a.each(seq("n-", 2), seq("n-", 2), seq("m-", 3), seq("plain", 0), seq("n-", 2), seq("", 2), seq(".", 2),
		seq("..", 2), seq("...", 3), seq("plain", 0), seq("n-", 2), seq("plain/", 2), seq("plain", 2), seq("n-", 99),
		seq("none/n-", 2), seq("plain/n-", 2), seq("plain/n-", 3), seq("n-", 2),
		rawzk.Create("/"+s.scenario+"//", nil, rawzk.Open(), 2), rawzk.Create(s.root(), nil, rawzk.Open(), 2),
		rawzk.CreateContainer(s.path("c-"), nil, rawzk.Open(), 2),
		rawzk.CreateContainer(s.path("c-"), nil, rawzk.Open(), 3),
		rawzk.CreateTTL(s.path("t-"), nil, rawzk.Open(), 6, hour),
		rawzk.Create2(s.path("n-"), nil, rawzk.Open(), 3), rawzk.GetChildren2(s.root(), false),
		rawzk.GetChildren2(s.path("plain"), false))
}

// sequenceNumbersSurviveDeletes shows that deleted children count, but not after the parent was
// deleted.
func sequenceNumbersSurviveDeletes(s *script) {
	a := s.connect("a")
	p := s.path("p")
	seq := rawzk.Create(p+"/n-", nil, rawzk.Open(), rawzk.Sequential)
	a.each(node(p), seq, seq, del(p+"/n-0000000001"), seq, del(p+"/n-0000000000"), del(p+"/n-0000000002"), seq, set(p),
		rawzk.SetACL(p, rawzk.Open(), -1), seq, del(p+"/n-0000000003"), del(p+"/n-0000000004"), del(p), node(p), seq,
		rawzk.Exists(p, false))
}

// takenSequenceNameBlocks shows that the counter stays the same until another child is created.
func takenSequenceNameBlocks(s *script) {
	a := s.connect("a")
	p := s.path("p")
	seq := func(prefix string) rawzk.Op { return rawzk.Create(p+prefix, nil, rawzk.Open(), rawzk.Sequential) }
	a.each(node(p), seq("/n-"), node(p+"/n-0000000002"), seq("/n-"), seq("/n-"), rawzk.Exists(p, false), seq("/m-"),
		seq("/n-"), rawzk.GetChildren2(p, false))
}

// failedMultiBurnsNoSequenceNumber shows that only a transaction that succeeds changes the counter,
// also within itself.
func failedMultiBurnsNoSequenceNumber(s *script) {
	a := s.connect("a")
	seq := rawzk.Create(s.path("n-"), nil, rawzk.Open(), rawzk.Sequential)
	seq2 := rawzk.Create2(s.path("m-"), nil, rawzk.Open(), rawzk.EphemeralSequential)
	a.each(seq, rawzk.Multi(seq, seq2, seq), rawzk.Multi(seq, seq, rawzk.Check(s.path("none"), -1)), seq,
		rawzk.Multi(del(s.path("n-0000000000")), seq, seq2), rawzk.Exists(s.root(), false),
		rawzk.GetChildren(s.root(), false))
}

// nullDataIsNotEmpty shows that null data and empty data are read as they were written.
func nullDataIsNotEmpty(s *script) {
	a := s.connect("a")
	for i, data := range [][]byte{nil, {}, {0}, []byte("text")} {
		for j, flags := range []int32{0, 0, rawzk.Container, rawzk.TTL} {
			x := s.path(fmt.Sprintf("x%d-%d", i, j))
			a.each(fourCreates(x, data, rawzk.Open(), flags, hour)[j], rawzk.GetData(x, false), rawzk.Exists(x, false))
		}
		x := s.path(fmt.Sprintf("x%d-0", i))
		for _, next := range [][]byte{nil, {}, []byte("more"), nil} {
			a.each(rawzk.SetData(x, next, -1), rawzk.GetData(x, false), rawzk.Multi(rawzk.SetData(x, next, -1)),
				rawzk.MultiRead(rawzk.GetData(x, false)))
		}
	}
}
