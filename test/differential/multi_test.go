package differential

import (
	"fmt"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestMulti(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		everyPartAlone,
		everyFailureAtEveryPlace,
		partsSeeThoseBefore,
		emptyMulti,
		malformedMultis,
		foreignPartsInMulti,
		multiMakesNodesOfEveryKind,
		multiReadPartsAreIndependent,
		multiReadIgnoresWatches,
		permissionsInsideMulti,
		bigMulti,
		failedMultiBetweenOthers,
	}})
}

// part is an operation for a multi in a dir with the nodes x, full and full/kid.
type part struct {
	name string
	op   func(dir string) rawzk.Op
}

func goodParts() []part {
	return []part{
		{"create", func(d string) rawzk.Op { return node(d + "/new") }},
		{"create2", func(d string) rawzk.Op { return rawzk.Create2(d+"/new", nil, rawzk.Open(), rawzk.Ephemeral) }},
		{"container", func(d string) rawzk.Op {
			return rawzk.CreateContainer(d+"/new", nil, rawzk.Open(), rawzk.Container)
		}},
		{"TTL", func(d string) rawzk.Op { return rawzk.CreateTTL(d+"/new", nil, rawzk.Open(), rawzk.TTL, hour) }},
		{"sequential", func(d string) rawzk.Op { return rawzk.Create(d+"/new", nil, rawzk.Open(), rawzk.Sequential) }},
		{"delete", func(d string) rawzk.Op { return del(d + "/x") }},
		{"setData", func(d string) rawzk.Op { return set(d + "/x") }},
		{"setACL", func(d string) rawzk.Op { return rawzk.SetACL(d+"/x", rawzk.Open(), -1) }}, // not allowed
		{"check", func(d string) rawzk.Op { return rawzk.Check(d+"/x", 0) }},
	}
}

func badParts() []part {
	return []part{
		{"create existing", func(d string) rawzk.Op { return node(d + "/x") }},
		{"create without a parent", func(d string) rawzk.Op { return node(d + "/none/new") }},
		{"create badly named", func(d string) rawzk.Op { return node(d + "//new") }},
		{"create without ACL", func(d string) rawzk.Op { return rawzk.Create(d+"/new", nil, nil, 0) }},
		{"create with a bad flag", func(d string) rawzk.Op { return rawzk.Create(d+"/new", nil, rawzk.Open(), 99) }},
		{"create2 existing", func(d string) rawzk.Op { return rawzk.Create2(d+"/x", nil, rawzk.Open(), 0) }},
		{"container existing", func(d string) rawzk.Op { return rawzk.CreateContainer(d+"/x", nil, rawzk.Open(), 4) }},
		{"TTL of zero", func(d string) rawzk.Op { return rawzk.CreateTTL(d+"/new", nil, rawzk.Open(), rawzk.TTL, 0) }},
		{"delete missing", func(d string) rawzk.Op { return del(d + "/none") }},
		{"delete full", func(d string) rawzk.Op { return del(d + "/full") }},
		{"delete wrong version", func(d string) rawzk.Op { return rawzk.Delete(d+"/x", 9) }},
		{"delete the root", func(d string) rawzk.Op { return del("/") }},
		{"setData missing", func(d string) rawzk.Op { return set(d + "/none") }},
		{"setData wrong version", func(d string) rawzk.Op { return rawzk.SetData(d+"/x", nil, 9) }},
		{"check missing", func(d string) rawzk.Op { return rawzk.Check(d+"/none", -1) }},
		{"check wrong version", func(d string) rawzk.Op { return rawzk.Check(d+"/x", 9) }},
		{"check badly named", func(d string) rawzk.Op { return rawzk.Check("garbage", -1) }},
	}
}

func (s *script) stage(a *client, name string) string {
	dir := s.path(name)
	a.each(node(dir), node(dir+"/x"), node(dir+"/full"), node(dir+"/full/kid"))
	return dir
}

func everyPartAlone(s *script) {
	a := s.connect("a")
	for i, p := range append(goodParts(), badParts()...) {
		s.logf("-- %s", p.name)
		dir := s.stage(a, fmt.Sprint(i))
		a.each(rawzk.Multi(p.op(dir)), rawzk.GetChildren2(dir, false), rawzk.Exists(dir+"/x", false),
			rawzk.Exists(dir+"/new", false))
	}
}

// everyFailureAtEveryPlace puts a failing part before, between and behind parts that would succeed.
// No part is applied, but a zxid is used.
func everyFailureAtEveryPlace(s *script) {
	a := s.connect("a")
	for i, p := range badParts() {
		dir := s.stage(a, fmt.Sprint(i))
		bad, change, create := p.op(dir), set(dir+"/x"), rawzk.Create2(dir+"/seq-", nil, rawzk.Open(), rawzk.Sequential)
		for _, m := range [][]rawzk.Op{
			{bad, change, create}, {change, bad, create}, {change, create, bad}, {bad, bad},
			{change, del(dir + "/none"), bad, create},
		} {
			s.logf("-- %s", p.name)
			a.each(rawzk.Multi(m...), rawzk.GetChildren2(dir, false), rawzk.Exists(dir+"/x", false))
		}
	}
}

// partsSeeThoseBefore shows that a part sees earlier parts, that its Stat is that after it, and
// that all have one zxid.
func partsSeeThoseBefore(s *script) {
	a := s.connect("a")
	x := s.path("x")
	look := func() { a.each(rawzk.Exists(x, false), rawzk.Exists(x+"/kid", false), rawzk.Exists(s.root(), false)) }
	for _, m := range []rawzk.Op{
		rawzk.Multi(node(x), node(x+"/kid"), rawzk.SetData(x, []byte("1"), 0), rawzk.SetData(x, []byte("22"), 1),
			rawzk.Check(x, 2)),
		rawzk.Multi(rawzk.SetData(x, nil, 2), rawzk.SetData(x, nil, 2)),
		rawzk.Multi(del(x+"/kid"), del(x)),
		rawzk.Multi(node(x), del(x), node(x), rawzk.Check(x, 0), set(x), rawzk.Check(x, 0)),
		rawzk.Multi(node(x), del(x), rawzk.Create2(x, []byte("2"), rawzk.Open(), rawzk.Ephemeral),
			rawzk.SetData(x, nil, 0)),
		rawzk.Multi(node(x + "/kid")),
		rawzk.Multi(del(x), node(x), node(x+"/kid")),
		rawzk.Multi(del(x+"/kid"), set(x), rawzk.Create2(x+"/kid", nil, rawzk.Open(), 0), set(x), del(x)),
		rawzk.Multi(del(x+"/kid"), del(x), node(x+"/kid")),
		rawzk.Multi(rawzk.Check(x, 0), rawzk.Check(x, -1), rawzk.Check(x, 0)),
	} {
		a.do(m)
		look()
	}
}

// emptyMulti shows that a transaction without parts takes a zxid too.
func emptyMulti(s *script) {
	a := s.connect("a")
	a.each(rawzk.Multi(), rawzk.Sync("/"), rawzk.MultiRead(), rawzk.Sync("/"))
}

// malformedMultis sends transactions with an invalid encoding.
func malformedMultis(s *script) {
	x := s.path("x")
	good := rawzk.MultiPart(node(x))
	end := rawzk.MultiEnd()
	header := func(code int32, done bool, err int32) []byte {
		return rawzk.Join(rawzk.Int(code), rawzk.Bool(done), rawzk.Int(err))
	}
	for _, code := range []int32{rawzk.OpMulti, rawzk.OpMultiRead} {
		for i, body := range [][]byte{
			nil, good, good[:len(good)-3], rawzk.Join(good, end[:4]), rawzk.Join(good, end, good),
			rawzk.Join(good, end, []byte{1, 2}), header(rawzk.OpDelete, true, -1), header(-1, true, 77),
			header(-1, false, -1), header(1, false, 0),
			rawzk.Join(header(rawzk.OpDelete, false, 5), rawzk.Str(x), rawzk.Int(-1), end),
			rawzk.Join(header(-1, false, -1), end), rawzk.Join(good, header(rawzk.OpDelete, true, -1)),
		} {
			c := s.connect("c")
			c.do(bodied(code, fmt.Sprintf("op %d, malformed %d", code, i), body))
			c.each(rawzk.Sync("/"), del(x), rawzk.Sync("/"))
			c.close()
		}
	}
}

// foreignPartsInMulti sends operations that are no parts of transactions, alone and behind a valid
// part.
func foreignPartsInMulti(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(node(x))
	for _, foreign := range []rawzk.Op{
		rawzk.GetData(x, false), rawzk.GetChildren(x, false), rawzk.Exists(x, false), rawzk.GetChildren2(x, false),
		rawzk.GetACL(x), rawzk.SetACL(x, rawzk.Open(), -1), rawzk.Sync(x), rawzk.Ping(), rawzk.AddWatch(x, 0),
		rawzk.Multi(set(x)), bodied(99, "op 99"), bodied(0, "op 0"), bodied(rawzk.OpCloseSession, "closeSession"),
		node(x), set(x), rawzk.Check(x, 0), del(x),
	} {
		a.each(rawzk.Multi(foreign), rawzk.Multi(set(x), foreign), rawzk.MultiRead(foreign),
			rawzk.MultiRead(rawzk.GetData(x, false), foreign), rawzk.Sync("/"))
	}
}

// multiMakesNodesOfEveryKind compares the type of each result, and the node afterwards.
func multiMakesNodesOfEveryKind(s *script) {
	a := s.connect("a")
	for i, flags := range []int32{0, 1, 2, 3, 4, 5, 6} {
		for j := range 4 {
			dir := s.path(fmt.Sprintf("%d-%d", i, j))
			a.each(node(dir), rawzk.Multi(fourCreates(dir+"/x", []byte("d"), rawzk.Open(), flags, hour)[j], set(dir)),
				rawzk.GetChildren(dir, false), rawzk.Exists(dir+"/x", false), rawzk.GetEphemerals(dir),
				node(dir+"/x/kid"))
		}
	}
}

// multiReadPartsAreIndependent shows that a part that fails does not affect the others.
func multiReadPartsAreIndependent(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.each(node(x), node(x+"/2"), node(x+"/1"), node(s.path("sealed")),
		rawzk.SetACL(s.path("sealed"), world(permWrite), -1))
	data, kids := rawzk.GetData(x, false), rawzk.GetChildren(x, false)
	for _, name := range []string{"x", "none", "sealed", "/bad", "x/1", ""} {
		p := s.path(name)
		a.each(rawzk.MultiRead(rawzk.GetData(p, false), data, kids),
			rawzk.MultiRead(data, rawzk.GetChildren(p, false), data),
			rawzk.MultiRead(rawzk.GetData(p, false), rawzk.GetChildren(p, false)))
	}
	a.each(rawzk.MultiRead(rawzk.GetData("", false), rawzk.GetChildren("garbage", false)), rawzk.Sync("/"))
}

func multiReadIgnoresWatches(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(node(x))
	w.each(rawzk.MultiRead(rawzk.GetData(x, true), rawzk.GetChildren(x, true), rawzk.GetData(s.path("none"), true)),
		rawzk.CheckWatches(x, 3))
	a.do(node(s.path("none")))
	trial(a, w, x)
}

// permissionsInsideMulti shows that permissions are those after the earlier parts.
func permissionsInsideMulti(s *script) {
	a := s.connect("a")
	for perms := int32(0); perms <= permAll; perms++ {
		x := s.path(fmt.Sprint(perms))
		kid := rawzk.Create(x+"/kid", nil, rawzk.Open(), 0)
		a.each(node(x), node(x+"/old"), rawzk.SetACL(x, world(perms), -1), rawzk.Multi(rawzk.Check(x, 0)),
			rawzk.Multi(set(x)), rawzk.Multi(kid), rawzk.Multi(del(x+"/old")),
			rawzk.Multi(rawzk.Create(x+"2", nil, world(perms), 0), node(x+"2/kid")),
			rawzk.Multi(rawzk.Create(x+"3", nil, world(perms), 0), set(x+"3"), del(x+"3")),
			rawzk.MultiRead(rawzk.GetData(x, false)))
	}
}

// bigMulti sends many parts, and a failure at the end of many.
func bigMulti(s *script) {
	a, w := s.connect("a"), s.connect("w")
	w.do(rawzk.AddWatch(s.root(), 1))
	var parts []rawzk.Op
	for i := range 300 {
		parts = append(parts, rawzk.Create2(s.path("n-"), fmt.Append(nil, i), rawzk.Open(), rawzk.Sequential))
	}
	a.each(rawzk.Multi(append(parts, rawzk.Check(s.path("none"), 0))...), rawzk.Multi(parts...),
		rawzk.GetChildren2(s.root(), false))
	w.barrier()
}

// failedMultiBetweenOthers sends requests behind a transaction that fails. They are checked before
// it fails, and still must not see it.
func failedMultiBetweenOthers(s *script) {
	a := s.connect("a")
	x := s.path("x")
	fails := rawzk.Check(s.path("none"), 0)
	seq := rawzk.Create(s.path("n-"), nil, rawzk.Open(), rawzk.Sequential)
	for range 3 {
		a.pipeline(node(x), set(x), rawzk.Multi(set(x), node(x+"/kid"), seq, seq, fails), rawzk.SetData(x, nil, 1),
			del(x+"/kid"), seq, rawzk.Multi(del(x), node(x), fails), rawzk.Delete(x, 1), rawzk.Delete(x, 2),
			rawzk.Multi(node(x), fails), set(x), seq, rawzk.GetChildren2(s.root(), false),
			rawzk.Multi(seq, seq, fails), seq, node(x), rawzk.Multi(rawzk.SetACL(x, world(0), -1)),
			rawzk.Multi(del(x), fails), node(x+"/kid"), rawzk.Multi(del(x+"/kid"), fails), del(x), del(x+"/kid"),
			del(x), rawzk.GetChildren2(s.root(), false))
		a.settle()
	}
}
