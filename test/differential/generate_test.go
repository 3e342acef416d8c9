package differential

import (
	"fmt"

	"github.com/docent-zk/docent/internal/rawzk"
)

// choice is one of several actions. The greater its weight, the more often it is chosen.
type choice[T any] struct {
	weight int
	make   func() T
}

func pick[T any](g *generator, choices []choice[T]) T {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := g.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.make()
		}
	}
	panic("unreachable: the weights did not sum up")
}

// chance returns true in percent of the cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func one[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// next returns the n-th step.
func (g *generator) next(n int) step {
	switch {
	case n%restartEvery == 0:
		return step{text: "-- restart", run: (*side).restart}
	case n%wipeEvery == 0:
		return step{text: "-- wipe", run: (*side).wipe}
	}
	slot := g.IntN(randomSlots)
	return pick(g, []choice[step]{
		{54, func() step { return ask(slot, g.write(), false) }},
		{22, func() step { return ask(slot, g.read(), true) }},
		{12, func() step { return ask(slot, g.watch(), true) }},
		{4, func() step { return ask(slot, g.auth(), true) }},
		{5, func() step { return g.burst(slot) }},
		{3, func() step { return g.setWatches(slot) }},
		{4, func() step { return g.reattach(slot) }},
		{1, func() step {
			return step{text: fmt.Sprintf("-- c%d closes its session", slot), run: func(sd *side) {
				sd.renew(slot)
			}, unordered: true}
		}},
	})
}

func ask(slot int, op rawzk.Op, quiet bool) step {
	return step{text: fmt.Sprintf("-- c%d: %v", slot, op), run: func(sd *side) { sd.do(slot, op) }, quiet: quiet}
}

// burst returns requests of one client that does not wait for answers. A new ACL is the last one of
// a burst. The real server may check later requests by the old ACL, if they arrive before the new
// one has been applied.
func (g *generator) burst(slot int) step {
	var ops []rawzk.Op
	for more := 2 + g.IntN(7); more > 0; more-- {
		op := pick(g, []choice[rawzk.Op]{{6, g.write}, {2, g.read}, {1, g.watch}})
		if ops = append(ops, op); op.Code == rawzk.OpSetACL {
			break
		}
	}
	return step{text: fmt.Sprintf("-- c%d: a burst of %d", slot, len(ops)), run: func(sd *side) { sd.burst(slot, ops) }}
}

// path returns mostly one of eight paths, more often those with descendants.
func (g *generator) path() string {
	switch n := g.IntN(100); {
	case n < 2:
		return one(g, g.root+"/", "", "/zookeeper", g.root+"/a/../b", "//", g.root+"/\x01", "relative")
	case n < 18 && len(g.made) > 0:
		return one(g, g.made...)
	}
	return g.root + one(g, "", "/a", "/a", "/a", "/a/b", "/a/b", "/a/b/c", "/d", "/d", "/d/e", "/f", "/f", "/f/g")
}

func (g *generator) paths() []string {
	list := make([]string, g.IntN(4))
	for i := range list {
		list[i] = g.path()
	}
	return list
}

func (g *generator) data() []byte {
	switch {
	case g.chance(15):
		return nil
	case g.chance(10):
		return []byte{}
	}
	return fmt.Append(nil, g.Uint64N(1<<(1+g.IntN(60))))
}

func (g *generator) version() int32 {
	if g.chance(60) {
		return -1
	}
	return one[int32](g, 0, 0, 1, 1, 2, 3, -2)
}

func (g *generator) acl() []rawzk.ACL {
	if g.chance(70) {
		return rawzk.Open()
	}
	auth := entry(permAll, "auth", "")
	return one(g,
		[]rawzk.ACL{auth}, []rawzk.ACL{auth, entry(permRead, "world", "anyone")}, world(g.Int32N(32)),
		world(permAll&^permRead), []rawzk.ACL{entry(permAll, "digest", digestOfUP)},
		[]rawzk.ACL{entry(permAll, "ip", "127.0.0.0/8")}, nil, []rawzk.ACL{},
		[]rawzk.ACL{entry(permAll, "digest", digestOfUP), entry(permRead|permCreate, "world", "anyone")},
		[]rawzk.ACL{entry(permAll, "nonsense", "x")})
}

func (g *generator) write() rawzk.Op {
	return pick(g, []choice[rawzk.Op]{
		{40, g.create},
		{25, func() rawzk.Op { return rawzk.SetData(g.path(), g.data(), g.version()) }},
		{13, func() rawzk.Op { return rawzk.Delete(g.path(), g.version()) }},
		{7, func() rawzk.Op { return rawzk.SetACL(g.path(), g.acl(), g.version()) }},
		{15, g.multi},
	})
}

// create returns a create of any kind. An invalid flag is rare, because it only shows the error.
func (g *generator) create() rawzk.Op {
	path := g.path()
	if g.chance(20) {
		path += one(g, "/", "/n-", "-")
	}
	kind := one(g, 0, 0, 0, 1, 1, 2, 3)
	flags := one(g, [][]int32{{0, 0, 1, 2, 3}, {0, 0, 1, 2, 3}, {4}, {5, 6}}[kind]...)
	if g.chance(5) {
		flags = g.Int32N(9) - 1
	}
	ttl := one[int64](g, hour, hour, hour, 0, 1<<40)
	return fourCreates(path, g.data(), g.acl(), flags, ttl)[kind]
}

func (g *generator) multi() rawzk.Op {
	parts := make([]rawzk.Op, g.IntN(5))
	for i := range parts {
		parts[i] = pick(g, []choice[rawzk.Op]{
			{30, g.create},
			{30, func() rawzk.Op { return rawzk.SetData(g.path(), g.data(), g.version()) }},
			{20, func() rawzk.Op { return rawzk.Delete(g.path(), g.version()) }},
			{15, func() rawzk.Op { return rawzk.Check(g.path(), g.version()) }},
			{1, func() rawzk.Op { return rawzk.GetData(g.path(), false) }},
		})
	}
	return rawzk.Multi(parts...)
}

func (g *generator) read() rawzk.Op {
	watch := g.chance(70)
	return pick(g, []choice[rawzk.Op]{
		{20, func() rawzk.Op { return rawzk.Exists(g.path(), watch) }},
		{20, func() rawzk.Op { return rawzk.GetData(g.path(), watch) }},
		{12, func() rawzk.Op { return rawzk.GetChildren(g.path(), watch) }},
		{12, func() rawzk.Op { return rawzk.GetChildren2(g.path(), watch) }},
		{6, func() rawzk.Op { return rawzk.GetACL(g.path()) }},
		{4, func() rawzk.Op { return rawzk.GetAllChildrenNumber(g.path()) }},
		{4, func() rawzk.Op { return rawzk.GetEphemerals(g.path()) }},
		{4, func() rawzk.Op {
			return rawzk.MultiRead(rawzk.GetData(g.path(), watch), rawzk.GetChildren(g.path(), watch),
				rawzk.GetData(g.path(), false))
		}},
		{1, func() rawzk.Op { return rawzk.Sync(g.path()) }},
		{1, rawzk.Ping},
		{1, rawzk.WhoAmI},
	})
}

func (g *generator) watch() rawzk.Op {
	kind := g.Int32N(3) + 1
	if g.chance(15) {
		kind = g.Int32N(7)
	}
	return pick(g, []choice[rawzk.Op]{
		{20, func() rawzk.Op { return rawzk.AddWatch(g.path(), 0) }},
		{20, func() rawzk.Op { return rawzk.AddWatch(g.path(), 1) }},
		{1, func() rawzk.Op { return rawzk.AddWatch(g.path(), 2) }},
		{15, func() rawzk.Op { return rawzk.CheckWatches(g.path(), kind) }},
		{20, func() rawzk.Op { return rawzk.RemoveWatches(g.path(), kind) }},
	})
}

func (g *generator) auth() rawzk.Op {
	if g.chance(10) {
		return rawzk.Auth("nonsense", nil) // ends the connection
	}
	return rawzk.Auth("digest", one(g, []byte("u:p"), []byte("u:p"), []byte("v:q"), []byte("w")))
}

// setWatches sets watches as a client that was away for some transactions.
func (g *generator) setWatches(slot int) step {
	away := g.Int64N(40)
	lists := [5][]string{g.paths(), g.paths(), g.paths(), g.paths(), g.paths()}
	all := g.chance(60)
	return step{text: fmt.Sprintf("-- c%d: setWatches of %d ago", slot, away), run: func(sd *side) {
		zxid := sd.seen - away
		if all {
			sd.do(slot, rawzk.SetWatches2(zxid, lists[0], lists[1], lists[2], lists[3], lists[4]))
		} else {
			sd.do(slot, rawzk.SetWatches(zxid, lists[0], lists[1], lists[2]))
		}
	}}
}

// reattach attaches to the session again, mostly with credentials and watches.
func (g *generator) reattach(slot int) step {
	leave, known, watches := g.chance(30), g.chance(50), g.chance(70)
	again := g.setWatches(slot)
	return step{text: fmt.Sprintf("-- c%d reattaches, leaving first: %v", slot, leave), run: func(sd *side) {
		sd.reattach(slot, leave)
		if known {
			sd.do(slot, rawzk.Auth("digest", []byte("u:p")))
		}
		if watches {
			again.run(sd)
		}
	}}
}
