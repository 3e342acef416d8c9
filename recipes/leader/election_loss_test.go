package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// withCauses runs an Election of c. The channel gets the causes of the ends of lead's contexts.
func withCauses(t *testing.T, c *framework.Client, opts ...leader.Option) (*candidacy, <-chan error) {
	t.Helper()
	causes := make(chan error, 1000)
	return standWith(t, newElection(t, c, electionPath, opts...), func(ctx context.Context, _ *leader.Term) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	}), causes
}

// Curator: LeaderSelector's testErrorPolicies.
func TestLossPolicyDecidesWhetherAnInterruptionEndsLead(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		for _, test := range []struct {
			policy framework.LossPolicy
			short  []error // causes of a short interruption
			long   error   // cause of a long interruption
		}{
			{framework.UntilDeadline, nil, framework.ErrSessionLost},
			{framework.Strict, []error{framework.ErrSuspended}, framework.ErrSuspended},
		} {
			c, causes := withCauses(t, member(t, srv, test.policy.String(), framework.WithLossPolicy(test.policy)))
			c.leads(t)
			srv.Client(test.policy.String()).Drop()
			settle()
			require.Len(t, causes, len(test.short), test.policy)
			for _, cause := range test.short {
				require.ErrorIs(t, <-causes, cause)
				c.leads(t)
			}
			require.NotNil(t, c.Term())
			require.Len(t, nodes(srv), 1)

			srv.Stop()
			outage()
			require.ErrorIs(t, <-causes, test.long)
			require.Nil(t, c.Term())
			require.NoError(t, srv.Start())
			c.leads(t)
			outage()
			require.Len(t, nodes(srv), 1)
			c.stop()
			<-c.done
		}
	})
}

// Curator: testServerDying.
func TestLeadEndsBeforeAnotherCandidateCanLead(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c, causes := withCauses(t, member(t, srv, "c"))
		term := c.leads(t)
		settle()
		begun := time.Now()
		srv.Client("c").Cut()
		require.ErrorIs(t, <-causes, framework.ErrSessionLost)
		require.Less(t, time.Since(begun), testzk.SessionTimeout)
		require.Contains(t, srv.Tree(), term.Path())
		require.True(t, term.ValidUntil().IsZero())
		_, err := term.Guard(context.Background())
		require.ErrorIs(t, err, framework.ErrSessionLost)
		srv.Client("c").Heal()
	})
}

// Curator: testLeaderNodeDeleteOnInterrupt.
func TestNodeOfADisconnectedLeaderIsDeletedAfterAnInterrupt(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		client := member(t, srv, "c")
		c, causes := withCauses(t, client)
		term := c.leads(t)
		session := srv.Client("c").Sessions()[0].ID
		srv.Stop()
		require.True(t, c.Interrupt())
		require.ErrorIs(t, <-causes, leader.ErrInterrupted)
		settle()
		require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
		require.NoError(t, srv.Start())
		next := c.leads(t)
		require.NotEqual(t, term.Path(), next.Path())
		require.Len(t, nodes(srv), 1)
		require.Equal(t, session, srv.Client("c").Sessions()[0].ID,
			"the node was deleted by a request and not with the session")
	})
}

// Curator: testRaceAtStateChanged. The delay makes time between the front of the queue and the
// call.
func TestTermLostBeforeItBeginsDoesNotCallLead(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		const delay = 10 * time.Second
		crashed := stand(t, member(t, srv, "crashed"), electionPath, leader.WithLockDelay(delay))
		token := crashed.leads(t).Token()
		c := stand(t, member(t, srv, "c"), electionPath, leader.WithLockDelay(delay))
		settle()
		srv.Client("crashed").Cut()
		expire(t, srv, "crashed")
		time.Sleep(delay / 2)
		require.Len(t, nodes(srv), 1, "it is the first node and waits")
		expire(t, srv, "c")
		time.Sleep(delay - time.Second)
		require.Empty(t, c.terms)
		require.Nil(t, c.Term())
		time.Sleep(2 * time.Second)
		term := c.leads(t)
		require.NoError(t, term.Err())
		require.Greater(t, term.Token(), token)
		require.Empty(t, c.terms)
		srv.Client("crashed").Heal()
	})
}

// Curator: testKillSessionThenCloseShouldElectNewLeader, testKillServerThenCloseShouldElectNewLeader.
func TestOtherCandidateLeadsAfterOneThatStopsAfterALoss(t *testing.T) {
	for name, harm := range map[string]func(*testing.T, *zktest.Server){
		"session expired": func(t *testing.T, srv *zktest.Server) {
			expire(t, srv, "a")
			expire(t, srv, "b")
		},
		"server restarted": func(t *testing.T, srv *zktest.Server) {
			srv.Stop()
			outage()
			require.NoError(t, srv.Start())
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a := stand(t, member(t, srv, "a"), electionPath)
				term := a.leads(t)
				b := stand(t, member(t, srv, "b"), electionPath)
				settle()
				harm(t, srv)
				outage()
				require.ErrorIs(t, term.Err(), framework.ErrSessionLost)
				require.Len(t, nodes(srv), 2, "both are candidates again")
				first, second := a, b
				if b.Term() != nil {
					first, second = b, a
				}
				require.NotNil(t, first.Term())
				require.Nil(t, second.Term())
				first.stop()
				require.ErrorIs(t, first.returns(t), context.Canceled)
				settle()
				require.NotNil(t, second.Term())
				require.Len(t, nodes(srv), 1)
			})
		})
	}
}

// Curator: LeaderSelectorCluster.testRestart.
func TestElectionContinuesOnAnotherServer(t *testing.T) {
	t.Parallel()
	c, takeAway := twoWays(t)
	e := stand(t, c, testzk.Path(t))
	term := e.leads(t)
	takeAway()
	require.NoError(t, term.Err())
	_, err := term.Guard(testzk.Context(t))
	require.NoError(t, err)
	require.Same(t, term, e.Term())
	require.Empty(t, e.terms)
}

// Curator: LeaderSelectorCluster.testLostRestart.
func TestLeaderLeadsAgainAfterTheServersLostItsNode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c, causes := withCauses(t, member(t, srv, "c"))
		term := c.leads(t)
		srv.Stop()
		require.ErrorIs(t, <-causes, framework.ErrSessionLost)
		require.NoError(t, srv.Delete(term.Path()))
		require.NoError(t, srv.Start())
		require.Greater(t, c.leads(t).Token(), term.Token())
		outage()
		require.Len(t, nodes(srv), 1)
		require.Empty(t, causes)
	})
}

// Curator: flappingTest.
func TestCandidateThatLosesItsConnectionAfterTheCreateDoesNotBlock(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create(electionPath, nil))
		enter := srv.On(fault.Match{Client: "a", Op: fault.OpCreate}, fault.DropAfter())
		client := member(t, srv, "a")
		require.NoError(t, client.WaitConnected(testzk.Context(t)))
		a := stand(t, client, electionPath)
		require.NoError(t, enter.Wait(t.Context()))
		srv.Client("a").Refuse(true)
		synctest.Wait() // until the transaction is applied
		require.Len(t, nodes(srv), 1)
		b := stand(t, member(t, srv, "b"), electionPath)
		term := b.leads(t)
		time.Sleep(6 * time.Second)
		require.Len(t, nodes(srv), 1)
		require.Empty(t, a.terms)
		srv.Client("a").Refuse(false)
		time.Sleep(3 * time.Second) // up to two seconds to connect and one to queue again
		require.Len(t, nodes(srv), 2)
		require.Same(t, term, b.Term())
		b.stop()
		require.Greater(t, a.leads(t).Token(), term.Token())
		require.Len(t, nodes(srv), 1)
	})
}

// Curator: createProtectedNodeInBackgroundTest, createProtectedNodeInBackgroundTestNoRetry.
func TestCandidateThatGivesUpBeforeTheReplyLeavesNoNode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		client := member(t, srv, "c")
		require.NoError(t, client.WaitConnected(testzk.Context(t)))
		session := srv.Client("c").Sessions()[0].ID
		require.NoError(t, srv.Create(electionPath, nil))
		enter := srv.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
		c := stand(t, client, electionPath)
		require.NoError(t, enter.Wait(t.Context()))
		synctest.Wait() // until the create is applied
		srv.Client("c").Refuse(true)
		c.stop()
		require.ErrorIs(t, c.returns(t), context.Canceled)
		require.Len(t, nodes(srv), 1)
		srv.Client("c").Refuse(false)
		settle()
		require.Empty(t, nodes(srv))
		require.Equal(t, session, srv.Client("c").Sessions()[0].ID,
			"the node was deleted by a request and not with the session")
	})
}

func TestElectionStartedBeforeTheServerLeads(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		srv.Stop()
		c := stand(t, member(t, srv, "c"), electionPath)
		time.Sleep(10 * time.Minute)
		require.NoError(t, srv.Start())
		time.Sleep(patience)
		require.NotNil(t, c.Term())
		require.Len(t, c.terms, 1)
	})
}
