package leader_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// Curator: testUncreatedPathGetLeader.
func TestMissingPathHasNoParticipantsAndNoLeader(t *testing.T) {
	t.Parallel()
	path, c := testzk.Path(t), own(t)
	require.Empty(t, listed(t, c, path))
	for participant, err := range leader.Observe(testzk.Context(t), c, path) {
		require.NoError(t, err)
		require.Zero(t, participant)
		break
	}
	stat, err := c.Exists(testzk.Context(t), path)
	require.ErrorIs(t, err, zk.ErrNoNode)
	require.Nil(t, stat, "a read creates no nodes")
}

// Curator: testId.
func TestIDIsThatOfTheParticipantTheLeaderAndTheNode(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"latch", "lock"} {
		for _, id := range []string{"A is for apple", "größe ✓"} {
			path, c := testzk.Path(t), own(t)
			var node string
			if kind == "latch" {
				node = await(t, started(t, c, path, leader.WithID(id))).Path()
			} else {
				node = stand(t, c, path, leader.WithID(id)).leads(t).Path()
			}
			all := queued(t, own(t), path, 1)
			require.Equal(t, id, string(all[0].Data))
			require.True(t, all[0].Holds)
			require.Equal(t, node, all[0].Node)
			for participant, err := range leader.Observe(testzk.Context(t), own(t), path) {
				require.NoError(t, err)
				require.Equal(t, all[0], participant)
				break
			}
			data, _, err := testzk.Observer(t).Get(node)
			require.NoError(t, err)
			require.Equal(t, id, string(data))
			require.Regexp(t, `^`+path+`/_c_[0-9a-f-]{36}-`+kind+`-[0-9]{10}$`, node)
		}
	}
}

// Curator: LeaderSelectorParticipants.testBasic.
func TestAllCandidatesReadTheSameParticipantsAndLeader(t *testing.T) {
	t.Parallel()
	const members = 10
	path, clients := testzk.Path(t), []*framework.Client{own(t), own(t)}
	var want []string
	for i := range members {
		want = append(want, strconv.Itoa(i))
		stand(t, clients[i%2], path, leader.WithID(want[i]))
		queued(t, clients[i%2], path, i+1)
	}
	for _, c := range clients {
		var ids []string
		for i, p := range queued(t, c, path, members) {
			ids = append(ids, string(p.Data))
			require.Equal(t, i == 0, p.Holds)
		}
		require.Equal(t, want, ids)
	}
}

func TestForeignChildrenAreNotParticipants(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Load(map[string]string{
			electionPath + "/stray": "s", electionPath + "/other-0000000000": "o",
		}))
		c := member(t, srv, "c")
		e := stand(t, c, electionPath, leader.WithID("c"))
		e.leads(t)
		all := queued(t, c, electionPath, 1)
		require.Equal(t, "c", string(all[0].Data))
	})
}

func TestObserverReportsEachLeaderAndNoOther(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx, stop := context.WithCancel(t.Context())
		seen, ended := make(chan string, 100), make(chan struct{})
		observer := member(t, srv, "observer")
		go func() {
			defer close(ended)
			for participant, err := range leader.Observe(ctx, observer, electionPath) {
				if err != nil {
					seen <- "?"
				} else {
					seen <- string(participant.Data)
				}
			}
		}()
		settle()
		first := stand(t, member(t, srv, "first"), electionPath, leader.WithID("first"))
		settle()
		second := stand(t, member(t, srv, "second"), electionPath, leader.WithID("second"))
		settle()
		first.stop()
		settle()
		second.stop()
		settle()
		stop()
		<-ended
		close(seen)
		var history []string
		for participant := range seen {
			history = append(history, participant)
		}
		require.Equal(t, []string{"", "first", "second", ""}, history)
	})
}
