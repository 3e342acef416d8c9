package acceptance_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// 40 creates of ephemeral nodes wait in a session that has three server addresses, none of which
// can be reached. Meanwhile the session is ended on the servers. When they can be reached again,
// none of the 40 is carried out in the next session, and each caller is told that it was not
// applied.
func TestP05_QueuedCreatesAreNotCarriedOutByAnyOfThreeServers(t *testing.T) {
	t.Parallel()
	var proxies [3]*proxy.Proxy
	var addrs []string
	for i := range proxies {
		proxies[i] = testzk.Proxy(t)
		addrs = append(addrs, proxies[i].Addr())
	}
	var tap p05Tap
	c := testzk.Connected(t, strings.Join(addrs, ","), framework.WithDialer(tap.dial),
		framework.WithSessionTimeout(30*time.Second), framework.WithRetry(retry.Forever(20*time.Millisecond)))
	s, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	parent, err := c.Create(testzk.Context(t), testzk.Path(t), nil, framework.Parents())
	require.NoError(t, err)
	changes := make(chan framework.State, 10)
	c.Listen(func(change framework.StateChange) { changes <- change.State })
	slices.SortFunc(proxies[:], func(a, b *proxy.Proxy) int { return a.Connections() - b.Connections() })
	for _, p := range proxies { // the present connection comes last
		require.NoError(t, p.Refuse(true))
		p.ResetCounts()
	}
	require.Equal(t, framework.Suspended, <-changes)
	results := make(chan error, p05Queued)
	for i := range p05Queued {
		go func() {
			_, err := s.Create(testzk.Context(t), fmt.Sprintf("%s/n%d", parent, i), nil, framework.Ephemeral())
			results <- err
		}()
	}
	tap.endSession(t, s.ID())
	for _, p := range proxies {
		require.NoError(t, p.Refuse(false))
	}
	for range p05Queued {
		err := <-results
		require.ErrorIs(t, err, framework.ErrSessionLost)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
	}
	next, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	require.NotEqual(t, s.ID(), next.ID())
	require.NoError(t, next.Sync(testzk.Context(t), parent))
	children, _, err := next.Children(testzk.Context(t), parent)
	require.NoError(t, err)
	require.Empty(t, children, "carried out in the next session")
	for _, p := range proxies {
		require.Zero(t, p.Requests()[fault.OpCreate])
	}
}

// p05Tap reads the session's password from the first connect reply, so that a test can end the
// session.
type p05Tap struct {
	mu    sync.Mutex
	reply []byte
}

// p05ReplySize is the length of a connect reply with its length field, without the fields that
// newer servers add.
const p05ReplySize = 4 + 36

func (p *p05Tap) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &p05Tapped{conn, p}, nil
}

type p05Tapped struct {
	net.Conn
	tap *p05Tap
}

func (c *p05Tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if missing := p05ReplySize - len(c.tap.reply); missing > 0 {
		c.tap.reply = append(c.tap.reply, b[:min(n, missing)]...)
	}
	return n, err
}

// endSession connects to the session with its password and closes it.
func (p *p05Tap) endSession(t testing.TB, id int64) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	granted, err := rawzk.DecodeConnected(p.reply[4:])
	require.NoError(t, err)
	require.Equal(t, id, granted.Session)
	server, _, _ := strings.Cut(testzk.Connect(), ",")
	conn, err := rawzk.Dial(server)
	require.NoError(t, err)
	defer conn.Close()
	hello := rawzk.Connect{Timeout: granted.Timeout, Session: id, Password: granted.Password}
	require.NoError(t, conn.SendFrame(hello.Encode()))
	frame, err := conn.ReadFrame(testzk.Patience)
	require.NoError(t, err)
	again, err := rawzk.DecodeConnected(frame)
	require.NoError(t, err)
	require.Equal(t, id, again.Session)
	require.NoError(t, conn.Send(1, rawzk.CloseSession()))
	_, err = conn.ReadFrame(testzk.Patience)
	require.NoError(t, err)
}
