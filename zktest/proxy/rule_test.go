package proxy

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestDropBeforeKeepsTheRequestFromTheServer(t *testing.T) {
	p, s := setup(t)
	rule := p.On(fault.Match{Op: fault.OpCreate}, fault.DropBefore())
	c := open(t, p.Addr())
	c.answered(c.send(fault.OpExists, "/a"))
	c.send(fault.OpCreate, "/a")
	require.Error(t, c.closed())
	require.NoError(t, rule.Wait(timeout(t)))
	require.Equal(t, []string{"/a"}, s.paths())
	require.Equal(t, 1, p.Requests()[fault.OpCreate], "a dropped request is counted")

	c = open(t, p.Addr())
	c.answered(c.send(fault.OpCreate, "/b"))
	require.Equal(t, 1, rule.Hits(), "once")
}

func TestDropAfterSwallowsTheReply(t *testing.T) {
	p, s := setup(t)
	p.On(fault.Match{Op: fault.OpCreate, Path: "/b"}, fault.DropAfter())
	c := open(t, p.Addr())
	first := c.send(fault.OpCreate, "/a")
	c.send(fault.OpCreate, "/b")
	c.answered(first)
	require.Error(t, c.closed())
	require.Equal(t, []string{"/a", "/b"}, s.paths())
}

func TestDropAfterFindsThePingsReply(t *testing.T) {
	p, s := setup(t)
	p.On(fault.Match{Op: fault.OpPing, Skip: 1}, fault.DropAfter())
	c := open(t, p.Addr())
	c.ask(fault.OpPing)
	c.send(fault.OpPing, "")
	require.Error(t, c.closed())
	require.Len(t, s.paths(), 2)
}

func TestDropAfterWaitsBehindABlackhole(t *testing.T) {
	p, s := setup(t)
	p.On(fault.Match{}, fault.DropAfter())
	c := open(t, p.Addr())
	p.BlackholeReplies(true)
	c.send(fault.OpCreate, "/a")
	eventually(t, "the server has it", func() bool { return len(s.paths()) == 1 })
	c.silent()
	p.BlackholeReplies(false)
	require.Error(t, c.closed())
}

func TestDelayKeepsTheOrder(t *testing.T) {
	p, s := setup(t)
	const d = 50 * time.Millisecond
	p.On(fault.Match{Op: fault.OpCreate}, fault.Delay(d))
	c := open(t, p.Addr())
	start := time.Now()
	first, second := c.send(fault.OpCreate, "/1"), c.send(fault.OpDelete, "/2")
	c.answered(first)
	require.GreaterOrEqual(t, time.Since(start), d)
	c.answered(second)
	require.Equal(t, []string{"/1", "/2"}, s.paths())
}

func TestHoldWaitsForRelease(t *testing.T) {
	p, s := setup(t)
	rule := p.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Hold())
	c, other := open(t, p.Addr()), open(t, p.Addr())
	first, second := c.send(fault.OpCreate, "/1"), c.send(fault.OpDelete, "/2")
	require.NoError(t, rule.Wait(timeout(t)))
	other.answered(other.send(fault.OpDelete, "/other"))
	c.silent()
	require.Equal(t, []string{"/other"}, s.paths())

	rule.Release()
	rule.Release()
	c.answered(first)
	c.answered(second)
	c.answered(c.send(fault.OpCreate, "/3"))
	require.Equal(t, 2, rule.Hits(), "also counted after the release")
}

func TestHeldRequestDoesNotPassABlackhole(t *testing.T) {
	p, s := setup(t)
	rule := p.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
	c := open(t, p.Addr())
	xid := c.send(fault.OpCreate, "/1")
	require.NoError(t, rule.Wait(timeout(t)))
	p.Blackhole(true)
	rule.Release()
	c.silent()
	require.Empty(t, s.paths())
	p.Blackhole(false)
	c.answered(xid)
}

func TestServersEndFreesAHeldConnection(t *testing.T) {
	p, s := setup(t)
	rule := p.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
	c := open(t, p.Addr())
	c.send(fault.OpCreate, "/1")
	require.NoError(t, rule.Wait(timeout(t)))
	s.drop()
	require.Error(t, c.closed())
	rule.Release()
	require.Empty(t, s.paths())
}

func TestRemoveReleases(t *testing.T) {
	p, _ := setup(t)
	rule := p.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Hold())
	c := open(t, p.Addr())
	xid := c.send(fault.OpCreate, "/1")
	require.NoError(t, rule.Wait(timeout(t)))
	rule.Remove()
	rule.Remove()
	c.answered(xid)
	c.answered(c.send(fault.OpCreate, "/2"))
	require.Equal(t, 1, rule.Hits(), "removed")
}

func TestResetIsARealOne(t *testing.T) {
	p, s := setup(t)
	p.On(fault.Match{Op: fault.OpCreate}, fault.Reset())
	c := open(t, p.Addr())
	c.send(fault.OpCreate, "/a")
	require.ErrorIs(t, c.closed(), syscall.ECONNRESET)
	require.Empty(t, s.paths())
}

func TestSkipAndTimes(t *testing.T) {
	p, _ := setup(t)
	rule := p.On(fault.Match{Op: fault.OpCreate, Skip: 1, Times: 2}, fault.Pass())
	c := open(t, p.Addr())
	for _, hits := range []int{0, 1, 2, 2} {
		c.answered(c.send(fault.OpCreate, "/a"))
		require.Equal(t, hits, rule.Hits())
	}
}

func TestFirstRuleDecidesAndPassDoesNot(t *testing.T) {
	p, _ := setup(t)
	probe := p.On(fault.Match{Times: fault.Always}, fault.Pass())
	decides := p.On(fault.Match{Op: fault.OpCreate}, fault.DropBefore())
	never := p.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
	c := open(t, p.Addr())
	c.send(fault.OpCreate, "/a")
	require.Error(t, c.closed())
	require.Equal(t, []int{1, 1, 0}, []int{probe.Hits(), decides.Hits(), never.Hits()})
}

func TestRulesThatAreNotForProxiesPanic(t *testing.T) {
	p, _ := setup(t)
	for name, on := range map[string]func(){
		"can never fire": func() { p.On(fault.Match{Op: fault.OpCheck}, fault.Pass()) },
		"client":         func() { p.On(fault.Match{Client: "a"}, fault.Pass()) },
		"handshake":      func() { p.On(fault.Match{Op: fault.OpConnect}, fault.Pass()) },
		"fail":           func() { p.On(fault.Match{}, fault.Fail(zktest.NoAuth)) },
		"truncate":       func() { p.On(fault.Match{}, fault.Truncate(1)) },
	} {
		require.Panics(t, on, name)
	}
	c := open(t, p.Addr())
	c.answered(c.send(fault.OpCreate, "/a"))
}

func TestParseRequest(t *testing.T) {
	create := slices.Clip(requestFrame(7, fault.OpCreate, ""))
	tests := map[string]struct {
		frame []byte
		want  request
		ok    bool
	}{
		"create":       {requestFrame(7, fault.OpCreate, "/a"), request{7, fault.OpCreate, "/a"}, true},
		"multi":        {requestFrame(7, fault.OpMulti, "/a"), request{7, fault.OpMulti, "/a"}, true},
		"empty multi":  {requestFrame(7, fault.OpMulti, ""), request{7, fault.OpMulti, ""}, true},
		"close":        {requestFrame(7, fault.OpCloseSession, ""), request{7, fault.OpCloseSession, ""}, true},
		"ping":         {requestFrame(7, fault.OpPing, ""), request{pingXID, fault.OpPing, ""}, true},
		"no path":      {create, request{7, fault.OpCreate, ""}, true},
		"auth":         {requestFrame(7, fault.OpAuth, "/a"), request{7, fault.OpAuth, ""}, true},
		"wrong length": {append(create, 0, 0, 0, 9, 'x'), request{7, fault.OpCreate, ""}, true},
		"null path":    {append(create, 255, 255, 255, 255), request{7, fault.OpCreate, ""}, true},
		"short":        {frame("1234567"), request{}, false},
		"nothing":      {frame(""), request{}, false},
	}
	for name, test := range tests {
		got, ok := parseRequest(test.frame)
		require.Equal(t, test.want, got, name)
		require.Equal(t, test.ok, ok, name)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add(requestFrame(7, fault.OpCreate, "/a"))
	f.Add(requestFrame(7, fault.OpMulti, "/a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if req, ok := parseRequest(data); ok && len(req.path) > len(data) {
			t.Errorf("path %q out of %d bytes", req.path, len(data))
		}
	})
}
