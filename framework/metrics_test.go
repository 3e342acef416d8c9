package framework_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestInstrumentsDescribeThemselves(t *testing.T) {
	names := map[string]bool{}
	for n, i := range metrics.Instruments() {
		require.Equal(t, n, int(i))
		require.Regexp(t, `^docent(\.[a-z]+)+$`, i.Name())
		require.Equal(t, i.Name(), i.String())
		require.NotEmpty(t, i.Description(), i)
		require.False(t, names[i.Name()], i)
		names[i.Name()] = true
		switch i.Kind() {
		case metrics.Histogram, metrics.GaugeMin:
			require.Equal(t, "s", i.Unit(), i)
		default:
			require.Regexp(t, `^\{[a-z]+\}$`, i.Unit(), i)
		}
		require.NotContains(t, i.Kind().String(), "kind", i)
	}
	require.Contains(t, metrics.Instrument(-1).Name(), "-1")
	require.Contains(t, metrics.Instrument(1000).Name(), "1000")
	require.Contains(t, metrics.Kind(9).String(), "9")
	labels := metrics.LockWait.Labels()
	labels[0] = "mine"
	require.NotEqual(t, labels, metrics.LockWait.Labels(), "Labels does not return a copy")
}

func TestDisabledMetricsDoNotAllocate(t *testing.T) {
	c := refusedClient(t)
	m := bridge.Of(c).Metrics()
	require.Zero(t, testing.AllocsPerRun(10_000, func() { // so many that others do not count
		m.Add(metrics.LockWaiters, 1, metrics.Labels{Recipe: "mutex", Path: "/a"})
		m.Record(metrics.LockWait, time.Second, metrics.Labels{Recipe: "mutex", Path: "/a"})
	}))
	require.NotNil(t, bridge.Of(&framework.Client{}).Metrics())
	require.NotNil(t, bridge.OfSession(&framework.Session{}).Metrics())
}

// simulated returns a client in a simulation.
func simulated(t *testing.T, srv *zktest.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{framework.WithDialer(srv.Client("a").DialContext)}, opts...)
	return testzk.Connected(t, srv.MemAddr(), opts...)
}

func TestSessionsAndReconnectsAreCountedByCause(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var m testzk.Metrics
		c := simulated(t, srv, framework.WithMetrics(&m))
		a := srv.Client("a")
		settle := func() { time.Sleep(time.Minute) }
		lines := func() []string { return m.Lines(0) }

		settle()
		require.Empty(t, lines(), "the first connection was counted")
		a.Drop()
		settle()
		require.Equal(t, []string{"docent.connection.reconnects{} 1"}, lines())
		require.NoError(t, a.Sessions()[0].Expire())
		settle()
		require.Equal(t, []string{"docent.connection.reconnects{} 2", "docent.session.losses{expired} 1"}, lines())
		a.Cut()
		settle()
		require.Equal(t, []string{
			"docent.connection.reconnects{} 2", "docent.session.losses{deadline} 1", "docent.session.losses{expired} 1",
		}, lines(), "a lost session that has not been replaced")
		a.Heal()
		settle()
		require.NoError(t, c.Close())
		require.Equal(t, []string{
			"docent.connection.reconnects{} 3",
			"docent.session.losses{closed} 1", "docent.session.losses{deadline} 1", "docent.session.losses{expired} 1",
		}, lines())
	})
}

func TestRefusedCredentialsAreCounted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var m testzk.Metrics
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext),
			framework.WithMetrics(&m), framework.WithAuth("nosuch", []byte("x")))
		require.ErrorIs(t, c.WaitConnected(context.Background()), framework.ErrAuthFailed)
		require.NoError(t, c.Close())
		require.Equal(t, []string{"docent.session.losses{auth_failed} 1"}, m.Lines(0))
	})
}

// Deletions are pending while there is no connection. None is pending once the client is closed.
func TestPendingDeletionsAreCounted(t *testing.T) {
	for ending, end := range map[string]func(*framework.Client, *zktest.Client){
		"by success": func(_ *framework.Client, a *zktest.Client) { a.Refuse(false) },
		"by closing": func(c *framework.Client, _ *zktest.Client) { _ = c.Close() },
		"by the end of the session": func(_ *framework.Client, a *zktest.Client) {
			time.Sleep(time.Minute)
			a.Refuse(false)
		},
	} {
		t.Run(ending, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				var m testzk.Metrics
				c := simulated(t, srv, framework.WithMetrics(&m), framework.WithRetry(retry.Never()))
				s := session(t, c)
				srv.Client("a").Refuse(true)
				srv.Client("a").Drop()
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				defer cancel()
				require.Error(t, s.DeleteGuaranteed(ctx, "/a"))
				require.Error(t, s.DeleteGuaranteed(ctx, "/b"))
				synctest.Wait()
				require.Equal(t, []string{"docent.deletions.pending{} 2"}, m.Levels())
				end(c, srv.Client("a"))
				time.Sleep(10 * time.Second)
				require.Empty(t, m.Levels())
				require.NoError(t, c.Close())
				require.Error(t, c.DeleteGuaranteed(context.Background(), "/a"))
				require.Empty(t, m.Levels(), "a deletion that did not begin was counted")
				require.Contains(t, strings.Join(m.Lines(0), " "), "docent.deletions.pending{} 0")
			})
		})
	}
}

// The table of the documentation agrees with Instruments.
func TestMetricsAreDocumented(t *testing.T) {
	var table strings.Builder
	table.WriteString("| Name | Kind | Unit | Labels | What |\n|---|---|---|---|---|\n")
	for _, i := range metrics.Instruments() {
		labels := strings.Join(i.Labels(), ", ")
		fmt.Fprintf(&table, "| `%v` | %v | %s | %s | %s |\n", i, i.Kind(), i.Unit(), labels, i.Description())
	}
	doc, err := os.ReadFile("../docs/observability.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), table.String()+"\n", "docs/observability.md needs this table")
}
