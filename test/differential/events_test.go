package differential

import (
	"fmt"
	"slices"

	"github.com/docent-zk/docent/internal/rawzk"
)

// multiEventsComeInOrder: as the parts stand, all before the reply.
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
		rawzk.Multi(node(x), node(x+"/kid"), set(x), set(x+"/kid"), gone(x+"/kid"), gone(x)),
		rawzk.Multi(node(x), set(x), gone(x), node(x), seq, seq, rawzk.Check(x, 0)),
		rawzk.Multi(set(x), set(x), rawzk.SetACL(x, rawzk.Open(), -1)),
		rawzk.Multi(gone(x+"/n-0000000000"), gone(x+"/n-0000000001"), gone(x)),
	}
	for _, name := range []string{"recursive", "persistent", "standard"} {
		w := s.connect("w")
		for _, m := range multis {
			s.logf("-- %s", name)
			w.each(watch[name]...)
			a.do(m)
			w.barrier()
		}
		a.each(watch[name]...) // and for the one who writes
		a.each(multis...)
		a.each(rawzk.RemoveWatches(s.root(), 3), rawzk.RemoveWatches(x, 3), rawzk.RemoveWatches(x+"/kid", 3))
		w.close()
	}
}

func failedMultiIsSilent(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	w.each(rawzk.AddWatch(s.root(), 1), rawzk.GetData(x, true), rawzk.GetChildren(x, true), rawzk.Exists(s.path("y"), true))
	a.each(rawzk.Multi(set(x), node(x+"/kid"), node(s.path("y")), rawzk.Check(x, 9)))
	w.barrier()
	a.each(rawzk.Multi(gone(x), gone(x)), rawzk.Multi(rawzk.Check(x, 0)))
	w.barrier()
	a.each(rawzk.Multi(set(x), node(x+"/kid"), node(s.path("y")), rawzk.Check(x, 1)))
	w.barrier()
}

// closedSessionsNodesAreSeenToGo: the order among them is the server's own, so each has a watcher of its own here.
func closedSessionsNodesAreSeenToGo(s *script) {
	a := s.connect("a")
	var watchers []*client
	for i := range 4 {
		x := s.path(fmt.Sprint(i))
		a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Ephemeral))
		w := s.connect(fmt.Sprintf("w%d", i))
		w.do([]rawzk.Op{rawzk.GetData(x, true), rawzk.GetChildren(x, true), rawzk.AddWatch(x, 0), rawzk.AddWatch(x, 1)}[i])
		watchers = append(watchers, w)
	}
	p, q := s.connect("p"), s.connect("q")
	p.do(rawzk.GetChildren(s.root(), true)) // fires once for all
	q.do(rawzk.AddWatch(s.root(), 0))       // fires for each
	a.do(rawzk.Exists(s.path("0"), true))
	a.close()
	for _, w := range append(watchers, p, q) {
		w.barrier()
	}
	p.each(rawzk.Exists(s.root(), false), rawzk.GetChildren(s.root(), false))
}

// reconnectLosesWatches: the old connection's are gone, and the new one has none.
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

// change is something that happens to a node while a client is away. old are the children it had before.
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
		{"ACL changed", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{rawzk.SetACL(x, rawzk.Open(), -1)} }},
		{"deleted", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{gone(x)} }},
		{"recreated", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{gone(x), node(x)} }},
		{"created", nil, func(x string) []rawzk.Op { return []rawzk.Op{node(x)} }},
		{"came and went", nil, func(x string) []rawzk.Op { return []rawzk.Op{node(x), gone(x)} }},
		{"kid came", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{node(x + "/k")} }},
		{"kid went", []string{"", "/k"}, func(x string) []rawzk.Op { return []rawzk.Op{gone(x + "/k")} }},
		{"kid came and went", []string{""}, func(x string) []rawzk.Op { return []rawzk.Op{node(x + "/k"), gone(x + "/k")} }},
		{"kid changed", []string{"", "/k"}, func(x string) []rawzk.Op { return []rawzk.Op{set(x + "/k")} }},
		{"all gone", []string{"", "/k"}, func(x string) []rawzk.Op { return []rawzk.Op{gone(x + "/k"), gone(x)} }},
	}
}

// watchLists is the request that puts path into some of the five lists, which the bits of lists select.
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

// setWatchesAfterEveryChange: what each list says at once, and what its watches see later.
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
			a.do(gone(x + "/k"))
			trial(a, w, x)
		}
	}
}

// setWatchesAtTheBorders: which zxid of the client's counts as having seen a change.
func setWatchesAtTheBorders(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	changed := a.do(set(x)).zxid
	kid := a.do(node(x + "/kid")).zxid
	for i, zxid := range []int64{changed - 1, changed, kid - 1, kid, kid + 1, 0, -1, 1 << 62} {
		s.logf("-- zxid %d", i)
		w.do(rawzk.SetWatches(zxid, []string{x}, []string{}, []string{x}))
		w.do(rawzk.SetWatches2(zxid, []string{x, x, s.path("none")}, []string{s.path("none"), x}, []string{x, s.path("none")},
			[]string{s.path("none")}, []string{x}))
		w.each(rawzk.CheckWatches(x, 1), rawzk.CheckWatches(x, 2), rawzk.RemoveWatches(x, 3), rawzk.RemoveWatches(s.path("none"), 3))
	}
}

// setWatchesRefusesNull: each list in turn is null.
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
		a.do(gone(x))
		w.barrier()
		w.do(rawzk.RemoveWatches(x, 3))
	}
	empty := slices.Clip([]string{})
	w.do(rawzk.SetWatches(0, empty, empty, empty))
	w.do(rawzk.SetWatches(0, []string{"garbage", ""}, []string{"//", "\x00"}, []string{"/zookeeper", "\x01"}))
}
