package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/fault"
)

func setup(t *testing.T) (*Proxy, *server) {
	s := startServer(t)
	return Start(t, s.addr()), s
}

func TestCountsRequestsByType(t *testing.T) {
	p, s := setup(t)
	c := open(t, p.Addr())
	for _, op := range []fault.Op{fault.OpCreate, fault.OpCreate, fault.OpPing, fault.OpGetData, 77} {
		c.ask(op)
	}
	counts := p.Requests()
	require.Equal(t, fault.Counts{fault.OpCreate: 2, fault.OpPing: 1, fault.OpGetData: 1, 77: 1}, counts)
	require.Equal(t, 4, counts.Total(), "without the ping")
	require.Zero(t, counts[fault.OpDelete])
	require.Equal(t, "map[create:2 getData:1 ping:1 op(77):1]", fmt.Sprint(counts))

	counts[fault.OpCreate] = 99
	require.Equal(t, 2, p.Requests()[fault.OpCreate], "the map is a copy")
	p.ResetCounts()
	require.Empty(t, p.Requests())
	require.Equal(t, 1, s.opened())
}

// ask sends a request and waits for its answer. The answers to pings have their own xid.
func (c *client) ask(op fault.Op) {
	c.t.Helper()
	xid := c.send(op, "/a")
	if op == fault.OpPing {
		xid = pingXID
	}
	c.answered(xid)
}

func TestFourLetterWordsPass(t *testing.T) {
	p, _ := setup(t)
	conn, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "ruok")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "im", string(answer))
	require.Empty(t, p.Requests())
}

func TestPlainBytesPassBothWays(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = echo.Close() }()
	p := Start(t, echo.Addr().String())
	conn, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	text := strings.Repeat("not a frame ", 10_000)
	go func() { _, _ = io.WriteString(conn, text) }()
	peer, err := echo.Accept()
	require.NoError(t, err)
	got := make([]byte, len(text))
	_, err = io.ReadFull(peer, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))

	_, err = io.WriteString(peer, "an answer")
	require.NoError(t, err)
	require.NoError(t, peer.Close())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "an answer", string(answer))
	require.NoError(t, conn.Close())
}

func TestLargeFramesPass(t *testing.T) {
	p, s := setup(t)
	c := open(t, p.Addr())
	path := "/" + strings.Repeat("x", 3<<20)
	c.answered(c.send(fault.OpCreate, path))
	require.Equal(t, []string{path}, s.paths())
}

func TestServersEndReachesTheClient(t *testing.T) {
	p, s := setup(t)
	c := open(t, p.Addr())
	s.drop()
	require.ErrorIs(t, c.closed(), io.EOF)
	eventually(t, "the connection is forgotten", func() bool { return p.Connections() == 0 })
}

func TestClientsEndReachesTheServer(t *testing.T) {
	p, s := setup(t)
	c := open(t, p.Addr())
	require.Equal(t, 1, p.Connections())
	require.NoError(t, c.conn.Close())
	eventually(t, "the server sees it", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns) == 0
	})
}

func TestDeadTargetEndsTheConnection(t *testing.T) {
	s := startServer(t)
	require.NoError(t, s.listener.Close())
	p := Start(t, s.addr())
	require.Error(t, dial(t, p.Addr()).closed())
}

func TestBlackholeKeepsEverythingBack(t *testing.T) {
	p, s := setup(t)
	c := open(t, p.Addr())
	p.Blackhole(true)
	first, second := c.send(fault.OpCreate, "/1"), c.send(fault.OpCreate, "/2")
	late := dial(t, p.Addr())
	late.write(frame("connect"))
	c.silent()
	late.silent()
	require.Empty(t, s.paths())
	require.Equal(t, 1, s.opened())

	p.Blackhole(false)
	c.answered(first)
	c.answered(second)
	require.Equal(t, []string{"/1", "/2"}, s.paths())
	require.Equal(t, "opened", string(late.read()))
}

func TestBlackholeHidesTheServersEnd(t *testing.T) {
	p, s := setup(t)
	c := open(t, p.Addr())
	p.Blackhole(true)
	s.drop()
	c.silent()
	p.Blackhole(false)
	require.ErrorIs(t, c.closed(), io.EOF)
}

func TestBlackholeDropsClientsThatGaveUp(t *testing.T) {
	p, s := setup(t)
	p.Blackhole(true)
	c := dial(t, p.Addr())
	c.write(frame("connect"))
	eventually(t, "the proxy has it", func() bool { return p.Connections() == 1 })
	require.NoError(t, c.conn.Close())
	p.Blackhole(false)
	eventually(t, "the proxy has dropped it", func() bool { return p.Connections() == 0 })
	require.Zero(t, s.opened())
}

func TestBlackholeOfRepliesLetsRequestsThrough(t *testing.T) {
	p, s := setup(t)
	c := open(t, p.Addr())
	p.BlackholeReplies(true)
	xid := c.send(fault.OpCreate, "/1")
	eventually(t, "the server has it", func() bool { return len(s.paths()) == 1 })
	c.silent()
	p.Blackhole(true)
	p.Blackhole(false)
	c.silent() // the other switch is still on
	p.BlackholeReplies(false)
	c.answered(xid)
}

func TestRefuseClosesThePort(t *testing.T) {
	p, _ := setup(t)
	c := open(t, p.Addr())
	require.NoError(t, p.Refuse(true))
	require.NoError(t, p.Refuse(true), "idempotent")
	require.Error(t, c.closed())
	require.Zero(t, p.Connections())
	_, err := net.Dial("tcp", p.Addr())
	require.ErrorContains(t, err, "refused")

	require.NoError(t, p.Refuse(false))
	require.NoError(t, p.Refuse(false), "idempotent")
	open(t, p.Addr())
}

func TestDropConnectionsLetsClientsComeBack(t *testing.T) {
	p, s := setup(t)
	a, b := open(t, p.Addr()), open(t, p.Addr())
	require.Equal(t, 2, p.Connections())
	p.DropConnections()
	require.Zero(t, p.Connections())
	require.Error(t, a.closed())
	require.Error(t, b.closed())
	open(t, p.Addr())
	require.Equal(t, 3, s.opened())
}

func TestSetTargetMovesNewConnections(t *testing.T) {
	p, old := setup(t)
	c := open(t, p.Addr())
	other := startServer(t)
	p.SetTarget(other.addr())
	open(t, p.Addr())
	require.Equal(t, 1, other.opened())
	c.answered(c.send(fault.OpCreate, "/stays"))
	require.Equal(t, []string{"/stays"}, old.paths())
}

func TestCloseEndsEverything(t *testing.T) {
	s := startServer(t)
	p, err := New(s.addr())
	require.NoError(t, err)
	held := open(t, p.Addr())
	rule := p.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
	held.send(fault.OpCreate, "/held")
	require.NoError(t, rule.Wait(timeout(t)))
	p.Blackhole(true)
	dial(t, p.Addr())

	p.Close()
	p.Close()
	require.Error(t, held.closed())
	require.Zero(t, p.Connections())
	require.ErrorIs(t, p.Refuse(false), net.ErrClosed)
	_, err = net.Dial("tcp", p.Addr())
	require.Error(t, err)
}

func TestBadTargetIsNamed(t *testing.T) {
	_, err := New("nowhere")
	require.ErrorContains(t, err, `proxy: target "nowhere"`)
}

func TestWaitEndsWithItsContext(t *testing.T) {
	p, _ := setup(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := p.On(fault.Match{Op: fault.OpDelete, Path: "/a"}, fault.Pass()).Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "fault: wait for delete /a")
}
