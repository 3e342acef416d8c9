package differential

import (
	"fmt"
	"slices"

	"github.com/docent-zk/docent/internal/rawzk"
)

// multiEventsComeInOrder shows that the events are in the order of the parts, all before the reply.
func multiEventsComeInOrder(s *script) {
	a := s.connect("a")
	x := s.path("x")
	watch := map[string][]rawzk.Op{
		"recursive":  {rawzk.AddWatch(s.root(), 1)},
		"persistent": {rawzk.AddWatch(s.root(), 0), rawzk.AddWatch(x, 0), rawzk.AddWatch(x+"/kid", 0)},
		"standard":   {rawzk.GetChildren(s.root(), true), rawzk.Exists(x, true), rawzk.Exists(x+"/kid", true)},
	}
	seq := rawzk.Create(x+"/n-", nil, rawzk.Open(), rawzk.Sequential)
	multis := []rawzk.Op{
		rawzk.Multi(node(x), node(x+"/kid"), set(x), set(x+"/kid"), del(x+"/kid"), del(x)),
		rawzk.Multi(node(x), set(x), del(x), node(x), seq, seq, rawzk.Check(x, 0)),
		rawzk.Multi(set(x), set(x), rawzk.SetACL(x, rawzk.Open(), -1)),
		rawzk.Multi(del(x+"/n-0000000000"), del(x+"/n-0000000001"), del(x)),
	}
	for _, name := range []string{"recursive", "persistent", "standard"} {
		w := s.connect("w")
		for _, m := range multis {
			s.logf("-- %s", name)
			w.each(watch[name]...)
			a.do(m)
			w.barrier()
		}
		a.each(watch[name]...) // also for the writer
		a.each(multis...)
		a.each(rawzk.RemoveWatches(s.root(), 3), rawzk.RemoveWatches(x, 3), rawzk.RemoveWatches(x+"/kid", 3))
		w.close()
	}
}

func failedMultiIsSilent(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	w.each(rawzk.AddWatch(s.root(), 1), rawzk.GetData(x, true), rawzk.GetChildren(x, true),
		rawzk.Exists(s.path("y"), true))
	a.each(rawzk.Multi(set(x), node(x+"/kid"), node(s.path("y")), rawzk.Check(x, 9)))
	w.barrier()
	a.each(rawzk.Multi(del(x), del(x)), rawzk.Multi(rawzk.Check(x, 0)))
	w.barrier()
	a.each(rawzk.Multi(set(x), node(x+"/kid"), node(s.path("y")), rawzk.Check(x, 1)))
	w.barrier()
}

// closedSessionsNodesAreDeleted uses a watcher for each node of a closed session, because the
// order of their events is the server's own.
func closedSessionsNodesAreDeleted(s *script) {
	a := s.connect("a")
	var watchers []*client
	for i := range 4 {
		x := s.path(fmt.Sprint(i))
		a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Ephemeral))
		w := s.connect(fmt.Sprintf("w%d", i))
		w.do([]rawzk.Op{rawzk.GetData(x, true), rawzk.GetChildren(x, true), rawzk.AddWatch(x, 0),
			rawzk.AddWatch(x, 1)}[i])
		watchers = append(watchers, w)
	}
	p, q := s.connect("p"), s.connect("q")
	p.do(rawzk.GetChildren(s.root(), true)) // fires once
	q.do(rawzk.AddWatch(s.root(), 0))       // fires for each node
	a.do(rawzk.Exists(s.path("0"), true))
	a.close()
	for _, w := range append(watchers, p, q) {
		w.barrier()
	}
	p.each(rawzk.Exists(s.root(), false), rawzk.GetChildren(s.root(), false))
}

// reconnectLosesWatches shows that watches of the old connection are lost, and that the new one has
// none.
func reconnectLosesWatches(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	w.each(rawzk.GetData(x, true), rawzk.GetChildren(x, true), rawzk.AddWatch(x, 0), rawzk.AddWatch(s.root(), 1))
	again := s.attach("w2", w)
	w.end()
	again.each(rawzk.CheckWatches(x, 3), rawzk.CheckWatches(s.root(), 3), rawzk.RemoveWatches(x, 3))
	trial(a, again, x)
}

// change is a change of a node while a client is away. old are the children before it.
type change struct {
	name   string
	before []string
	ops    func(x string) []rawzk.Op
}

func changesWhileAway() []change {
	return []change{
		{"same", []string{""}, func(x string) []rawzk.Op { return nil }},
		{"still missing", nil, func(x string) []rawzk.Op { return nil }},
		{"changed", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{set(x)} }},
		{"ACL changed", []string{""}, func(x string) []rawzk.Op {
			return []rawzk.Op{rawzk.SetACL(x, rawzk.Open(), -1)}
		}},
		{"deleted", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{del(x)} }},
		{"recreated", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{del(x), node(x)} }},
		{"created", nil, func(x string) []rawzk.Op { return []rawzk.Op{node(x)} }},
		{"created and deleted", nil, func(x string) []rawzk.Op { return []rawzk.Op{node(x), del(x)} }},
		{"kid came", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{node(x + "/k")} }},
		{"kid deleted", []string{"", "/k"}, func(x string) []rawzk.Op { return []rawzk.Op{del(x + "/k")} }},
		{"kid created and deleted", []string{""}, func(x string) []rawzk.Op {
			return []rawzk.Op{node(x + "/k"), del(x + "/k")}
		}},
		{"kid changed", []string{"", "/k"}, func(x string) []rawzk.Op { return []rawzk.Op{set(x + "/k")} }},
		{"all deleted", []string{"", "/k"}, func(x string) []rawzk.Op { return []rawzk.Op{del(x + "/k"), del(x)} }},
	}
}

// watchLists returns a request with path in some of the five lists, which are selected by the bits
// of lists.
func watchLists(zxid int64, lists int, path string) rawzk.Op {
	var in [5][]string
	for i := range in {
		in[i] = []string{}
		if lists&(1<<i) != 0 {
			in[i] = []string{path}
		}
	}
	if lists < 8 {
		return rawzk.SetWatches(zxid, in[0], in[1], in[2])
	}
	return rawzk.SetWatches2(zxid, in[0], in[1], in[2], in[3], in[4])
}

// setWatchesAfterEveryChange compares which event each list sends at once, and which events its
// watches send later.
func setWatchesAfterEveryChange(s *script) {
	a := s.connect("a")
	w := s.connect("w0")
	for i, c := range changesWhileAway() {
		for j, lists := range []int{1, 2, 4, 7, 8, 16, 31, 8 | 1, 16 | 4} {
			x := s.path(fmt.Sprintf("x%d-%d", i, j))
			s.logf("-- lists %b: %s", lists, c.name)
			for _, suffix := range c.before {
				a.do(node(x + suffix))
			}
			seen := a.do(rawzk.Sync("/")).zxid
			a.each(c.ops(x)...)
			again := s.attach(fmt.Sprintf("w%d-%d", i, j), w)
			w.end()
			w = again
			w.do(watchLists(seen, lists, x))
			a.do(del(x + "/k"))
			trial(a, w, x)
		}
	}
}

// setWatchesAtTheBorders compares which zxid of the client counts as later than a change.
func setWatchesAtTheBorders(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	changed := a.do(set(x)).zxid
	kid := a.do(node(x + "/kid")).zxid
	for i, zxid := range []int64{changed - 1, changed, kid - 1, kid, kid + 1, 0, -1, 1 << 62} {
		s.logf("-- zxid %d", i)
		w.do(rawzk.SetWatches(zxid, []string{x}, []string{}, []string{x}))
		w.do(rawzk.SetWatches2(zxid, []string{x, x, s.path("none")}, []string{s.path("none"), x},
			[]string{x, s.path("none")},
			[]string{s.path("none")}, []string{x}))
		w.each(rawzk.CheckWatches(x, 1), rawzk.CheckWatches(x, 2), rawzk.RemoveWatches(x, 3),
			rawzk.RemoveWatches(s.path("none"), 3))
	}
}

// setWatchesRefusesNull sends null for each list in turn.
func setWatchesRefusesNull(s *script) {
	w := s.connect("w")
	a := s.connect("a")
	x := s.path("x")
	for null := range 6 {
		lists := [][]string{{x}, {x}, {x}, {x}, {x}}
		if null < 5 {
			lists[null] = nil
		}
		w.do(rawzk.SetWatches2(0, lists[0], lists[1], lists[2], lists[3], lists[4]))
		w.do(rawzk.SetWatches(0, lists[0], lists[1], lists[2]))
		a.do(node(x))
		w.barrier()
		a.do(del(x))
		w.barrier()
		w.do(rawzk.RemoveWatches(x, 3))
	}
	empty := slices.Clip([]string{})
	w.do(rawzk.SetWatches(0, empty, empty, empty))
	w.do(rawzk.SetWatches(0, []string{"garbage", ""}, []string{"//", "\x00"}, []string{"/zookeeper", "\x01"}))
}
