package acceptance_test

import (
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// place is where a test happens that needs no faults: in virtual time on a server of its own, or on the real one.
type place struct {
	connect string
	root    string
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // whatever the address
	timeout time.Duration                                                        // of the clients' sessions
	slow    time.Duration                                                        // how much longer than it should things may take, because the machine is busy
}

// anywhere runs a test in virtual time, or on the real server if that is wanted.
func anywhere(t *testing.T, test func(t *testing.T, in place)) {
	t.Helper()
	if realzk.Wanted() != "" {
		dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
			server, _, _ := strings.Cut(testzk.Connect(), ",")
			return new(net.Dialer).DialContext(ctx, network, server)
		}
		root := strings.ReplaceAll(testzk.Path(t), ",", "-") // no chroot has a comma
		test(t, place{testzk.Connect(), root, dial, 10 * time.Second, 10})
		return
	}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		test(t, place{srv.MemAddr(), "/test", srv.DialContext, testzk.SessionTimeout, 1})
	})
}

// client is a new one, connected.
func (in place) client(t *testing.T) *framework.Client {
	t.Helper()
	return testzk.Connected(t, in.connect, framework.WithDialer(in.dial), framework.WithSessionTimeout(in.timeout))
}

// lock is a mutex on a new client; all are the same lock.
func (in place) lock(t *testing.T) *mutex.Mutex {
	t.Helper()
	return in.lockOn(t, in.client(t))
}

func (in place) lockOn(t *testing.T, c *framework.Client) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, in.root+"/lock")
	require.NoError(t, err)
	return mu
}

// within is d, or more on a server whose time is real.
func (in place) within(d time.Duration) time.Duration { return d * in.slow }

// acquired is a hold of the lock.
func acquired(t *testing.T, mu *mutex.Mutex) *recipes.Hold {
	t.Helper()
	hold, err := mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	return hold
}
