package proxy

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDropBeforeKeepsTheRequestFromTheServer(t *testing.T) {
	p, s := setup(t)
	rule := p.On(Match{Op: OpCreate}, DropBefore())
	c := open(t, p.Addr())
	c.answered(c.send(OpExists, "/a"))
	c.send(OpCreate, "/a")
	require.Error(t, c.closed())
	require.NoError(t, rule.Wait(timeout(t)))
	require.Equal(t, []string{"/a"}, s.paths())
	require.Equal(t, 1, p.Requests()[OpCreate], "a dropped request is counted")

	c = open(t, p.Addr())
	c.answered(c.send(OpCreate, "/b"))
	require.Equal(t, 1, rule.Hits(), "once")
}

func TestDropAfterSwallowsTheReply(t *testing.T) {
	p, s := setup(t)
	p.On(Match{Op: OpCreate, Path: "/b"}, DropAfter())
	c := open(t, p.Addr())
	first := c.send(OpCreate, "/a")
	c.send(OpCreate, "/b")
	c.answered(first)
	require.Error(t, c.closed())
	require.Equal(t, []string{"/a", "/b"}, s.paths())
}

func TestDropAfterFindsThePingsReply(t *testing.T) {
	p, s := setup(t)
	p.On(Match{Op: OpPing, Skip: 1}, DropAfter())
	c := open(t, p.Addr())
	c.ask(OpPing)
	c.send(OpPing, "")
	require.Error(t, c.closed())
	require.Len(t, s.paths(), 2)
}

func TestDropAfterWaitsBehindABlackhole(t *testing.T) {
	p, s := setup(t)
	p.On(Match{}, DropAfter())
	c := open(t, p.Addr())
	p.BlackholeReplies(true)
	c.send(OpCreate, "/a")
	eventually(t, "the server has it", func() bool { return len(s.paths()) == 1 })
	c.silent()
	p.BlackholeReplies(false)
	require.Error(t, c.closed())
}

func TestDelayKeepsTheOrder(t *testing.T) {
	p, s := setup(t)
	const d = 50 * time.Millisecond
	p.On(Match{Op: OpCreate}, Delay(d))
	c := open(t, p.Addr())
	start := time.Now()
	first, second := c.send(OpCreate, "/1"), c.send(OpDelete, "/2")
	c.answered(first)
	require.GreaterOrEqual(t, time.Since(start), d)
	c.answered(second)
	require.Equal(t, []string{"/1", "/2"}, s.paths())
}

func TestHoldWaitsForRelease(t *testing.T) {
	p, s := setup(t)
	rule := p.On(Match{Op: OpCreate, Times: Always}, Hold())
	c, other := open(t, p.Addr()), open(t, p.Addr())
	first, second := c.send(OpCreate, "/1"), c.send(OpDelete, "/2")
	require.NoError(t, rule.Wait(timeout(t)))
	other.answered(other.send(OpDelete, "/other"))
	c.silent()
	require.Equal(t, []string{"/other"}, s.paths())

	rule.Release()
	rule.Release()
	c.answered(first)
	c.answered(second)
	c.answered(c.send(OpCreate, "/3"))
	require.Equal(t, 2, rule.Hits(), "also counted after the release")
}

func TestHeldRequestDoesNotPassABlackhole(t *testing.T) {
	p, s := setup(t)
	rule := p.On(Match{Op: OpCreate}, Hold())
	c := open(t, p.Addr())
	xid := c.send(OpCreate, "/1")
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
	rule := p.On(Match{Op: OpCreate}, Hold())
	c := open(t, p.Addr())
	c.send(OpCreate, "/1")
	require.NoError(t, rule.Wait(timeout(t)))
	s.drop()
	require.Error(t, c.closed())
	rule.Release()
	require.Empty(t, s.paths())
}

func TestRemoveReleases(t *testing.T) {
	p, _ := setup(t)
	rule := p.On(Match{Op: OpCreate, Times: Always}, Hold())
	c := open(t, p.Addr())
	xid := c.send(OpCreate, "/1")
	require.NoError(t, rule.Wait(timeout(t)))
	rule.Remove()
	rule.Remove()
	c.answered(xid)
	c.answered(c.send(OpCreate, "/2"))
	require.Equal(t, 1, rule.Hits(), "removed")
}

func TestResetIsARealOne(t *testing.T) {
	p, s := setup(t)
	p.On(Match{Op: OpCreate}, Reset())
	c := open(t, p.Addr())
	c.send(OpCreate, "/a")
	require.ErrorIs(t, c.closed(), syscall.ECONNRESET)
	require.Empty(t, s.paths())
}

func TestSkipAndTimes(t *testing.T) {
	p, _ := setup(t)
	rule := p.On(Match{Op: OpCreate, Skip: 1, Times: 2}, Pass())
	c := open(t, p.Addr())
	for _, hits := range []int{0, 1, 2, 2} {
		c.answered(c.send(OpCreate, "/a"))
		require.Equal(t, hits, rule.Hits())
	}
}

func TestFirstRuleDecidesAndPassDoesNot(t *testing.T) {
	p, _ := setup(t)
	probe := p.On(Match{Times: Always}, Pass())
	decides := p.On(Match{Op: OpCreate}, DropBefore())
	never := p.On(Match{Op: OpCreate}, DropAfter())
	c := open(t, p.Addr())
	c.send(OpCreate, "/a")
	require.Error(t, c.closed())
	require.Equal(t, []int{1, 1, 0}, []int{probe.Hits(), decides.Hits(), never.Hits()})
}

func TestMistakesInAMatchPanic(t *testing.T) {
	p, _ := setup(t)
	for message, match := range map[string]Match{
		"proxy: match any: negative skip -1 or times 0": {Skip: -1},
		"proxy: match any: negative skip 0 or times -2": {Times: -2},
		"proxy: match any /[: syntax error in pattern":  {Path: "/["},
	} {
		require.PanicsWithValue(t, message, func() { p.On(match, Pass()) })
	}
}

func TestParseRequest(t *testing.T) {
	tests := map[string]struct {
		frame []byte
		want  request
		ok    bool
	}{
		"create":       {requestFrame(7, OpCreate, "/a"), request{7, OpCreate, "/a"}, true},
		"multi":        {requestFrame(7, OpMulti, "/a"), request{7, OpMulti, "/a"}, true},
		"empty multi":  {requestFrame(7, OpMulti, ""), request{7, OpMulti, ""}, true},
		"close":        {requestFrame(7, OpCloseSession, ""), request{7, OpCloseSession, ""}, true},
		"ping":         {requestFrame(7, OpPing, ""), request{pingXID, OpPing, ""}, true},
		"no path":      {requestFrame(7, OpCreate, ""), request{7, OpCreate, ""}, true},
		"auth":         {requestFrame(7, OpAuth, "/a"), request{7, OpAuth, ""}, true},
		"wrong length": {append(requestFrame(7, OpCreate, ""), 0, 0, 0, 9, 'x'), request{7, OpCreate, ""}, true},
		"null path":    {append(requestFrame(7, OpCreate, ""), 255, 255, 255, 255), request{7, OpCreate, ""}, true},
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
	f.Add(requestFrame(7, OpCreate, "/a"))
	f.Add(requestFrame(7, OpMulti, "/a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if req, ok := parseRequest(data); ok && len(req.path) > len(data) {
			t.Errorf("path %q out of %d bytes", req.path, len(data))
		}
	})
}
