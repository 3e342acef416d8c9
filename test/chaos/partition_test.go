package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// A follower that is cut off from the leader answers reads and pings by itself for as long as
// syncLimit ticks, while the leader expires the sessions of its clients.
func TestHoldEndsInTimeWhenItsServerIsCutOffFromTheLeader(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	servers := newNetwork(t)
	e := ensemble.Start(t, 3, ensemble.WithTick(time.Second), ensemble.WithConfig("syncLimit", "20"),
		ensemble.WithQuorumLink(servers.between))
	leader, err := e.Leader(testzk.Context(t))
	require.NoError(t, err)
	follower := e.Servers()[0]
	if follower == leader {
		follower = e.Servers()[1]
	}
	holders := testzk.Connected(t, follower.Addr(), testzk.Mortal())
	other := testzk.Connected(t, leader.Addr())
	first, err := mutex.New(holders, lockPath)
	require.NoError(t, err)
	second, err := mutex.New(other, lockPath)
	require.NoError(t, err)
	held, err := first.Acquire(testzk.Context(t))
	require.NoError(t, err)

	servers.link(follower, leader).hold()
	next, err := second.Acquire(testzk.Context(t))
	require.NoError(t, err)
	require.ErrorIs(t, held.Err(), framework.ErrSessionLost,
		"two valid holds at a time; the first until %v", held.ValidUntil())
	require.Greater(t, next.Token(), held.Token())
	require.NoError(t, next.Release())
}
