package acceptance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// p06NothingHeard is the cause of the loss of a silent session.
const p06NothingHeard = "framework: session lost: nothing heard of the ZooKeeper leader for 3.994s, " +
	"the limit is 3.994s"

// p06Scenarios are what may happen to a client ten seconds after its start, and all that its
// listeners must hear. An entry has the time in whole seconds, the state, the session by the order
// of opening, and the cause. The session timeout is 6 s, so a silent session is lost after a little
// less than 4 s.
var p06Scenarios = map[string]struct {
	happens func(*p06Client)
	heard   []string
}{
	"blip": {
		happens: func(c *p06Client) {
			c.way.Drop()
			time.Sleep(time.Minute)
		},
		heard: []string{
			"0 connected s1",
			"10 suspended s1",
			"10 reconnected s1",
			"70 lost s1: framework: client closed",
			"70 closed",
		},
	},
	"expiry while away": {
		happens: func(c *p06Client) {
			c.way.Refuse(true)
			c.way.Drop()
			time.Sleep(time.Second)
			require.NoError(c.t, c.way.Sessions()[0].Expire())
			c.way.Refuse(false)
			time.Sleep(time.Minute)
		},
		heard: []string{
			"0 connected s1",
			"10 suspended s1",
			"11 lost s1: framework: session lost: the servers do not know it any more",
			"11 reconnected s2",
			"71 lost s2: framework: client closed",
			"71 closed",
		},
	},
	"all servers down for ten timeouts": {
		happens: func(c *p06Client) {
			c.srv.Stop()
			time.Sleep(10 * bubbleTimeout)
			require.NoError(c.t, c.srv.Start())
			time.Sleep(time.Minute)
		},
		heard: []string{
			"0 connected s1",
			"10 suspended s1",
			"13 lost s1: " + p06NothingHeard,
			"70 reconnected s2",
			"130 lost s2: framework: client closed",
			"130 closed",
		},
	},
	"all servers silent for ten timeouts": {
		happens: func(c *p06Client) {
			c.srv.Pause()
			time.Sleep(10 * bubbleTimeout)
			c.srv.Resume(zktest.ExpireFirst)
			time.Sleep(time.Minute)
		},
		heard: []string{
			"0 connected s1",
			"12 suspended s1", // the same address may lead to another server
			"13 lost s1: " + p06NothingHeard,
			"70 reconnected s2",
			"130 lost s2: framework: client closed",
			"130 closed",
		},
	},
	"another session than the one asked for": {
		happens: func(c *p06Client) {
			c.swap = true
			c.way.Drop()
			time.Sleep(time.Minute)
		},
		heard: []string{
			"0 connected s1",
			"10 suspended s1",
			"10 lost s1: framework: session lost: the servers do not know it any more",
			"10 reconnected s2",
			"70 lost s2: framework: client closed",
			"70 closed",
		},
	},
	"servers restored to an older state": {
		happens: func(c *p06Client) {
			c.srv.Stop()
			require.NoError(c.t, c.srv.Wipe())
			require.NoError(c.t, c.srv.Start())
			time.Sleep(time.Minute)
		},
		heard: []string{
			"0 connected s1",
			"10 suspended s1",
			"13 lost s1: " + p06NothingHeard,
			"13 reconnected s2",
			"70 lost s2: framework: client closed",
			"70 closed",
		},
	},
	"close while connected": {
		happens: func(*p06Client) {},
		heard: []string{
			"0 connected s1",
			"10 lost s1: framework: client closed",
			"10 closed",
		},
	},
	"close while suspended": {
		happens: func(c *p06Client) {
			c.way.Refuse(true)
			c.way.Drop()
			time.Sleep(time.Second)
		},
		heard: []string{
			"0 connected s1",
			"10 suspended s1",
			"11 lost s1: framework: client closed",
			"13 closed",
		},
	},
	"close after lost": {
		happens: func(c *p06Client) {
			c.way.Refuse(true)
			c.way.Drop()
			time.Sleep(time.Minute)
		},
		heard: []string{
			"0 connected s1",
			"10 suspended s1",
			"13 lost s1: " + p06NothingHeard,
			"70 closed",
		},
	},
}

// A listener hears exactly what happens to connection, session and servers, in order and in time.
// There may be a short interruption, an expiry while the client is away, or all servers down for
// ten timeouts. The session id may be another one, a server may be restored to an older state, and
// Close may come in any state.
func TestP06_ListenersHearExactlyWhatHappened(t *testing.T) {
	onlyInProcess(t, virtual)
	for name, scenario := range p06Scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim.Run(t, 10, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				// A restored server does not have these.
				require.NoError(t, srv.Load(map[string]string{"/a": "", "/b": "", "/c": ""}))
				c := p06Connect(t, srv)
				time.Sleep(10*time.Second - time.Since(c.began))
				scenario.happens(c)
				require.NoError(t, c.client.Close())
				require.Equal(t, scenario.heard, c.heard())
			})
		})
	}
}

// p06Client is a client whose changes of state are recorded from the start.
type p06Client struct {
	t      testing.TB
	srv    *zktest.Server
	way    *zktest.Client
	client *framework.Client
	began  time.Time
	swap   bool // the next server opens another session than the one asked for

	mu      sync.Mutex
	changes []framework.StateChange
}

func p06Connect(t testing.TB, srv *zktest.Server) *p06Client {
	c := &p06Client{t: t, srv: srv, way: srv.Client("c"), began: time.Now()}
	c.client = bubbleSetUp(t, srv, "c", func(client *framework.Client) { client.Listen(c.add) },
		framework.WithDialer(c.dial), framework.WithRandom(func(int64) int64 { return 0 }))
	require.NoError(t, c.client.WaitConnected(t.Context()))
	return c
}

func (c *p06Client) add(change framework.StateChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, change)
}

func (c *p06Client) heard() (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sessions := map[int64]string{}
	for _, change := range c.changes {
		line := fmt.Sprintf("%d %v", change.At.Sub(c.began)/time.Second, change.State)
		if id := change.Session; id != 0 {
			if sessions[id] == "" {
				sessions[id] = fmt.Sprintf("s%d", len(sessions)+1)
			}
			line += " " + sessions[id]
		}
		if change.Cause != nil {
			line += ": " + change.Cause.Error()
		}
		lines = append(lines, line)
	}
	return lines
}

// dial connects to a server. If swap is set, the next server opens a new session for a client that
// asks for a known one, and does not report that.
func (c *p06Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.way.DialContext(ctx, network, address)
	if err != nil || !c.swap {
		return conn, err
	}
	c.swap = false
	return &p06Swapped{Conn: conn}, nil
}

// p06Swapped changes the session id in the connect reply, which is the first frame that is read.
// The id follows the length, the protocol's version and the timeout.
type p06Swapped struct {
	net.Conn
	read int
}

func (s *p06Swapped) Read(b []byte) (int, error) {
	const idAt, idSize = 12, 8
	n, err := s.Conn.Read(b)
	for i := range b[:n] {
		if at := s.read + i; at == idAt+idSize-1 {
			b[i]++
		}
	}
	s.read += n
	return n, err
}
