package differential

import (
	"fmt"
	"math"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestConnection(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		timeoutIsClamped,
		readOnlyByteIsAnsweredIfSent,
		connectRequestIsReadLoosely,
		connectRequestCutShort,
		clientAheadOfTheServerIsTurnedAway,
		clientNotAheadIsWelcome,
		unknownSessionGetsZeros,
		wrongPasswordEndsTheInnocentConnection,
		secondAttachTakesOver,
		attachChangesTheTimeout,
		attachAfterClose,
		attachToOwnSessionTwice,
		connectPipelinesRequests,
		closePipelinedBehindConnect,
		secondConnectIsARequest,
		halfCloseEndsTheConnection,
		requestsAfterCloseAreIgnored,
		pingAnswersWithItsOwnXid,
		xidsAreEchoed,
		credentialsEndWithTheConnection,
		sessionIdsCountUp,
	}})
}

func timeoutIsClamped(s *script) {
	for _, ms := range []int32{math.MinInt32, -5, 0, 1, 999, 1000, 1001, 12345, 59999, 60000, 60001, math.MaxInt32} {
		c := s.open(fmt.Sprint("ask ", ms))
		hello := newSession(0)
		hello.Timeout = ms
		c.hello(hello)
		c.close()
	}
}

func readOnlyByteIsAnsweredIfSent(s *script) {
	for _, b := range [][]byte{nil, {0}, {1}, {7}, {0, 9, 9}, {1, 0, 0, 0}} {
		c := s.open(fmt.Sprintf("byte %x", b))
		hello := newSession(defaultLongest)
		hello.ReadOnly = b
		c.hello(hello)
		c.do(rawzk.Ping())
		c.close()
	}
}

func connectRequestIsReadLoosely(s *script) {
	for _, v := range []int32{-1, 1, 77} {
		c := s.open(fmt.Sprint("protocol ", v))
		hello := newSession(defaultLongest)
		hello.Protocol = v
		c.hello(hello)
		c.close()
	}
	for _, password := range [][]byte{nil, {}, {1, 2, 3}, make([]byte, 40)} {
		c := s.open("password " + rawzk.Quote(password))
		hello := newSession(defaultLongest)
		hello.Password = password
		c.hello(hello)
		c.close()
	}
}

func connectRequestCutShort(s *script) {
	whole := newSession(defaultLongest).Encode()
	for _, n := range []int{1, 4, 8, 20, 27, 28, 40, 43} {
		c := s.open(fmt.Sprint("first bytes ", n))
		c.sendFrame(whole[:n])
		c.awaitConnected()
		if c.ending == nil {
			c.close()
		}
	}
}

func clientAheadOfTheServerIsTurnedAway(s *script) {
	a := s.connect("a")
	now := a.do(rawzk.Sync("/")).zxid
	for _, ahead := range []int64{1, 1000, math.MaxInt64 - now} {
		c := s.open(fmt.Sprint("ahead by ", ahead > 1, ahead > 1000))
		hello := newSession(defaultLongest)
		hello.LastZxid = now + ahead
		c.hello(hello)
		old := s.open("same session")
		hello = sameSession(a, defaultLongest)
		hello.LastZxid = now + ahead
		old.hello(hello)
		a.do(rawzk.Ping()) // a still has its session
	}
	a.close()
}

func clientNotAheadIsWelcome(s *script) {
	a := s.connect("a")
	now := a.do(rawzk.Sync("/")).zxid
	for _, zxid := range []int64{now, now - 1, -1, math.MinInt64} {
		c := s.open("c")
		hello := newSession(defaultLongest)
		hello.LastZxid = zxid
		c.hello(hello)
		c.do(rawzk.Sync("/"))
		c.close()
	}
}

func unknownSessionGetsZeros(s *script) {
	for _, id := range []int64{1, -1, 0x0100000000000000, 0x7fffffffffffffff} {
		for _, b := range [][]byte{nil, {0}} {
			c := s.open(fmt.Sprintf("id %x byte %x", id, b))
			hello := newSession(defaultLongest)
			hello.Session, hello.ReadOnly = id, b
			c.hello(hello)
			c.end()
		}
	}
}

func wrongPasswordEndsTheInnocentConnection(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	for _, password := range [][]byte{make([]byte, 16), nil, {}, a.session.password[:15]} {
		thief := s.open("thief")
		hello := sameSession(a, defaultLongest)
		hello.Password = password
		thief.hello(hello)
		thief.end()
		a.end()
		a = s.attach("a again", a)
		a.do(rawzk.Exists(s.path("x"), false))
	}
	a.close()
}

func secondAttachTakesOver(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.GetData(s.path("x"), true))
	b := s.attach("b", a)
	a.end()
	b.do(rawzk.GetData(s.path("x"), false))
	b.do(rawzk.SetData(s.path("x"), []byte("1"), 0)) // there is no watch any more
	c := s.attach("c", b)
	b.end()
	c.do(rawzk.GetEphemerals("/"))
	c.close()
	d := s.connect("d")
	d.do(rawzk.Exists(s.path("x"), false))
}

func attachChangesTheTimeout(s *script) {
	a := s.connect("a")
	for _, ms := range []int32{1, 5000, 59000, 99999} {
		b := s.open("b")
		hello := sameSession(a, 0)
		hello.Timeout = ms
		b.hello(hello)
		a.end()
		a = b
	}
	a.close()
}

func attachAfterClose(s *script) {
	a := s.connect("a")
	id := *a.session
	a.close()
	b := s.open("b")
	hello := newSession(defaultLongest)
	hello.Session, hello.Password = id.id, id.password
	b.hello(hello)
	b.end()
}

// attachToOwnSessionTwice attaches two connections in turn, with nothing read in between.
func attachToOwnSessionTwice(s *script) {
	a := s.connect("a")
	a.drop()
	b := s.attach("b", a)
	c := s.attach("c", a)
	b.end()
	c.do(rawzk.WhoAmI())
	c.close()
}

func secondConnectIsARequest(s *script) {
	a := s.connect("a")
	a.expect(0, rawzk.Op{Text: "a connect request"})
	a.sendFrame(newSession(defaultLongest).Encode())
	a.end()
	s.attach("b", a).close()
}

func pingAnswersWithItsOwnXid(s *script) {
	a := s.connect("a")
	for _, xid := range []int32{-2, 0, 5, -1, -4, math.MaxInt32, math.MinInt32} {
		a.sendAs(xid, rawzk.Ping())
		a.settle()
	}
	a.close()
}

func xidsAreEchoed(s *script) {
	a := s.connect("a")
	for _, xid := range []int32{0, 0, 7, 3, -3, -5, -8, -100, math.MaxInt32, math.MinInt32, -2, -4, -1} {
		a.sendAs(xid, rawzk.Exists(s.path(""), false))
		a.settle()
		a.sendAs(xid, rawzk.Auth("digest", []byte("u:p")))
		a.settle()
		a.sendAs(xid, rawzk.SetWatches(0, []string{}, []string{}, []string{}))
		a.settle()
	}
	a.close()
}

func credentialsEndWithTheConnection(s *script) {
	a := s.connect("a")
	a.do(rawzk.Auth("digest", []byte("u:p")))
	a.do(rawzk.WhoAmI())
	b := s.attach("b", a)
	b.do(rawzk.WhoAmI())
	b.close()
}

func sessionIdsCountUp(s *script) {
	var last int64
	for i := range 4 {
		c := s.connect(fmt.Sprint("c", i))
		id := c.session.id
		s.logf("server %d, %t", id>>56, i == 0 || id == last+1)
		last = id
		c.close()
	}
}
