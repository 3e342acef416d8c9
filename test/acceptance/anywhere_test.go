package acceptance_test

import (
	"math/rand/v2"
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
	dialer  framework.Option
	slow    time.Duration // how much longer than it should things may take, because the machine is busy
}

// anywhere runs a test in virtual time, or on the real server if that is wanted.
func anywhere(t *testing.T, test func(t *testing.T, in place)) {
	t.Helper()
	if realzk.Wanted() != "" {
		test(t, place{connect: testzk.Connect(), root: testzk.Path(t), slow: 10})
		return
	}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		test(t, place{srv.MemAddr(), "/test", framework.WithDialer(srv.DialContext), 1})
	})
}

// client is a new one, connected, whose session timeout is testzk.SessionTimeout.
func (in place) client(t *testing.T) *framework.Client {
	t.Helper()
	var opts []framework.Option
	if in.dialer != nil {
		opts = append(opts, in.dialer)
	}
	return testzk.Connected(t, in.connect, opts...)
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
