package acceptance_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/ensemble"
	"github.com/docent-zk/docent/zktest/proxy"
)

// Three servers restart one after the other while 10 clients hold 50 locks with a session timeout
// of 30 s. Every client loses its connection at least once, and no lock is lost. Here the three are
// proxies of one server that fail in turn. "make ensemble" runs the same while each of three real
// servers is killed and restarted, the leader included.
func TestP13_RollingRestartLosesNoLock(t *testing.T) {
	t.Parallel()
	servers := p13Start(t)
	clients := p13Open(t, servers.connect(), 30*time.Second)
	for i := range 3 {
		servers.down(t, i)
		clients.connected(t)
		servers.up(t, i)
		clients.connected(t)
	}
	for i, c := range clients {
		testzk.Eventually(t, func() bool { return c.suspended.Load() > 0 }, "client %d has noticed no restart", i)
		require.Zero(t, c.lost.Load(), "client %d has lost its session", i)
		for _, hold := range c.holds {
			require.NoError(t, hold.Err())
			_, err := hold.Guard(testzk.Context(t))
			require.NoError(t, err, "the node of a lock was deleted")
			require.NoError(t, hold.Release())
		}
	}
}

// All servers are killed or frozen for longer than the session timeout of 3 s. All of 50 holds end
// within the timeout, and so before a server can end their sessions. When the servers are back, the
// locks can be acquired again.
func TestP13_AllHoldsEndWhenTheServersAreAwayForLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]struct {
		end, begin func(testzk.Server, testing.TB)
	}{
		"killed": {testzk.Server.Kill, testzk.Server.Start},
		"frozen": {testzk.Server.Pause, testzk.Server.Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testzk.Own(t, testzk.Seldom)
			clients := p13Open(t, server.Connect(), p01Timeout)
			away.end(server, t)
			down := time.Now() // later than the last answer
			time.Sleep(time.Until(down.Add(p01Timeout)))
			for _, c := range clients {
				for _, hold := range c.holds {
					require.ErrorIs(t, hold.Err(), framework.ErrSessionLost, "a hold outlives its session timeout")
					<-hold.Done()
				}
			}
			time.Sleep(time.Until(down.Add(p01Timeout + time.Second)))
			away.begin(server, t)
			for _, c := range clients {
				require.NoError(t, c.client.WaitConnected(testzk.Context(t)))
				hold := p01Hold(t, c.client, c.path+"-0")
				require.Greater(t, hold.Token(), c.holds[0].Token())
				// A busy machine loses a session of 3 s, or its connection.
				if err := hold.Release(); err != nil && !errors.Is(err, recipes.ErrReleasePending) {
					require.ErrorIs(t, err, framework.ErrSessionLost)
				}
			}
		})
	}
}

const (
	p13Clients = 10
	p13Locks   = 5 // of each client
)

// p13Client is a client and its holds.
type p13Client struct {
	client          *framework.Client
	path            string // of its locks, without their numbers
	holds           []*recipes.Hold
	suspended, lost atomic.Int32 // counts of these states
}

type p13Group []*p13Client

// p13Open makes the clients and acquires all locks.
func p13Open(t *testing.T, connect string, timeout time.Duration) (clients p13Group) {
	t.Helper()
	for range p13Clients {
		c := &p13Client{client: testzk.Connected(t, connect, framework.WithSessionTimeout(timeout)),
			path: testzk.Path(t)}
		t.Cleanup(c.client.Listen(c.note))
		for j := range p13Locks {
			mu, err := mutex.New(c.client, fmt.Sprintf("%s-%d", c.path, j))
			require.NoError(t, err)
			hold, err := mu.Acquire(testzk.Context(t))
			require.NoError(t, err)
			c.holds = append(c.holds, hold)
		}
		clients = append(clients, c)
	}
	return clients
}

func (s *p13Client) note(change framework.StateChange) {
	switch change.State {
	case framework.Suspended:
		s.suspended.Add(1)
	case framework.Lost:
		s.lost.Add(1)
	}
}

// connected waits until all clients have a working connection.
func (f p13Group) connected(t *testing.T) {
	t.Helper()
	for _, c := range f {
		require.NoError(t, c.client.Sync(testzk.Context(t), "/"))
	}
}

// p13Servers is three servers, one of which can be down at a time.
type p13Servers interface {
	connect() string
	down(t *testing.T, i int)
	up(t *testing.T, i int)
}

func p13Start(t *testing.T) p13Servers {
	t.Helper()
	if realzk.Wanted() == "3" {
		return p13Real{ensemble.Start(t, 3, ensemble.WithTick(p01Tick))}
	}
	return p13Proxies{testzk.Proxy(t), testzk.Proxy(t), testzk.Proxy(t)}
}

// p13Proxies are three proxies of one server.
type p13Proxies [3]*proxy.Proxy

func (p p13Proxies) connect() string {
	return strings.Join([]string{p[0].Addr(), p[1].Addr(), p[2].Addr()}, ",")
}

func (p p13Proxies) down(t *testing.T, i int) { require.NoError(t, p[i].Refuse(true)) }
func (p p13Proxies) up(t *testing.T, i int)   { require.NoError(t, p[i].Refuse(false)) }

type p13Real struct{ *ensemble.Ensemble }

func (r p13Real) connect() string { return r.Connect() }

func (r p13Real) down(t *testing.T, i int) {
	require.NoError(t, r.Servers()[i].Kill())
	require.NoError(t, r.WaitReady(testzk.Context(t)))
}

func (r p13Real) up(t *testing.T, i int) {
	require.NoError(t, r.Servers()[i].Start(testzk.Context(t)))
	require.NoError(t, r.WaitReady(testzk.Context(t)))
}
