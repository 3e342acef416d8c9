package differential

import (
	"fmt"
	"math"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestWatches(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		everyWatchSeesEveryAction,
		samePathWatchedTwice,
		samePathWatchedInPairs,
		samePathWatchedInThrees,
		duplicateWatchesFireOnce,
		persistentWatchOutlivesItsNode,
		recursiveWatchesNest,
		twoWatchersOfOneNode,
		multiEventsComeInOrder,
		failedMultiIsSilent,
		closedSessionsNodesAreDeleted,
		watchesAreCheckedAndRemoved,
		watchesOfOthersAreNotRemoved,
		reconnectLosesWatches,
		setWatchesAfterEveryChange,
		setWatchesAtTheBorders,
		setWatchesRefusesNull,
		unreadableNodesConsumeWatches,
		setWatchesOfUnreadableNodes,
		watchesNeedNoPath,
		oddTypesAtOddPaths,
	}})
}

// registration is a way to watch dir/x.
type registration struct {
	name string
	op   func(dir string) rawzk.Op
}

func onNode(name string, op func(path string) rawzk.Op) registration {
	return registration{name, func(dir string) rawzk.Op { return op(dir + "/x") }}
}

func watching(read func(string, bool) rawzk.Op) func(string) rawzk.Op {
	return func(path string) rawzk.Op { return read(path, true) }
}

func adding(mode int32) func(string) rawzk.Op {
	return func(path string) rawzk.Op { return rawzk.AddWatch(path, mode) }
}

// onTheNode returns the registrations that watch dir/x by its own path.
func onTheNode() []registration {
	return []registration{
		onNode("exists", watching(rawzk.Exists)), onNode("getData", watching(rawzk.GetData)),
		onNode("getChildren", watching(rawzk.GetChildren)), onNode("getChildren2", watching(rawzk.GetChildren2)),
		onNode("persistent", adding(0)), onNode("recursive", adding(1)),
	}
}

// registrations returns all that can receive an event of dir/x.
func registrations() []registration {
	list := onTheNode()
	for _, r := range onTheNode() {
		if r.name != "getChildren2" {
			list = append(list, registration{r.name + " on the parent", func(dir string) rawzk.Op {
				return r.op(dir[:len(dir)-len("/x")])
			}})
		}
	}
	return append(list, onNode("multiRead", func(path string) rawzk.Op {
		return rawzk.MultiRead(rawzk.GetData(path, true), rawzk.GetChildren(path, true))
	}))
}

// action changes a node. With absent, the node does not exist before it.
type action struct {
	name   string
	absent bool
	ops    func(path string) []rawzk.Op
}

func actions() []action {
	kid := func(path string) string { return path + "/kid" }
	return []action{
		{"create", true, func(p string) []rawzk.Op { return []rawzk.Op{node(p), set(p)} }},
		{"setData", false, func(p string) []rawzk.Op { return []rawzk.Op{set(p), set(p)} }},
		{"delete", false, func(p string) []rawzk.Op { return []rawzk.Op{del(p), node(p)} }},
		{"setACL", false, func(p string) []rawzk.Op { return []rawzk.Op{rawzk.SetACL(p, rawzk.Open(), -1)} }},
		{"kid created", false, func(p string) []rawzk.Op {
			return []rawzk.Op{node(kid(p)), node(p + "/2"), set(kid(p))}
		}},
		{"kid deleted", false, func(p string) []rawzk.Op { return []rawzk.Op{node(kid(p)), del(kid(p)), del(p)} }},
		{"nothing", false, func(p string) []rawzk.Op {
			return []rawzk.Op{del(p + "/none"), node(p), rawzk.SetData(p, nil, 9)}
		}},
		{"sequential", false, func(p string) []rawzk.Op {
			return []rawzk.Op{rawzk.Create(p+"/", nil, rawzk.Open(), 2), rawzk.Create(p+"/", nil, rawzk.Open(), 3)}
		}},
	}
}

func everyWatchSeesEveryAction(s *script) {
	a, w := s.connect("a"), s.connect("w")
	for i, r := range registrations() {
		for j, act := range actions() {
			dir := s.path(fmt.Sprintf("%d-%d", i, j))
			s.logf("-- %s sees %s", r.name, act.name)
			a.each(node(dir), node(dir+"/x"), node(dir+"/x/x")) // a registration on the parent removes one name
			if act.absent {
				a.each(del(dir+"/x/x"), del(dir+"/x"))
			}
			w.do(r.op(dir))
			for _, op := range act.ops(dir + "/x") {
				a.do(op)
				w.barrier()
			}
		}
	}
}

// trial makes all changes of dir/x that a watch could see.
func trial(a, w *client, x string) {
	for _, op := range []rawzk.Op{set(x), set(x), node(x + "/kid"), set(x + "/kid"), del(x + "/kid"), del(x), node(x),
		set(x), del(x)} {
		a.do(op)
		w.barrier()
	}
}

func (s *script) tryTogether(a *client, i int, rs ...registration) {
	w := s.connect("w")
	dir := s.path(fmt.Sprint(i))
	a.each(node(dir), node(dir+"/x"))
	for _, r := range rs {
		s.logf("-- %s", r.name)
		w.do(r.op(dir))
	}
	trial(a, w, dir+"/x")
	w.close()
}

// samePathWatchedTwice uses the same registration twice.
func samePathWatchedTwice(s *script) {
	a := s.connect("a")
	for i, r := range onTheNode() {
		s.tryTogether(a, i, r, r)
	}
}

// samePathWatchedInPairs uses two registrations in every order.
func samePathWatchedInPairs(s *script) {
	a := s.connect("a")
	all := onTheNode()
	for i, first := range all {
		for j, second := range all {
			if i != j {
				s.tryTogether(a, i*len(all)+j, first, second)
			}
		}
	}
}

// samePathWatchedInThrees uses the first registration again after another.
func samePathWatchedInThrees(s *script) {
	a := s.connect("a")
	all := onTheNode()
	for i, first := range all {
		for j, second := range all[3:] {
			s.tryTogether(a, i*len(all)+j, first, second, first)
		}
	}
	s.tryTogether(a, 100, all[1], all[2], all[4], all[5])
	s.tryTogether(a, 101, all[5], all[4], all[2], all[1])
}

func duplicateWatchesFireOnce(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	w.each(rawzk.GetData(x, true), rawzk.GetData(x, true), rawzk.Exists(x, true), rawzk.Exists(x, true),
		rawzk.GetChildren(x, true), rawzk.GetChildren2(x, true))
	trial(a, w, x)
	w.each(rawzk.Exists(x, true), rawzk.GetData(x, true), rawzk.GetChildren(x, true), rawzk.Exists(x, true))
	trial(a, w, x)
}

// persistentWatchOutlivesItsNode also when the node did not exist at first.
func persistentWatchOutlivesItsNode(s *script) {
	a, w := s.connect("a"), s.connect("w")
	for mode := range int32(2) {
		x := s.path(fmt.Sprint(mode))
		w.do(rawzk.AddWatch(x, mode))
		for range 2 {
			a.do(node(x))
			trial(a, w, x)
		}
	}
}

// recursiveWatchesNest shows one event for each change, however many of a client's watches cover
// it.
func recursiveWatchesNest(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	w.each(rawzk.AddWatch("/", 1), rawzk.AddWatch(s.root(), 1), rawzk.AddWatch(x, 1), rawzk.AddWatch(x+"/kid", 0),
		rawzk.Exists(x, true), rawzk.AddWatch(s.path("y"), 1))
	for range 2 {
		a.do(node(x))
		trial(a, w, x)
		w.do(rawzk.RemoveWatches(x, 3))
	}
	w.each(rawzk.RemoveWatches("/", 3), rawzk.GetChildren(s.root(), true), rawzk.AddWatch(s.root(), 0))
	a.do(node(x))
	trial(a, w, x)
	a.each(node(s.path("y")), node(s.path("yy")), node(s.path("yy/kid")), node(s.path("y/kid")))
	w.barrier()
}

// twoWatchersOfOneNode shows that each client has its own watches.
func twoWatchersOfOneNode(s *script) {
	a, v, w := s.connect("a"), s.connect("v"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	v.each(rawzk.GetData(x, true), rawzk.AddWatch(x, 1))
	w.each(rawzk.GetChildren(x, true), rawzk.AddWatch(x, 0), rawzk.AddWatch(s.root(), 1))
	for _, op := range []rawzk.Op{set(x), node(x + "/kid"), del(x + "/kid"), del(x), node(x)} {
		a.do(op)
		v.barrier()
		w.barrier()
	}
	v.close()
	a.each(set(x), del(x))
	w.barrier()
}

// watchesNeedNoPath shows that addWatch accepts any text, but only two modes.
func watchesNeedNoPath(s *script) {
	w := s.connect("w")
	for _, mode := range []int32{0, 1, 2, 3, -1, math.MaxInt32, math.MinInt32} {
		for _, path := range []string{s.path("none/at/all"), "garbage", "//", "\x00", s.root() + "/"} {
			w.each(rawzk.AddWatch(path, mode), rawzk.CheckWatches(path, 3), rawzk.RemoveWatches(path, 3))
		}
	}
	w.do(bodied(rawzk.OpAddWatch, "addWatch without a mode", rawzk.Str(s.path("x"))))
	w.do(rawzk.Sync("/"))
}

// oddTypesAtOddPaths compares whether the type or the path is checked first.
func oddTypesAtOddPaths(s *script) {
	w := s.connect("w")
	for _, path := range []string{"", "/", "garbage", "gar/bage", "\x00", s.path("none"), s.root()} {
		for kind := int32(-1); kind <= 7; kind++ {
			w.each(rawzk.CheckWatches(path, kind), rawzk.RemoveWatches(path, kind), rawzk.AddWatch(path, kind),
				rawzk.CheckWatches(path, kind), rawzk.RemoveWatches(path, kind), rawzk.RemoveWatches(path, 3))
		}
	}
}
