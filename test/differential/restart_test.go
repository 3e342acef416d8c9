package differential

import (
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// Each of these scenarios stops the server that it shares with the others.
func TestRestart(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		restartKeepsNodesAndCounters,
		restartKeepsSessionsWithoutWatches,
		restartGivesSessionsTheirTimeAnew,
	}})
}

func restartKeepsNodesAndCounters(s *script) {
	a := s.connect("a")
	x := s.path("x")
	x0, x1 := []rawzk.ACL{{Perms: 3, Scheme: "world", ID: "anyone"},
		{Perms: 31, Scheme: "digest", ID: "u:hash"}}, s.path("x/1")
	for _, op := range []rawzk.Op{
		rawzk.Create(x, []byte("1"), rawzk.Open(), rawzk.Persistent),
		rawzk.SetData(x, []byte("2"), -1),
		rawzk.Create(x1, nil, rawzk.Open(), rawzk.Persistent),
		rawzk.Create(s.path("x/s"), []byte{}, rawzk.Open(), rawzk.Sequential),
		rawzk.Delete(x1, -1),
		rawzk.CreateContainer(s.path("container"), nil, rawzk.Open(), rawzk.Container),
		rawzk.CreateTTL(s.path("ttl"), nil, rawzk.Open(), rawzk.TTL, 1<<30),
		rawzk.Multi(rawzk.Create(s.path("m"), nil, rawzk.Open(), 0), rawzk.SetData(s.path("m"), []byte("m"), 0)),
		rawzk.Create(s.path("acl"), nil, rawzk.Open(), rawzk.Persistent),
		rawzk.SetACL(s.path("acl"), x0, -1),
		rawzk.Delete(s.path("none"), -1),
	} {
		a.do(op)
	}
	a.close()
	s.stop()
	s.start()
	b := s.connect("b")
	for _, name := range []string{"", "x", "x/s0000000001", "container", "ttl", "m", "acl"} {
		b.do(rawzk.GetData(s.path(name), false))
		b.do(rawzk.GetACL(s.path(name)))
		b.do(rawzk.GetChildren2(s.path(name), false))
	}
	b.do(rawzk.Create(s.path("x/s"), nil, rawzk.Open(), rawzk.Sequential))
	b.do(rawzk.Exists(x, false))
	b.do(rawzk.Exists("/zookeeper", false))
	b.close()
}

func restartKeepsSessionsWithoutWatches(s *script) {
	a, b := s.connect("a"), s.connect("b")
	x := s.path("x")
	a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.Auth("digest", []byte("u:p")))
	a.do(rawzk.GetData(x, true))
	a.do(rawzk.AddWatch(s.path(""), 1))
	last := a.do(rawzk.Sync("/")).zxid
	s.stop()
	a.end()
	b.end()
	s.start()
	a = s.attach("a again", a)
	a.do(rawzk.WhoAmI())
	a.do(rawzk.GetEphemerals("/"))
	a.do(rawzk.SetData(x, []byte("1"), 0))
	a.do(rawzk.CheckWatches(s.path(""), 3))
	a.do(rawzk.SetWatches(last, []string{x}, []string{}, []string{}))
	thief := s.open("thief")
	hello := sameSession(b, defaultLongest)
	hello.Password = make([]byte, 16)
	thief.hello(hello)
	b = s.attach("b again", b)
	b.do(rawzk.Exists(x, true))
	a.close()
	b.barrier()
	b.close()
	c := s.connect("c")
	c.do(rawzk.Sync("/"))
	c.close()
}

func restartGivesSessionsTheirTimeAnew(s *script) {
	a := s.open("a")
	a.hello(newSession(endsAfter))
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	s.stop()
	a.end()
	time.Sleep(endsAfter * 3 / 4) // must not count
	from := time.Now()
	s.start()
	to, delay := time.Now(), s.delay()
	end := s.awaitDeletion(s.path("x"))
	s.logf("the session ended %s", lasted(endsAfter, from, to, end, delay()))
}
