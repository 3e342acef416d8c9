package differential

import (
	"fmt"

	"github.com/docent-zk/docent/internal/rawzk"
)

// held returns sets of watches that a client may have when it checks for them.
func held(x string) map[string][]rawzk.Op {
	return map[string][]rawzk.Op{
		"nothing":    nil,
		"data":       {rawzk.GetData(x, true)},
		"exist":      {rawzk.Exists(x, true)},
		"child":      {rawzk.GetChildren(x, true)},
		"both":       {rawzk.GetData(x, true), rawzk.GetChildren(x, true)},
		"persistent": {rawzk.AddWatch(x, 0)},
		"recursive":  {rawzk.AddWatch(x, 1)},
		"all":        {rawzk.GetData(x, true), rawzk.GetChildren(x, true), rawzk.AddWatch(x, 0), rawzk.AddWatch(x, 1)},
	}
}

var heldNames = []string{"nothing", "data", "exist", "child", "both", "persistent", "recursive", "all"}

// watchesAreCheckedAndRemoved checks and removes every type with every set of watches, and shows
// which watches are left.
func watchesAreCheckedAndRemoved(s *script) {
	a := s.connect("a")
	for kind := int32(-1); kind <= 6; kind++ {
		for _, name := range heldNames {
			x := s.path(fmt.Sprintf("%s%d", name, kind))
			s.logf("-- type %d of %s", kind, name)
			w := s.connect("w")
			a.do(node(x))
			w.each(held(x)[name]...)
			for ask := int32(0); ask <= 6; ask++ {
				w.do(rawzk.CheckWatches(x, ask))
			}
			w.each(rawzk.RemoveWatches(x, kind), rawzk.RemoveWatches(x, kind))
			for ask := int32(1); ask <= 5; ask++ {
				w.do(rawzk.CheckWatches(x, ask))
			}
			trial(a, w, x)
			w.do(rawzk.RemoveWatches(x, 3))
			w.close()
		}
	}
}

// watchesOfOthersAreNotRemoved also shows whether they are found.
func watchesOfOthersAreNotRemoved(s *script) {
	a, v := s.connect("a"), s.connect("v")
	for _, name := range heldNames {
		for kind := int32(1); kind <= 5; kind++ {
			x := s.path(fmt.Sprintf("%s%d", name, kind))
			s.logf("-- type %d of another's %s", kind, name)
			w := s.connect("w")
			a.do(node(x))
			w.each(held(x)[name]...)
			v.each(rawzk.CheckWatches(x, kind), rawzk.RemoveWatches(x, kind), rawzk.CheckWatches(x, kind))
			trial(a, w, x)
			w.close()
		}
	}
}

// unreadableNodesConsumeWatches shows that a client that may not read a node receives no events of
// it. Whether its watch was removed shows when all clients may read again.
func unreadableNodesConsumeWatches(s *script) {
	a := s.connect("a")
	a.do(rawzk.Auth("digest", []byte("a:secret")))
	mine := []rawzk.ACL{{Perms: permAll, Scheme: "auth", ID: ""}}
	for i, r := range registrations() {
		for j, hide := range []string{"/x", "", "/x/x"} { // the node that cannot be read
			for k, when := range []string{"before", "after"} { // hidden before or after the watch is set
				dir := s.path(fmt.Sprintf("%d-%d-%d", i, j, k))
				s.logf("-- %s with %q unreadable %s", r.name, hide, when)
				w := s.connect("w")
				a.each(node(dir), node(dir+"/x"), node(dir+"/x/x"))
				a.script.hideAround(k == 0, func() {
					a.do(rawzk.SetACL(dir+hide, mine, -1))
				}, func() { w.do(r.op(dir)) })
				a.each(set(dir+"/x"), node(dir+"/x/kid"), del(dir+"/x/x"))
				w.barrier()
				a.do(rawzk.SetACL(dir+hide, rawzk.Open(), -1))
				a.do(rawzk.Create(dir+"/x/x", nil, mine, rawzk.Persistent))
				a.each(set(dir+"/x/x"), set(dir+"/x"), del(dir+"/x/x"), del(dir+"/x/kid"), del(dir+"/x"),
					rawzk.Create(dir+"/x", nil, mine, rawzk.Persistent), set(dir+"/x"), del(dir+"/x"))
				w.barrier()
				w.close()
			}
		}
	}
}

// hideAround calls both functions, hide first or second.
func (s *script) hideAround(first bool, hide, watch func()) {
	if first {
		hide()
	}
	watch()
	if !first {
		hide()
	}
}

// setWatchesOfUnreadableNodes shows which events a client that reconnects receives of nodes that it
// may not read, or whose parents it may not read.
func setWatchesOfUnreadableNodes(s *script) {
	a := s.connect("a")
	w := s.connect("w")
	for i, c := range changesWhileAway() {
		for j, hide := range []string{"", "/x"} {
			dir := s.path(fmt.Sprintf("%d-%d", i, j))
			x := dir + "/x"
			s.logf("-- %s, %q unreadable", c.name, hide)
			a.do(node(dir))
			for _, suffix := range c.before {
				a.do(node(x + suffix))
			}
			seen := a.do(rawzk.Sync("/")).zxid
			a.each(c.ops(x)...)
			a.do(rawzk.SetACL(dir+hide, world(permAll&^permRead), -1))
			w.do(watchLists(seen, 31, x))
			trial(a, w, x)
			w.do(rawzk.RemoveWatches(x, 3))
		}
	}
}
