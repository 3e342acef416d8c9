package differential

import (
	"fmt"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestOrdering(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		everyWriteTakesAZxid,
		sessionsTakeZxids,
		ownWriteComesAfterItsEvents,
		pipelineIsAnsweredInOrder,
		watchingReadComesBeforeItsEvent,
		authHoldsFromWhereItIsSent,
		failedAuthEndsTheConnection,
		eventComesBeforeTheValue,
		readIsAnsweredBeforeItsEvent,
		writesTellTheirOwnZxid,
		abandonedRequestsAreApplied,
		abandonedCloseIsApplied,
	}})
}

func TestFirstZxids(t *testing.T) {
	compare(t, group{bare: true, scenarios: []scenario{firstZxids}})
}

// firstZxids is the only scenario on a new server: its zxids are absolute.
func firstZxids(s *script) {
	a := s.connect("a")
	for _, path := range []string{"", "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		a.do(rawzk.Exists(path, false))
		a.do(rawzk.GetData(path, false))
		a.do(rawzk.GetChildren2(path, false))
		a.do(rawzk.GetACL(path))
		a.do(rawzk.GetAllChildrenNumber(path))
	}
	a.do(rawzk.Create("/first", nil, rawzk.Open(), rawzk.Persistent))
	a.do(rawzk.GetChildren2("/", false))
	a.do(rawzk.GetAllChildrenNumber("/"))
	a.do(rawzk.Delete("/first", -1))
	a.do(rawzk.Exists("/", false))
	a.close()
}

// everyWriteTakesAZxid shows that failed writes do too, and that reads, sync and auth do not.
func everyWriteTakesAZxid(s *script) {
	a := s.connect("a")
	x, y, none := s.path("x"), s.path("y"), s.path("none")
	for _, op := range []rawzk.Op{
		rawzk.Create(x, []byte("1"), rawzk.Open(), rawzk.Persistent),
		rawzk.GetData(x, false),
		rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent),
		rawzk.Exists(none, false),
		rawzk.SetData(x, []byte("2"), 0),
		rawzk.SetData(x, []byte("3"), 7),
		rawzk.Ping(),
		rawzk.Sync(x),
		rawzk.SetACL(x, rawzk.Open(), -1),
		rawzk.SetACL(x, rawzk.Open(), 9),
		rawzk.Auth("digest", []byte("u:p")),
		rawzk.WhoAmI(),
		rawzk.AddWatch(none, 0),
		rawzk.CheckWatches(none, 3),
		rawzk.RemoveWatches(none, 3),
		rawzk.RemoveWatches(none, 3),
		rawzk.SetWatches(0, []string{x}, []string{}, []string{}),
		rawzk.SetWatches2(0, []string{}, []string{}, []string{}, []string{none}, []string{none}),
		rawzk.Delete(x, 9),
		rawzk.Multi(),
		rawzk.Multi(rawzk.Check(x, 5), rawzk.Delete(x, -1)),
		rawzk.Multi(rawzk.SetData(x, nil, -1), rawzk.SetData(x, nil, -1)),
		rawzk.MultiRead(rawzk.GetData(x, false), rawzk.GetChildren(x, false)),
		rawzk.Delete(none, -1),
		rawzk.Create("no slash", nil, rawzk.Open(), 0),
		rawzk.Create(y, nil, rawzk.Open(), 99),
		rawzk.Create(y, nil, nil, 0),
		rawzk.CreateContainer(y, nil, rawzk.Open(), rawzk.Container),
		rawzk.CreateTTL(s.path("z"), nil, rawzk.Open(), rawzk.TTL, 1<<30),
		rawzk.CreateTTL(s.path("z2"), nil, rawzk.Open(), rawzk.TTL, -5),
		rawzk.Reconfig("", "", "", -1),
		rawzk.GetEphemerals("/"),
		rawzk.GetAllChildrenNumber(s.path("")),
		rawzk.Delete(x, -1),
		rawzk.Sync("/"),
	} {
		a.do(op)
	}
	a.close()
}

// sessionsTakeZxids shows that sessions take zxids when they begin and end, but not when a client
// reattaches or is refused.
func sessionsTakeZxids(s *script) {
	a := s.connect("a")
	b := s.connect("b")
	b.do(rawzk.Sync("/"))
	c := s.attach("c", b)
	b.end()
	c.do(rawzk.Sync("/"))
	thief := s.open("thief")
	hello := sameSession(c, defaultLongest)
	hello.Password = make([]byte, 16)
	thief.hello(hello)
	c.end()
	a.do(rawzk.Sync("/"))
	s.attach("d", c).close()
	a.do(rawzk.Sync("/"))
	a.close()
}

// ownWriteComesAfterItsEvents shows that on one connection the events of a write come before its
// reply.
func ownWriteComesAfterItsEvents(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(rawzk.Exists(x, true))
	a.do(rawzk.GetChildren(s.path(""), true))
	a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent))
	a.do(rawzk.GetData(x, true))
	a.do(rawzk.SetData(x, nil, -1))
	a.do(rawzk.GetData(x, true))
	a.do(rawzk.GetChildren(s.path(""), true))
	a.do(rawzk.Delete(x, -1))
}

func pipelineIsAnsweredInOrder(s *script) {
	a := s.connect("a")
	var ops []rawzk.Op
	for i := range 8 {
		x := s.path(fmt.Sprint("x", i))
		ops = append(ops,
			rawzk.Create(x, []byte("1"), rawzk.Open(), int32(i%4)),
			rawzk.GetData(x, i%2 == 0),
			rawzk.Ping(),
			rawzk.SetData(x, []byte("2"), int32(i%3)-1),
			rawzk.Sync(x),
			rawzk.Multi(rawzk.Check(x, -1), rawzk.Delete(x, -1)),
			rawzk.GetChildren2(s.path(""), i%3 == 0),
			rawzk.MultiRead(rawzk.GetData(x, false)),
			rawzk.AddWatch(x, int32(i%2)),
			rawzk.Delete(x, int32(i%2)-1),
			rawzk.GetEphemerals(""),
			rawzk.WhoAmI())
	}
	a.pipeline(ops...)
	a.settle()
	a.close()
}

// watchingReadComesBeforeItsEvent shows that a read that sets a watch is answered before the event
// of the next write.
func watchingReadComesBeforeItsEvent(s *script) {
	a := s.connect("a")
	x := s.path("x")
	for range 20 {
		a.pipeline(
			rawzk.Exists(x, true),
			rawzk.GetChildren(s.path(""), true),
			rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent),
			rawzk.GetData(x, true),
			rawzk.GetChildren(x, true),
			rawzk.Delete(x, -1),
		)
		a.settle()
	}
}

// authHoldsFromWhereItIsSent shows that the reply to auth may overtake others, and that its
// permissions may not.
func authHoldsFromWhereItIsSent(s *script) {
	owner := s.connect("owner")
	x := s.path("x")
	owner.do(rawzk.Auth("digest", []byte("u:p")))
	owner.do(rawzk.Create(x, []byte("1"), []rawzk.ACL{{Perms: 31, Scheme: "auth"}}, rawzk.Persistent))
	for i := range 20 {
		a := s.connect(fmt.Sprint("a", i))
		a.pipeline(
			rawzk.SetData(x, []byte("before"), -1),
			rawzk.GetData(x, false),
			rawzk.WhoAmI(),
			rawzk.Auth("digest", []byte("u:p")),
			rawzk.GetData(x, false),
			rawzk.WhoAmI(),
			rawzk.SetData(x, []byte("after"), -1),
		)
		a.settle()
		a.close()
	}
}

func failedAuthEndsTheConnection(s *script) {
	for _, op := range []rawzk.Op{
		rawzk.Auth("nonsense", []byte("u:p")),
		rawzk.Auth("world", []byte("anyone")),
		rawzk.Auth("", []byte("u:p")),
		rawzk.Auth("digest", nil),
	} {
		a := s.connect("a")
		a.send(op)
		a.end()
		a = s.attach("again", a)
		a.do(rawzk.WhoAmI())
		a.close()
	}
}

// abandonedRequestsAreApplied shows that a request is applied although its client has closed the
// connection.
func abandonedRequestsAreApplied(s *script) {
	for i := range 10 {
		a := s.connect("a")
		a.pipeline(
			rawzk.Create(s.path(fmt.Sprint("x", i)), []byte("1"), rawzk.Open(), rawzk.Persistent),
			rawzk.SetData(s.path(fmt.Sprint("x", i)), []byte("2"), 0),
		)
		a.drop()
		s.awaitData(s.path(fmt.Sprint("x", i)), "2")
	}
}

func abandonedCloseIsApplied(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	watcher := s.connect("watcher")
	watcher.do(rawzk.Exists(s.path("x"), true))
	a.send(rawzk.CloseSession())
	a.drop()
	watcher.awaitEvents(1)
	again := s.attach("again", a)
	again.end()
}
