package leader_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// latches returns n latches of different clients, queued in the order of their names.
func latches(t *testing.T, srv *zktest.Server, n int) (all []*leader.Latch) {
	for i := range n {
		all = append(all, started(t, member(t, srv, strconv.Itoa(i)), electionPath))
		settle()
	}
	return all
}

// listened returns a started Latch and a recorder that listens to it.
func listened(t *testing.T, c *framework.Client, opts ...leader.Option) (*leader.Latch, *recorder) {
	l, e := newLatch(t, c, electionPath, opts...), &recorder{}
	t.Cleanup(l.Listen(e.add))
	require.NoError(t, l.Start(context.Background()))
	t.Cleanup(func() { _ = l.Close() })
	return l, e
}

// Curator: testWithCircuitBreaker.
func TestLatchLeadsAgainAfterEachOutage(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l, e := listened(t, member(t, srv, "c"))
		for range 4 {
			term := await(t, l)
			srv.Stop()
			outage()
			require.ErrorIs(t, term.Err(), framework.ErrSessionLost)
			require.Nil(t, l.Term())
			require.NoError(t, srv.Start())
			time.Sleep(patience)
			require.Greater(t, l.Term().Token(), term.Token())
		}
		require.Equal(t, "+-+-+-+-+", e.history())
		require.Len(t, nodes(srv), 1)
	})
}

// Curator: testLostConnection.
func TestOneCandidateLeadsAfterAnOutage(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := latches(t, srv, 10)
		require.Len(t, leading(all), 1)
		srv.Stop()
		outage()
		require.Empty(t, leading(all))
		require.NoError(t, srv.Start())
		time.Sleep(patience)
		require.Len(t, leading(all), 1)
		outage()
		require.Len(t, nodes(srv), 10)
	})
}

// Curator: testGetChildrenHitsNoNode.
func TestCandidatesQueueAgainAfterTheServerLostItsData(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := latches(t, srv, 3)
		term := all[0].Term()
		require.NotNil(t, term)
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.NoError(t, srv.Start())
		time.Sleep(patience)
		require.ErrorIs(t, term.Err(), framework.ErrSessionLost)
		require.Len(t, leading(all), 1)
		require.Len(t, nodes(srv), 3)
	})
}

// Curator: testSessionInterruptionDoNotCauseBrainSplit.
func TestNodeOfALostSessionElectsNoLeader(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := latches(t, srv, 2)
		term := all[0].Term()
		srv.Client("0").Cut()
		testzk.Closes(t, term.Done(), "the term does not end")
		srv.Client("0").Heal()
		require.Contains(t, srv.Tree(), term.Path(), "the servers have not yet expired the session")
		for end := time.Now().Add(testzk.SessionTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			require.Nil(t, all[0].Term())
		}
		require.NotNil(t, all[1].Term())
		candidates := queued(t, member(t, srv, "observer"), electionPath, 2)
		require.Equal(t, all[1].Term().Path(), candidates[0].Node)
		require.Greater(t, candidates[1].Token, all[1].Term().Token(), "it has queued again, behind")
	})
}

// Curator: testWatchedNodeDeletedOnReconnect.
func TestCandidateLeadsIfTheLeaderResignedDuringItsReconnect(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), electionPath)
		match := fault.Match{Client: "second", Op: fault.OpGetData, Path: await(t, first).Path()}
		read := srv.On(match, fault.Hold())
		second := started(t, member(t, srv, "second"), electionPath)
		require.NoError(t, read.Wait(t.Context()))
		srv.Client("second").Refuse(true)
		srv.Client("second").Reset()
		require.NoError(t, first.Close())
		settle()
		read.Release()
		srv.Client("second").Refuse(false)
		settle()
		require.NotNil(t, second.Term())
		require.Len(t, nodes(srv), 1)
	})
}

// Curator: testResettingOfLeadershipAfterConcurrentLeadershipChange.
func TestCandidatesThatLoseTheirSessionsTogetherElectOne(t *testing.T) {
	for _, faster := range []string{"0", "1"} {
		t.Run(faster, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				all := latches(t, srv, 2)
				term := all[0].Term()
				other := map[string]string{"0": "1", "1": "0"}[faster]
				enter := srv.On(fault.Match{Client: other, Op: fault.OpCreate}, fault.Hold())
				expire(t, srv, "0")
				expire(t, srv, "1")
				require.NoError(t, enter.Wait(t.Context()))
				settle()
				require.ErrorIs(t, term.Err(), framework.ErrSessionLost)
				require.Len(t, nodes(srv), 1)
				i, _ := strconv.Atoi(faster)
				require.NotNil(t, all[i].Term())
				enter.Release()
				settle()
				require.Len(t, leading(all), 1)
				require.NotNil(t, all[i].Term())
				require.Len(t, nodes(srv), 2)
			})
		})
	}
}

// Curator: testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved.
func TestCandidateThatListedAFormerLeaderLeads(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), electionPath)
		node := await(t, first).Path()
		reads := []*fault.Rule{
			srv.On(fault.Match{Client: "0", Op: fault.OpGetData, Path: node}, fault.Hold()),
			srv.On(fault.Match{Client: "1", Op: fault.OpGetData, Path: node}, fault.Hold()),
		}
		all := latches(t, srv, 2)
		for _, read := range reads {
			require.NoError(t, read.Wait(t.Context()), "it has read the queue and is about to watch")
		}
		require.NoError(t, first.Close())
		for _, read := range reads {
			read.Release()
		}
		settle()
		require.NotNil(t, all[0].Term())
		require.Len(t, leading(all), 1)
		require.NoError(t, all[0].Close())
		settle()
		require.NotNil(t, all[1].Term())
	})
}

// Curator: testSessionErrorPolicy, testErrorPolicies.
func TestLossPolicyDecidesWhetherAnInterruptionEndsATerm(t *testing.T) {
	for _, test := range []struct {
		policy framework.LossPolicy
		short  string // changes in a short interruption
		long   error  // error of the term in a long interruption
	}{
		{framework.UntilDeadline, "+", framework.ErrSessionLost},
		{framework.Strict, "+-+", framework.ErrSuspended},
	} {
		t.Run(test.policy.String(), func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				l, e := listened(t, member(t, srv, "c", framework.WithLossPolicy(test.policy)))
				term := await(t, l)
				srv.Client("c").Drop()
				settle()
				require.Equal(t, test.short, e.history())
				require.Equal(t, test.policy == framework.UntilDeadline, term == l.Term())
				require.NotNil(t, l.Term())
				require.Len(t, nodes(srv), 1, "the former node is deleted")

				term = l.Term()
				srv.Stop()
				settle()
				require.Equal(t, test.policy == framework.UntilDeadline, term.Err() == nil)
				outage()
				require.ErrorIs(t, term.Err(), test.long)
				require.Equal(t, test.short+"-", e.history())
				require.ErrorIs(t, e.changes()[len(test.short)].Err, test.long)
				require.NoError(t, srv.Start())
				time.Sleep(patience)
				require.NotNil(t, l.Term())
				require.Len(t, nodes(srv), 1)
			})
		})
	}
}

// Curator: testInCluster.
func TestLatchContinuesOnAnotherServer(t *testing.T) {
	t.Parallel()
	c, takeAway := twoWays(t)
	path := testzk.Path(t)
	first := started(t, c, path)
	term := await(t, first)
	second := started(t, own(t), path)
	queued(t, c, path, 2)
	takeAway()
	require.Same(t, term, first.Term())
	require.Nil(t, second.Term())
	require.NoError(t, first.Close())
	await(t, second)
}

func TestCandidateWithADeletedNodeQueuesAgain(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := latches(t, srv, 2)
		for range 3 {
			term := all[0].Term()
			require.NotNil(t, term)
			candidates := queued(t, member(t, srv, "observer"), electionPath, 2)
			require.NoError(t, srv.Delete(candidates[1].Node))
			settle()
			require.Len(t, nodes(srv), 2)
			require.NoError(t, srv.Delete(term.Path()))
			settle()
			require.ErrorIs(t, term.Err(), recipes.ErrNodeDeleted)
			require.Len(t, nodes(srv), 2)
			all[0], all[1] = all[1], all[0]
		}
	})
}
