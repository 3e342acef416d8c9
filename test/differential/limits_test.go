package differential

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestLimits(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		largestFrame,
		repliesMayBeLarger,
		manyChildren,
		quotaCounts,
		quotaIsNotEnforced,
	}})
}

func TestSmallFrames(t *testing.T) {
	compare(t, group{
		config:    config{properties: map[string]string{"jute.maxbuffer": "4096"}},
		scenarios: []scenario{smallFrames},
	})
}

func TestEnforcedQuota(t *testing.T) {
	compare(t, group{
		config:    config{properties: map[string]string{"enforceQuota": "true"}},
		scenarios: []scenario{quotaIsEnforced},
	})
}

func TestConnectionLimit(t *testing.T) {
	compare(t, group{
		config: config{properties: map[string]string{
			"maxClientCnxns": "3", "zookeeper.nio.sessionlessCnxnTimeout": fmt.Sprint(time.Hour.Milliseconds()),
		}},
		scenarios: []scenario{surplusConnectionsAreReset},
	})
}

// setOf returns a setData whose frame is n bytes long.
func setOf(path string, n int) rawzk.Op {
	op := rawzk.SetData(path, []byte{}, -1)
	return rawzk.SetData(path, make([]byte, n-len(rawzk.Request(0, op))), -1)
}

func largestFrame(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Ephemeral))
	for _, n := range []int{maxFrame - 1, maxFrame} {
		a.do(setOf(x, n))
		a.do(rawzk.GetData(x, false))
	}
	a.send(setOf(x, maxFrame+1))
	a.end()
	a = s.attach("again", a)
	a.do(rawzk.Exists(x, false))
	a.close()
}

func smallFrames(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent))
	a.do(setOf(x, 4096))
	a.do(rawzk.GetData(x, false))
	a.send(setOf(x, 4097))
	a.end()
	a = s.attach("again", a)
	for _, n := range []int32{4096, 4097, 5120, 5121, 8192, 8193, 1 << 20} {
		op := rawzk.Op{Code: rawzk.OpGetData, Body: rawzk.Int(n),
			Text: fmt.Sprint("getData with a path said to have bytes: ", n)}
		a = s.odd(a, op)
	}
	a.do(rawzk.Delete(x, -1))
}

// repliesMayBeLarger shows that a reply may be larger than any request.
func repliesMayBeLarger(s *script) {
	a := s.connect("a")
	var reads []rawzk.Op
	for i := range 3 {
		x := s.path(fmt.Sprint("x", i))
		a.do(rawzk.Create(x, []byte(strings.Repeat("x", 600_000+i)), rawzk.Open(), rawzk.Ephemeral))
		reads = append(reads, rawzk.GetData(x, false))
	}
	a.do(rawzk.MultiRead(reads...))
	a.pipeline(reads...)
	a.settle()
	a.close()
}

func manyChildren(s *script) {
	a := s.connect("a")
	a.hidden = true
	const children, nameLength = 2000, 600
	ops := make([]rawzk.Op, children)
	for i := range ops {
		ops[i] = rawzk.Create(s.path(strings.Repeat("n", nameLength-10)), nil, rawzk.Open(), rawzk.EphemeralSequential)
	}
	a.pipeline(ops...)
	a.settle()
	names := rawzk.Decode(a.do(rawzk.GetChildren(s.path(""), false)).body).Strs()
	s.logf("%d children, %d bytes: %s", len(names), len(strings.Join(names, "")), rawzk.Quote([]byte(sorted(names))))
	a.hidden = false
	a.do(rawzk.Exists(s.path(""), false))
	a.close()
}

// setQuota creates the nodes that limit path. The format of the limits differs from that of the
// counts.
func (c *client) setQuota(path, limits string) {
	at := "/zookeeper/quota"
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		at += "/" + name
		c.do(rawzk.Create(at, nil, rawzk.Open(), rawzk.Persistent))
	}
	c.do(rawzk.Create(at+"/zookeeper_limits", []byte(limits), rawzk.Open(), rawzk.Persistent))
	c.do(rawzk.Create(at+"/zookeeper_stats", []byte("count=0,bytes=0"), rawzk.Open(), rawzk.Persistent))
}

func quotaStats(path string) string { return "/zookeeper/quota" + path + "/zookeeper_stats" }

func quotaCounts(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(rawzk.Create(x, []byte("12345"), rawzk.Open(), rawzk.Persistent))
	a.do(rawzk.Create(x+"/a", []byte("123"), rawzk.Open(), rawzk.Persistent))
	a.setQuota(x, "count=3,bytes=20")
	a.do(rawzk.GetData(quotaStats(x), true))
	for _, op := range []rawzk.Op{
		rawzk.SetData(quotaStats(x), []byte("count=2,bytes=8"), -1),
		rawzk.Create(x+"/b", []byte("1234567"), rawzk.Open(), rawzk.Ephemeral),
		rawzk.Create(x+"/b/c", nil, rawzk.Open(), rawzk.Persistent),
		rawzk.Create(x+"/a/d", nil, rawzk.Open(), rawzk.Persistent),
		rawzk.SetData(x, nil, -1),
		rawzk.SetData(x+"/a", []byte("many more bytes than allowed"), -1),
		rawzk.Create(s.path("xx"), []byte("not below x"), rawzk.Open(), rawzk.Persistent),
		rawzk.Multi(rawzk.Create(x+"/m", []byte("m"), rawzk.Open(), 0), rawzk.Delete(x+"/a/d", -1)),
		rawzk.Delete(x+"/m", -1),
		rawzk.CreateContainer(x+"/c", []byte("c"), rawzk.Open(), rawzk.Container),
	} {
		a.do(op)
		a.do(rawzk.GetData(quotaStats(x), false))
	}
	a.close()
	b := s.connect("b")
	b.do(rawzk.GetData(quotaStats(x), false))
	b.do(rawzk.GetChildren2("/zookeeper/quota"+x, false))
	b.close()
}

func quotaIsNotEnforced(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent))
	a.setQuota(x, "count=1,bytes=1,=countHardLimit=1;byteHardLimit=1;")
	a.do(rawzk.Create(x+"/a", []byte("123"), rawzk.Open(), rawzk.Persistent))
	a.do(rawzk.SetData(x, []byte("123"), -1))
	a.close()
}

func quotaIsEnforced(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(rawzk.Create(x, []byte("12"), rawzk.Open(), rawzk.Persistent))
	a.setQuota(x, "count=-1,bytes=-1,countHardLimit=3,byteHardLimit=10")
	a.do(rawzk.GetData(quotaStats(x), false))
	for _, op := range []rawzk.Op{
		rawzk.Create(x+"/a", []byte("123"), rawzk.Open(), rawzk.Persistent),
		rawzk.Create(x+"/b", []byte("123456"), rawzk.Open(), rawzk.Persistent),
		rawzk.Create(x+"/b", []byte("12345"), rawzk.Open(), rawzk.Persistent),
		rawzk.Create(x+"/c", nil, rawzk.Open(), rawzk.Ephemeral),
		rawzk.SetData(x, []byte("1"), -1),
		rawzk.SetData(x, []byte("123"), -1),
		rawzk.SetData(x, []byte("123"), 99),
		rawzk.Multi(rawzk.Delete(x+"/a", -1), rawzk.Create(x+"/c", nil, rawzk.Open(), 0)),
		rawzk.Multi(rawzk.Create(x+"/d", nil, rawzk.Open(), 0)),
		rawzk.Delete(x+"/b", -1),
		rawzk.Create(x+"/d", nil, rawzk.Open(), rawzk.Persistent),
	} {
		a.do(op)
		a.do(rawzk.GetData(quotaStats(x), false))
	}
	a.close()
}

// surplusConnectionsAreReset allows connecting to fail, because the reset may come that early.
func surplusConnectionsAreReset(s *script) {
	a, b, c := s.connect("a"), s.connect("b"), s.connect("c")
	s.surplus()
	s.surplus()
	a.do(rawzk.Ping())
	a.close()
	d := s.connect("d")
	s.surplus()
	for _, open := range []*client{b, c, d} {
		open.do(rawzk.Ping())
		open.close()
	}
}

// surplus opens a connection above the limit. A silent connection below the limit is not closed.
func (s *script) surplus() {
	conn, err := s.target.dial()
	if err == nil {
		defer conn.Close()
		_, err = conn.ReadFrame(patience)
	}
	s.logf("surplus: turned away %t", err != nil && !errors.Is(err, rawzk.ErrTimeout))
}
