package testlock

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Virtually runs a test in virtual time on a server of its own.
func Virtually(t *testing.T, test func(t *testing.T, srv *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, srv) }, opts...)
}

// Named returns a client of srv with a name, which is connected.
func Named(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	dialer := framework.WithDialer(srv.Client(name).DialContext)
	return testzk.Connected(t, srv.MemAddr(), append([]framework.Option{dialer}, opts...)...)
}

// Expire expires the sessions of a client of srv.
func Expire(t testing.TB, srv *zktest.Server, name string) {
	t.Helper()
	for _, s := range srv.Client(name).Sessions() {
		require.NoError(t, s.Expire())
	}
}

// Rest waits for everything that happens without the end of a session.
func Rest() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// Outage waits for longer than the session timeout.
func Outage() {
	time.Sleep(2 * testzk.SessionTimeout)
	synctest.Wait()
}
