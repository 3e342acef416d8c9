package differential

import (
	"fmt"
	"math"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestFrames(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		firstFrameOfOddLength,
		laterFrameOfOddLength,
		headerCutShort,
		unknownOpcodeEndsTheConnection,
		createSessionWithoutBody,
		checkAlone,
		reconfigAlone,
		saslWithoutConfiguration,
		bytesBehindTheBodyAreIgnored,
		bodyCutShort,
		oddLengthsInsideTheBody,
		nullPath,
		anyByteIsTrue,
		textThatIsNoUTF8,
	}})
}

const maxFrame = 0xFFFFF // the server's default limit

func firstFrameOfOddLength(s *script) {
	for _, n := range []int32{0, -1, math.MinInt32, maxFrame + 1, math.MaxInt32} {
		c := s.open(fmt.Sprint("length ", n))
		c.sendBytes(rawzk.Int(n))
		c.awaitConnected()
	}
	c := s.open("zeros")
	c.sendFrame(make([]byte, maxFrame))
	c.awaitConnected()
	c.close()
}

func laterFrameOfOddLength(s *script) {
	for _, n := range []int32{0, -1, math.MinInt32, maxFrame + 1, math.MaxInt32} {
		c := s.connect(fmt.Sprint("length ", n))
		c.sendBytes(rawzk.Int(n))
		c.end()
		s.attach("again", c).close()
	}
}

func headerCutShort(s *script) {
	ping := rawzk.Request(1, rawzk.Ping())
	for n := 1; n < len(ping); n++ {
		c := s.connect(fmt.Sprint("first bytes ", n))
		c.sendFrame(ping[:n])
		c.end()
	}
}

func unknownOpcodeEndsTheConnection(s *script) {
	for _, code := range []int32{0, 10, 23, 50, 99, 108, 999, -1, -2, -9, -12, -100, math.MaxInt32, math.MinInt32} {
		for _, body := range [][]byte{nil, rawzk.Str(s.path("x"))} {
			c := s.connect("c")
			c.send(rawzk.Op{Code: code, Body: body})
			c.end()
			c = s.attach("again", c)
			c.do(rawzk.Sync("/"))
			c.close()
		}
	}
}

// createSessionWithoutBody has no body, because with one the real server answers as to a new
// client.
func createSessionWithoutBody(s *script) {
	c := s.connect("c")
	c.do(rawzk.Op{Code: rawzk.OpCreateSession})
	c.do(rawzk.Sync("/"))
	c.close()
}

// checkAlone sends another request behind it, so that a missing answer shows at once.
func checkAlone(s *script) {
	c := s.connect("c")
	c.pipeline(rawzk.Check(s.path(""), -1), rawzk.Sync("/"))
	c.settle()
	if c.ending == nil {
		c.pipeline(rawzk.Check(s.path("none"), -1), rawzk.Sync("/"))
		c.settle()
	}
}

func reconfigAlone(s *script) {
	c := s.connect("c")
	c.do(rawzk.Reconfig("", "", "", -1))
	c.do(rawzk.Reconfig("server.1=localhost:1:2;3", "2", "", 5))
	c.do(rawzk.Sync("/"))
}

func saslWithoutConfiguration(s *script) {
	for _, token := range [][]byte{nil, {}, []byte("token")} {
		c := s.connect("c")
		c = s.odd(c, rawzk.Sasl(token))
		c.do(rawzk.WhoAmI())
		c.close()
	}
}

// requests returns one request of each type, all valid.
func (s *script) requests() []rawzk.Op {
	x := s.path("x")
	return []rawzk.Op{
		rawzk.Create(x, []byte("1"), rawzk.Open(), rawzk.Persistent),
		rawzk.Create2(x, []byte("1"), rawzk.Open(), rawzk.Persistent),
		rawzk.CreateContainer(x, []byte("1"), rawzk.Open(), rawzk.Container),
		rawzk.CreateTTL(x, []byte("1"), rawzk.Open(), rawzk.TTL, 100000),
		rawzk.SetData(x, []byte("2"), -1),
		rawzk.SetACL(x, rawzk.Open(), -1),
		rawzk.Exists(x, false),
		rawzk.GetData(x, false),
		rawzk.GetACL(x),
		rawzk.GetChildren(x, false),
		rawzk.GetChildren2(x, false),
		rawzk.GetAllChildrenNumber(x),
		rawzk.GetEphemerals(x),
		rawzk.Sync(x),
		rawzk.AddWatch(x, 0),
		rawzk.CheckWatches(x, 3),
		rawzk.RemoveWatches(x, 3),
		rawzk.SetWatches(0, []string{}, []string{x}, []string{}),
		rawzk.SetWatches2(0, []string{}, []string{x}, []string{}, []string{}, []string{}),
		rawzk.Multi(rawzk.Check(x, -1), rawzk.SetData(x, []byte("3"), -1)),
		rawzk.MultiRead(rawzk.GetData(x, false), rawzk.GetChildren(x, false)),
		rawzk.WhoAmI(),
		rawzk.Ping(),
		rawzk.Delete(x, -1),
	}
}

// odd sends a request that may end the connection, and returns a client with a connection.
func (s *script) odd(c *client, op rawzk.Op) *client {
	c.send(op)
	c.send(rawzk.Sync("after it"))
	c.settle()
	if c.ending != nil {
		return s.attach("again", c)
	}
	return c
}

func bytesBehindTheBodyAreIgnored(s *script) {
	c := s.connect("c")
	for _, op := range s.requests() {
		op.Body = rawzk.Join(op.Body, []byte("more"))
		c = s.odd(c, op)
	}
	c.close()
}

// bodyCutShort cuts the body of each request at several offsets.
func bodyCutShort(s *script) {
	c := s.connect("c")
	for _, op := range append(s.requests(), rawzk.Auth("digest", []byte("u:p")), rawzk.Sasl([]byte("t"))) {
		whole := len(op.Body)
		for _, n := range []int{0, 2, 4, whole / 2, whole - 5, whole - 1} {
			if n < 0 || n >= whole {
				continue
			}
			c = s.odd(c, rawzk.Op{Code: op.Code, Body: op.Body[:n], Text: fmt.Sprintf("first %d bytes of %v", n, op)})
		}
	}
	c.close()
}

func oddLengthsInsideTheBody(s *script) {
	c := s.connect("c")
	for _, op := range s.requests() {
		for _, n := range []int32{-2, math.MinInt32, 3 << 20, math.MaxInt32} {
			if len(op.Body) < 8 {
				continue
			}
			body := rawzk.Join(rawzk.Int(n), op.Body[4:])
			c = s.odd(c, rawzk.Op{Code: op.Code, Body: body, Text: fmt.Sprintf("length %d in %v", n, op)})
		}
	}
	c.close()
}

func nullPath(s *script) {
	c := s.connect("c")
	rest := rawzk.Join(rawzk.Buf(nil), rawzk.ACLs(rawzk.Open()), rawzk.Int(0), rawzk.Long(1))
	for code := int32(1); code <= 21; code++ {
		if code == rawzk.OpMulti || code == rawzk.OpCheck || code == 10 || code == rawzk.OpReconfig {
			continue
		}
		c = s.odd(c, rawzk.Op{Code: code, Body: rawzk.Join(rawzk.Null(), rest)})
	}
	// addWatch is left out: without a path it makes the real server leave the connection open
	// forever.
	for _, code := range []int32{rawzk.OpGetEphemerals, rawzk.OpGetAllChildrenNumber} {
		c = s.odd(c, rawzk.Op{Code: code, Body: rawzk.Null()})
	}
	c.close()
}

func anyByteIsTrue(s *script) {
	c := s.connect("c")
	x := s.path("x")
	c.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent))
	for _, b := range []byte{0, 1, 2, 0x80, 0xff} {
		c.do(rawzk.Op{Code: rawzk.OpGetData, Body: rawzk.Join(rawzk.Str(x), []byte{b}),
			Text: fmt.Sprint("getData watch byte ", b)})
		c.do(rawzk.SetData(x, nil, -1))
	}
	c.close()
}

func textThatIsNoUTF8(s *script) {
	c := s.connect("c")
	for _, name := range []string{"\xff", "a\xc3", "\xed\xa0\x80", "\xf0\x9f\x98\x80", "\xc0\x80", "ä", "\u00a0",
		"\ufeff", "\uffef"} {
		c.do(rawzk.Create(s.path(name), nil, rawzk.Open(), rawzk.Persistent))
		c.do(rawzk.Exists(s.path(name), false))
		c.do(rawzk.Sync(name))
	}
	c.do(rawzk.GetChildren(s.path(""), false))
	c.close()
}
