package framework_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// shown returns the gauges that are not 0.
func shown(m *testzk.Metrics) (lines []string) {
	for _, r := range m.Read(nil) {
		if r.Value != 0 {
			lines = append(lines, fmt.Sprintf("%v%s %.0f", r.Instrument, r.Labels.State, r.Value))
		}
	}
	return lines
}

// The heartbeats of a session of 24 s come each 4 s, and its deadline is 16 s after one.
func TestGaugesShowStateTimeoutAndDeadline(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var m testzk.Metrics
		a := srv.Client("a")
		a.Refuse(true)
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(a.DialContext), framework.WithMetrics(&m),
			framework.WithSessionTimeout(24*time.Second))
		require.Equal(t, []string{"docent.client.stateconnecting 1"}, shown(&m))
		a.Refuse(false)
		require.NoError(t, c.WaitConnected(context.Background()))
		time.Sleep(30 * time.Second)
		remaining := remainingOf(t, &m)
		require.Greater(t, remaining, 11*time.Second)
		require.LessOrEqual(t, remaining, 16*time.Second)

		a.Cut()
		time.Sleep(10 * time.Second)
		left := remainingOf(t, &m)
		require.Less(t, left, remaining-5*time.Second, "the deadline does not move without answers")
		session, err := c.Session(context.Background())
		require.NoError(t, err)
		require.InDelta(t, time.Until(session.ValidUntil()).Seconds(), left.Seconds(), 0.1)
		require.Equal(t, []string{
			"docent.client.statesuspended 1", "docent.session.timeout 24",
			fmt.Sprintf("docent.session.remaining %.0f", left.Seconds()),
		}, shown(&m))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"docent.client.statelost 1"}, shown(&m))
		a.Heal()
		time.Sleep(time.Minute)
		require.Contains(t, shown(&m), "docent.client.stateconnected 1")
		require.Contains(t, shown(&m), "docent.session.timeout 24")
		require.NoError(t, c.Close())
		require.Empty(t, m.Read(nil), "a closed client is not read")
	})
}

func remainingOf(t *testing.T, m *testzk.Metrics) time.Duration {
	t.Helper()
	for _, r := range m.Read(nil) {
		if r.Instrument == metrics.SessionRemaining {
			return time.Duration(r.Value * float64(time.Second))
		}
	}
	require.FailNow(t, "no reading")
	return 0
}

func TestRefusedCredentialsAreAState(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var m testzk.Metrics
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext),
			framework.WithMetrics(&m), framework.WithAuth("nosuch", []byte("x")))
		require.ErrorIs(t, c.WaitConnected(context.Background()), framework.ErrAuthFailed)
		require.Equal(t, []string{"docent.client.stateauth_failed 1"}, shown(&m))
	})
}

// Locks that are not held leave nothing behind, however many there were.
func TestHeldLocksAreForgotten(t *testing.T) {
	var m testzk.Metrics
	c := testzk.Client(t, "127.0.0.1:1", framework.WithMetrics(&m))
	for n := range 1000 {
		labels := metrics.Labels{Recipe: "mutex", Path: fmt.Sprintf("/%d", n)}
		bridge.Of(c).AddHeld(1, labels)
		require.Equal(t, []string{fmt.Sprintf("docent.lock.held{mutex /%d} 1", n)}, m.Held())
		bridge.Of(c).AddHeld(-1, labels)
	}
	require.Empty(t, m.Held())
}

// addsAndRecords is a Metrics that is no GaugeReader.
type addsAndRecords struct{ metrics.Metrics }

func TestGaugesNeedAReader(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1", framework.WithMetrics(addsAndRecords{&testzk.Metrics{}}))
	held := metrics.Labels{Recipe: "mutex", Path: "/a"}
	require.Zero(t, testing.AllocsPerRun(10_000, func() { bridge.Of(c).AddHeld(1, held) }))
	bridge.Of(&framework.Client{}).AddHeld(1, held)
	bridge.OfSession(&framework.Session{}).AddHeld(1, held)
}
