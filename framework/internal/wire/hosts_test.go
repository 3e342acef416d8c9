package wire

import (
	"slices"
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

func TestPausesComeAfterTheFirstRoundAndAreAnythingUpToABound(t *testing.T) {
	for _, row := range []struct{ longest, first, later time.Duration }{
		{longestPause, firstBound, longestPause},
		{300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
	} {
		bound := time.Duration(0) // what the random numbers are drawn from
		largest := func(n int64) int64 { bound = time.Duration(n - 1); return n - 1 }
		h := newHosts([]string{"a:1", "b:2", "c:3"}, row.longest, never, largest)
		for round := range 1000 {
			for range 3 {
				h.Next()
				bound = -1
				pause := h.pause()
				switch round {
				case 0:
					require.Zero(t, pause)
				case 1:
					require.Equal(t, row.first, pause)
				default:
					require.Equal(t, row.later, pause)
				}
				require.Equal(t, round > 0, bound == pause, "all of it is left to chance")
			}
		}
	}
}

func TestOtherServersAreTriedAtOnce(t *testing.T) {
	h := newHosts([]string{"a:1", "b:2"}, time.Second, never, nil)
	for range 10 {
		h.Next()
	}
	h.replace([]string{"c:3"})
	require.Equal(t, 1, h.Len())
	require.False(t, h.has("a:1"))
	next, _ := h.Next()
	require.Equal(t, "c:3", next)
	require.Zero(t, h.pause())
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

func TestAllAddressesOfANameAreTried(t *testing.T) {
	h := newHosts([]string{"zk:1", "1.2.3.4:1"}, time.Second, never, nil)
	require.Equal(t, 2, h.Len())
	addresses := []string{"a", "b", "c"}
	var tried []string
	for range addresses {
		tried = append(tried, h.choose("zk:1", addresses))
		slices.Reverse(addresses) // name servers return them in another order each time
	}
	require.ElementsMatch(t, addresses, tried)
	require.Equal(t, 4, h.Len())
	require.Equal(t, "d", h.choose("zk:1", []string{"a", "b", "c", "d"}), "a new one")
	require.Contains(t, addresses, h.choose("zk:1", addresses), "and again")
	require.Equal(t, 4, h.Len())
	for attempt := range 11 {
		h.Next()
		require.Equal(t, attempt/4, h.round())
	}
	h.replace([]string{"zk:1"})
	require.Equal(t, 1, h.Len())
}
