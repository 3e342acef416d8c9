package acceptance_test

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const p20Clients = 500

// p20Dials are the moments at which clients have dialled.
type p20Dials struct {
	mu      sync.Mutex
	moments []time.Time
}

func (d *p20Dials) through(c *zktest.Client) framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		d.mu.Lock()
		d.moments = append(d.moments, time.Now())
		d.mu.Unlock()
		return c.DialContext(ctx, network, address)
	})
}

// since returns the dials from start on, in order.
func (d *p20Dials) since(start time.Time) (after []time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, moment := range d.moments {
		if !moment.Before(start) {
			after = append(after, moment.Sub(start))
		}
	}
	slices.Sort(after)
	return after
}

// The ensemble is back after 10 s. The dials of 500 clients spread over 1 s or more, and no tenth
// of a second has more than a fifth of them. All clients are connected again within 5 s.
func TestP20_ClientsDoNotReconnectAllAtOnce(t *testing.T) { // not parallel: it would starve the tests in real time
	onlyInProcess(t, "500 clients and exact times take a virtual clock")
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		dials := &p20Dials{}
		clients := p20Connect(t, srv, random, dials)
		srv.Stop()
		time.Sleep(10 * time.Second)
		back := time.Now()
		require.NoError(t, srv.Start())
		for _, c := range clients {
			require.NoError(t, c.WaitConnected(testzk.Context(t)))
		}
		require.LessOrEqual(t, time.Since(back), 5*time.Second)

		after := dials.since(back)
		require.GreaterOrEqual(t, len(after), p20Clients*9/10, "some were about to dial when the servers came back")
		require.GreaterOrEqual(t, after[len(after)-1]-after[0], time.Second)
		tenths := map[time.Duration]int{}
		for _, moment := range after {
			tenth := moment.Truncate(100 * time.Millisecond)
			tenths[tenth]++
			require.LessOrEqual(t, tenths[tenth], p20Clients/5, "in the tenth of a second from %v on", tenth)
		}
	})
}

func p20Connect(t *testing.T, srv *zktest.Server, random *rand.Rand, dials *p20Dials) (clients []*framework.Client) {
	for range p20Clients {
		clients = append(clients, testzk.Client(t, srv.MemAddr(), dials.through(srv.Client("c")),
			framework.WithSessionTimeout(30*time.Second),
			framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 0)).Int64N)))
	}
	for _, c := range clients {
		require.NoError(t, c.WaitConnected(testzk.Context(t)))
	}
	return clients
}
