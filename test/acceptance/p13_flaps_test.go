package acceptance_test

import (
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

// Three servers go away and come back one after the other while 10 clients hold 50 locks with a session timeout of 30 s. Every client
// loses its connection at least once, and no lock is lost. Here the three are ways to one server that fail in turn; "make
// ensemble" runs the same while each of three real servers is killed and restarted, the leader included.
func TestP13_RollingRestartLosesNoLock(t *testing.T) {
	t.Parallel()
	trio := p13Start(t)
	fleet := p13Open(t, trio.connect(), 30*time.Second)
	for i := range 3 {
		trio.down(t, i)
		fleet.connected(t)
		trio.up(t, i)
		fleet.connected(t)
	}
	for i, ship := range fleet {
		require.Positive(t, ship.suspended.Load(), "client %d has noticed nothing: the restarts were none", i)
		require.Zero(t, ship.lost.Load(), "client %d has lost its session", i)
		for _, hold := range ship.holds {
			require.NoError(t, hold.Err())
			_, err := hold.Guard(testzk.Context(t))
			require.NoError(t, err, "the node of a lock is gone")
			require.NoError(t, hold.Release())
		}
	}
}

// All servers are away, killed or frozen, for longer than the session timeout of 3 s: all of 50 holds end within the timeout,
// and so before a server can end their sessions. When the servers are back the locks are to be had again.
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
			fleet := p13Open(t, server.Connect(), p01Timeout)
			away.end(server, t)
			gone := time.Now() // later than the last answer
			time.Sleep(time.Until(gone.Add(p01Timeout)))
			for _, ship := range fleet {
				for _, hold := range ship.holds {
					require.ErrorIs(t, hold.Err(), framework.ErrSessionLost, "a hold outlives its session timeout")
					<-hold.Done()
				}
			}
			time.Sleep(time.Until(gone.Add(p01Timeout + time.Second)))
			away.begin(server, t)
			for _, ship := range fleet {
				hold := p01Hold(t, ship.client, ship.path+"-0")
				require.Greater(t, hold.Token(), ship.holds[0].Token())
				require.NoError(t, hold.Release())
			}
		})
	}
}

const (
	p13Clients = 10
	p13Locks   = 5 // of each client
)

// p13Ship is a client and its holds.
type p13Ship struct {
	client          *framework.Client
	path            string // of its locks, but for their numbers
	holds           []*recipes.Hold
	suspended, lost atomic.Int32 // how often it was
}

type p13Fleet []*p13Ship

// p13Open lets every client acquire its locks.
func p13Open(t *testing.T, connect string, timeout time.Duration) (fleet p13Fleet) {
	t.Helper()
	for range p13Clients {
		ship := &p13Ship{client: testzk.Connected(t, connect, framework.WithSessionTimeout(timeout)), path: testzk.Path(t)}
		t.Cleanup(ship.client.Listen(ship.note))
		for j := range p13Locks {
			mu, err := mutex.New(ship.client, fmt.Sprintf("%s-%d", ship.path, j))
			require.NoError(t, err)
			hold, err := mu.Acquire(testzk.Context(t))
			require.NoError(t, err)
			ship.holds = append(ship.holds, hold)
		}
		fleet = append(fleet, ship)
	}
	return fleet
}

func (s *p13Ship) note(change framework.StateChange) {
	switch change.State {
	case framework.Suspended:
		s.suspended.Add(1)
	case framework.Lost:
		s.lost.Add(1)
	}
}

// connected waits until all clients have a connection that works.
func (f p13Fleet) connected(t *testing.T) {
	t.Helper()
	for _, ship := range f {
		require.NoError(t, ship.client.Sync(testzk.Context(t), "/"))
	}
}

// p13Trio is three servers that can be down one at a time.
type p13Trio interface {
	connect() string
	down(t *testing.T, i int)
	up(t *testing.T, i int)
}

func p13Start(t *testing.T) p13Trio {
	t.Helper()
	if realzk.Wanted() == "3" {
		return p13Real{ensemble.Start(t, 3, ensemble.WithTick(p01Tick))}
	}
	return p13Proxies{testzk.Proxy(t), testzk.Proxy(t), testzk.Proxy(t)}
}

// p13Proxies are three ways to one server.
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
