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

// place is where a test without faults runs: in virtual time on a server of its own, or on the real
// server.
type place struct {
	connect string
	root    string
	// The address is ignored.
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration // session timeout of the clients
	// Is added to time limits, because the machine may be busy.
	slow time.Duration
}

// anywhere runs a test on the real server if one is asked for, and otherwise in virtual time.
func anywhere(t *testing.T, test func(t *testing.T, in place)) {
	t.Helper()
	if realzk.Wanted() != "" {
		dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
			server, _, _ := strings.Cut(testzk.Connect(), ",")
			return new(net.Dialer).DialContext(ctx, network, server)
		}
		root := strings.ReplaceAll(testzk.Path(t), ",", "-") // a chroot must not contain a comma
		test(t, place{testzk.Connect(), root, dial, 20 * time.Second, 10})
		return
	}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		test(t, place{srv.MemAddr(), "/test", srv.DialContext, testzk.SessionTimeout, 1})
	})
}

// client returns a new client that is connected.
func (in place) client(t *testing.T, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append(opts, framework.WithDialer(in.dial), framework.WithSessionTimeout(in.timeout))
	return testzk.Connected(t, in.connect, opts...)
}

// lock returns a mutex on a new client. All calls return the same lock.
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

// deadline returns a context with a deadline in d. pass lets it pass. On a server in real time it passes then, and
// not earlier.
func (in place) deadline(t *testing.T, d time.Duration) (ctx context.Context, pass func()) {
	t.Helper()
	if realzk.Wanted() != "" {
		return testzk.Deadline(t.Context())
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx, func() { <-ctx.Done() }
}

// within returns d, or more on a server in real time.
func (in place) within(d time.Duration) time.Duration { return d * in.slow }

// acquired acquires mu and returns the hold.
func acquired(t *testing.T, mu *mutex.Mutex) *recipes.Hold {
	t.Helper()
	hold, err := mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	return hold
}
