package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func never() bool { return false }

func TestHostsGoRound(t *testing.T) {
	servers := []string{"a:1", "b:2", "c:3", "d:4"}
	h := newHosts(servers, time.Second, never, nil)
	require.NoError(t, h.Init([]string{"1.2.3.4:5"}))
	require.Equal(t, 4, h.Len())
	var first, second []string
	for range servers {
		server, stop := h.Next()
		require.False(t, stop)
		first = append(first, server)
	}
	for range servers {
		server, _ := h.Next()
		second = append(second, server)
	}
	require.ElementsMatch(t, servers, first)
	require.Equal(t, first, second)
	require.Equal(t, []string{"a:1", "b:2", "c:3", "d:4"}, servers, "the caller's list is left alone")
}

func TestHostsStartSomewhere(t *testing.T) {
	starts := map[string]bool{}
	for range 200 {
		server, _ := newHosts([]string{"a:1", "b:2"}, time.Second, never, nil).Next()
		starts[server] = true
	}
	require.Len(t, starts, 2, "all clients begin with the same server")
}

func TestHostsStopWhenTheSessionIsOver(t *testing.T) {
	over := false
	h := newHosts([]string{"a:1", "b:2"}, time.Second, func() bool { return over }, nil)
	for range 5 {
		_, stop := h.Next()
		require.False(t, stop)
	}
	over = true
	_, stop := h.Next()
	require.True(t, stop)
}

func TestPausesGrowFromNothingToABound(t *testing.T) {
	const maxPause = 300 * time.Millisecond
	h := newHosts([]string{"a:1", "b:2", "c:3"}, maxPause, never, nil)
	for round, bound := range []time.Duration{0, 50, 100, 200, 300, 300, 300} {
		bound *= time.Millisecond
		for range 3 {
			h.Next()
			for range 100 {
				require.GreaterOrEqual(t, h.pause(), bound/2, "round %d", round)
				require.LessOrEqual(t, h.pause(), bound, "round %d", round)
			}
		}
	}
	for range 1000 {
		h.Next()
	}
	require.LessOrEqual(t, h.pause(), maxPause, "after many rounds")
}

func TestPausesDiffer(t *testing.T) {
	h := newHosts([]string{"a:1"}, time.Second, never, nil)
	h.Next()
	h.Next()
	pauses := map[time.Duration]bool{}
	for range 100 {
		pauses[h.pause()] = true
	}
	require.Greater(t, len(pauses), 10, "clients would come back all at once")
}

func TestOnlyAStableConnectionForgetsFailedAttempts(t *testing.T) {
	h := newHosts([]string{"a:1"}, time.Second, never, nil)
	for range 3 {
		h.Next()
	}
	h.Connected()
	h.Next()
	require.NotZero(t, h.pause(), "a server that accepts and hangs up would be dialled without a pause")
	h.Connected()
	h.since = h.since.Add(-stable)
	h.Next()
	require.Zero(t, h.pause(), "after a stable connection")
}
