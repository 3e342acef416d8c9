package conn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServersAreTriedInRounds(t *testing.T) {
	servers := []string{"a:1", "b:2", "c:3", "d:4"}
	h := newHosts(servers, time.Second, nil)
	require.Equal(t, 4, h.count())
	var first, second []string
	for range servers {
		server := h.next()
		first = append(first, server)
	}
	for range servers {
		server := h.next()
		second = append(second, server)
	}
	require.ElementsMatch(t, servers, first)
	require.Equal(t, first, second)
	require.Equal(t, []string{"a:1", "b:2", "c:3", "d:4"}, servers, "the caller's list was changed")
}

func TestFirstServerIsRandom(t *testing.T) {
	starts := map[string]bool{}
	for range 200 {
		server := newHosts([]string{"a:1", "b:2"}, time.Second, nil).next()
		starts[server] = true
	}
	require.Len(t, starts, 2, "all clients start with the same server")
}

func TestPausesAreRandomUpToALimitAfterTheFirstRound(t *testing.T) {
	for _, row := range []struct{ longest, first, later time.Duration }{
		{longestPause, longestFirstPause, longestPause},
		{300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
	} {
		bound := time.Duration(0) // of the last random number
		largest := func(n int64) int64 { bound = time.Duration(n - 1); return n - 1 }
		h := newHosts([]string{"a:1", "b:2", "c:3"}, row.longest, largest)
		for round := range 1000 {
			for range 3 {
				h.next()
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
				require.Equal(t, round > 0, bound == pause, "the whole pause is random")
			}
		}
	}
}

func TestNewServersAreTriedAtOnce(t *testing.T) {
	h := newHosts([]string{"a:1", "b:2"}, time.Second, nil)
	for range 10 {
		h.next()
	}
	h.replace([]string{"c:3"})
	require.Equal(t, 1, h.count())
	require.False(t, h.has("a:1"))
	next := h.next()
	require.Equal(t, "c:3", next)
	require.Zero(t, h.pause())
}

func TestPausesDiffer(t *testing.T) {
	h := newHosts([]string{"a:1"}, time.Second, nil)
	h.next()
	h.next()
	pauses := map[time.Duration]bool{}
	for range 100 {
		pauses[h.pause()] = true
	}
	require.Greater(t, len(pauses), 10, "all clients would come back at the same moment")
}

func TestOnlyAStableConnectionForgetsFailedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts([]string{"a:1"}, time.Second, nil)
		for range 3 {
			h.next()
		}
		h.connected()
		time.Sleep(stableAfter - 1)
		h.next()
		require.NotZero(t, h.pause(), "it would dial a server that closes all connections without a pause")
		h.connected()
		time.Sleep(stableAfter)
		h.next()
		require.Zero(t, h.pause(), "after a stable connection")
	})
}

func TestAllAddressesOfANameAreTried(t *testing.T) {
	h := newHosts([]string{"zk:1", "1.2.3.4:1"}, time.Second, nil)
	require.Equal(t, 2, h.count())
	addresses := []string{"a", "b", "c"}
	var tried []string
	for range addresses {
		tried = append(tried, h.choose("zk:1", addresses))
		slices.Reverse(addresses) // name servers return them in another order each time
	}
	require.ElementsMatch(t, addresses, tried)
	require.Equal(t, 4, h.count())
	require.Equal(t, "d", h.choose("zk:1", []string{"a", "b", "c", "d"}), "want the new address")
	require.Contains(t, addresses, h.choose("zk:1", addresses), "want a new round")
	require.Equal(t, 4, h.count())
	for attempt := range 11 {
		h.next()
		require.Equal(t, attempt/4, h.round())
	}
	h.replace([]string{"zk:1"})
	require.Equal(t, 1, h.count())
}
