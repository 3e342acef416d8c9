package barrier_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func requireCycle(t *testing.T, srv *zktest.Server, n, generation int) {
	t.Helper()
	require.Empty(t, childrenOf(t, srv))
	data, err := srv.Get(path)
	require.NoError(t, err)
	require.Contains(t, string(data), fmt.Sprintf(`{"parties":%d,"generation":%d,"passed":[`, n, generation))
}

func TestPartiesPassTogetherAgainAndAgain(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		for generation := range 5 {
			waiting := parties(t, all[:2], 3)
			settle()
			allWait(waiting)
			for _, g := range returned(append(waiting, parties(t, all[2:], 3)...)) {
				require.EqualValues(t, generation, g)
			}
			requireCycle(t, srv, 3, generation+1)
		}
	})
}

func TestMorePartiesThanTheBarrierHas(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		counts := map[int64]int{}
		for _, g := range returned(parties(t, clients(t, srv, 12), 3)) {
			counts[g]++
		}
		require.Equal(t, map[int64]int{0: 3, 1: 3, 2: 3, 3: 3}, counts)
		requireCycle(t, srv, 3, 4)
	})
}

func TestPartyThatDiesOrGivesUpIsNotCounted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		waiting := parties(t, all[:2], 3)
		settle()
		srv.Client("c0").Cut()
		outage()
		waiting = append(waiting, parties(t, all[2:3], 3)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := newCyclic(t, client(t, srv, "d"), path, 4).Await(ctx)
		require.ErrorIs(t, err, barrier.ErrParties)
		given := begin(t, func(context.Context) (int64, error) { return newCyclic(t, all[3], path, 3).Await(ctx) })
		cancel()
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(given.fails(context.Canceled)))
		settle()
		allWait(waiting)
		require.Len(t, childrenOf(t, srv), 2)
		srv.Client("c0").Heal() // it comes back with another session
		for _, g := range returned(waiting) {
			require.Zero(t, g)
		}
		requireCycle(t, srv, 3, 1)
	})
}

// The last party sees three, and one of them dies before they are counted.
func TestPartyThatDiesBeforeTheTripIsNotCounted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		waiting := parties(t, all[:2], 3)
		settle()
		trip := srv.On(fault.Match{Client: "c2", Op: fault.OpMulti}, fault.Hold())
		waiting = append(waiting, parties(t, all[2:3], 3)...)
		require.NoError(t, trip.Wait(testzk.Context(t)))
		waiting[0].cancel()
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(waiting[0].fails(context.Canceled)))
		trip.Release()
		settle()
		waiting[1].waits()
		waiting[2].waits()
		for _, g := range returned(append(waiting[1:], parties(t, all[3:], 3)...)) {
			require.Zero(t, g)
		}
	})
}

// The last party dies before the parties are counted. The others do not hang: another one comes.
func TestLastPartyThatDiesIsReplaced(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		waiting := parties(t, all[:2], 3)
		settle()
		held := srv.On(fault.Match{Client: "c2", Op: fault.OpMulti}, fault.Hold())
		last := parties(t, all[2:3], 3)
		require.NoError(t, held.Wait(testzk.Context(t)))
		srv.Client("c2").Cut()
		outage()
		waiting[0].waits()
		for _, g := range returned(append(waiting, parties(t, all[3:], 3)...)) {
			require.Zero(t, g)
		}
		srv.ResetFaults()
		outage()
		last[0].waits() // in the next generation
	})
}

// A party gives up when it has been counted already, and does not know it yet.
func TestPartyThatWasCountedSucceedsAlthoughItGivesUp(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 2)
		first := await(t, newCyclic(t, all[0], path, 2))
		settle()
		srv.Client("c0").HoldEvents()
		require.Zero(t, await(t, newCyclic(t, all[1], path, 2)).returns())
		first.waits()
		first.cancel()
		srv.Client("c0").ReleaseEvents()
		require.Zero(t, first.returns())
		requireCycle(t, srv, 2, 1)
	})
}

// A party has been counted, and loses its session before it learns that.
func TestPartyThatWasCountedSucceedsAlthoughItsSessionIsLost(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 2)
		first := await(t, newCyclic(t, all[0], path, 2))
		settle()
		srv.Client("c0").Cut()
		require.Zero(t, await(t, newCyclic(t, all[1], path, 2)).returns())
		outage()
		first.waits()
		srv.Client("c0").Heal()
		require.Zero(t, first.returns())
		requireCycle(t, srv, 2, 1)
	})
}

// A slow party has been counted, and the others have passed more generations meanwhile.
func TestSlowPartyReturnsItsGeneration(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		slow := await(t, newCyclic(t, all[0], path, 2))
		settle()
		srv.Client("c0").HoldEvents()
		require.Zero(t, await(t, newCyclic(t, all[1], path, 2)).returns())
		returned(parties(t, all[1:], 2))
		returned(parties(t, all[1:], 2))
		slow.waits()
		srv.Client("c0").ReleaseEvents()
		require.Zero(t, slow.returns())
		requireCycle(t, srv, 2, 3)
	})
}

// The create of a party is lost on its way to the server. The others pass more generations before the
// party can find out.
func TestPartyThatWasNeverThereDoesNotPass(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		returned(parties(t, all[1:], 2))
		create := srv.On(fault.Match{Client: "c0", Op: fault.OpMulti, Path: path}, fault.DropBefore())
		lost := await(t, newCyclic(t, all[0], path, 2))
		require.NoError(t, create.Wait(testzk.Context(t)))
		srv.Client("c0").Cut()
		for range 3 {
			returned(parties(t, all[1:], 2))
		}
		srv.Client("c0").Heal()
		require.Equal(t, framework.Unknown, framework.OutcomeOf(lost.fails(zk.ErrConnectionClosed)))
		requireCycle(t, srv, 2, 4)
	})
}

// The create of a party waits at a follower. The party has lost the connection, finds no node, and comes again
// through the ZooKeeper leader. Then it is back at the follower, which passes the create on.
func TestPartyThatComesAgainIsCountedOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		follower := srv.Follower(0)
		c := testzk.Connected(t, follower.MemAddr()+","+srv.MemAddr(),
			framework.WithDialer(srv.Client("a").DialContext), framework.WithRandom(func(int64) int64 { return 0 }))
		b := newCyclic(t, c, path, 3)
		early := await(t, b)
		settle()
		early.cancel()
		early.fails(context.Canceled) // the node of the barrier is there

		follower.HoldRequests()
		first := await(t, b)
		settle()
		require.Positive(t, follower.Waiting())
		srv.Client("a").Drop() // to the leader
		settle()
		srv.On(fault.Match{Client: "a", Op: fault.OpGetChildren2, Times: fault.Always}, fault.DropBefore())
		srv.Client("a").Drop() // to the follower
		settle()
		follower.ReleaseRequests()
		settle()
		second := await(t, newCyclic(t, client(t, srv, "b"), path, 3))
		settle()
		second.waits()
		srv.ResetFaults()
		require.Zero(t, await(t, newCyclic(t, client(t, srv, "c"), path, 3)).returns())
		require.Zero(t, first.returns()+second.returns())
	})
}

// A party gives up and deletes its node. It loses its connection before it learns that it was not counted, and
// the others pass more generations meanwhile. Its second request finds no node.
func TestPartyThatHasDeletedItsNodeDoesNotPass(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		others := clients(t, srv, 2)
		c := client(t, srv, "a", framework.WithRetry(retry.Never()))
		first := await(t, newCyclic(t, c, path, 2))
		settle()
		read := srv.On(fault.Match{Client: "a", Op: fault.OpGetData, Path: path}, fault.DropBefore())
		first.cancel()
		require.NoError(t, read.Wait(testzk.Context(t)))
		srv.Client("a").Cut()
		for range 3 {
			returned(parties(t, others, 2))
		}
		srv.Client("a").Heal()
		first.fails(context.Canceled)
		requireCycle(t, srv, 2, 3)
	})
}

func TestOutcomeOfAnAwaitWithoutAConnectionIsUnknown(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		b := newCyclic(t, client(t, srv, "a"), path, 2)
		w := await(t, b)
		settle()
		srv.Client("a").Cut()
		begun := time.Now()
		w.cancel()
		require.Equal(t, framework.Unknown, framework.OutcomeOf(w.fails(context.Canceled)))
		require.LessOrEqual(t, time.Since(begun), 2*time.Second)
		srv.Client("a").Heal()
		settle()
		require.Empty(t, childrenOf(t, srv))
		again := await(t, b)
		settle()
		again.waits()
		require.Zero(t, await(t, b).returns())
		again.returns()
	})
}

// The answer to each request in turn is lost.
func TestLostAnswersToAParty(t *testing.T) {
	for name, policy := range map[string]retry.Policy{"retries": nil, "no retries": retry.Never()} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				all := []*framework.Client{client(t, srv, "c0"), client(t, srv, "c1")}
				if policy != nil {
					all[0] = client(t, srv, "c0", framework.WithRetry(policy))
				}
				generation := 0
				for skip := range 8 {
					for _, action := range []fault.Action{fault.DropBefore(), fault.DropAfter()} {
						srv.On(fault.Match{Client: "c0", Path: path, Skip: skip}, action)
						for _, g := range returned(parties(t, all, 2)) {
							require.EqualValues(t, generation, g)
						}
						generation++
						requireCycle(t, srv, 2, generation)
						srv.ResetFaults()
					}
				}
			})
		})
	}
}

func TestNumbersOfPartiesMustAgree(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		w := await(t, newCyclic(t, c, path, 2))
		settle()
		_, err := newCyclic(t, c, path, 3).Await(t.Context())
		require.ErrorIs(t, err, barrier.ErrParties)
		require.ErrorContains(t, err, "3 here, 2 at the path")
		w.waits()
		require.NoError(t, srv.Create("/other", []byte("1")))
		for _, err := range []error{
			newLatch(t, c, "/other", 2).Wait(t.Context()), newLatch(t, c, "/other", 2).CountDown(t.Context()),
			newLatch(t, c, path, 2).Wait(t.Context()),
		} {
			require.ErrorIs(t, err, barrier.ErrParties)
		}
		_, err = newCyclic(t, c, "/other", 2).Await(t.Context())
		require.ErrorIs(t, err, barrier.ErrParties)
	})
}

// Generations are numbered with 63 bits. A party of the last but one is counted. No party joins the last.
func TestLastGenerationOfACyclicBarrier(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		data := fmt.Sprintf(`{"parties":1,"generation":%d,"passed":[]}`, int64(math.MaxInt64-1))
		require.NoError(t, srv.Create(path, []byte(data)))
		b := newCyclic(t, client(t, srv, "a"), path, 1)
		generation, err := b.Await(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, int64(math.MaxInt64-1), generation)
		_, err = b.Await(t.Context())
		require.ErrorIs(t, err, barrier.ErrParties)
		require.ErrorContains(t, err, "generation 9223372036854775807 is the last")
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		require.Empty(t, childrenOf(t, srv))
	})
}

func TestDeletedNodesOfACyclicBarrier(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		w := await(t, newCyclic(t, c, path, 2))
		settle()
		require.NoError(t, srv.Delete(path+"/"+childrenOf(t, srv)[0]))
		w.fails(barrier.ErrNodeDeleted)
		require.NoError(t, srv.Delete(path))
		require.Zero(t, await(t, newCyclic(t, c, path, 1)).returns())
	})
}

// The node of the barrier is deleted while a party has no connection. The others go on with the next
// node, which has generations of its own.
func TestPartyOfABarrierThatIsDeletedDoesNotPass(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		for _, counted := range []bool{false, true} {
			for generations := range 4 {
				all := clients(t, srv, 3)
				first := await(t, newCyclic(t, all[0], path, 2))
				settle()
				srv.Client("c0").Refuse(true)
				srv.Client("c0").Drop()
				if counted {
					require.Zero(t, await(t, newCyclic(t, all[1], path, 2)).returns())
				}
				require.NoError(t, srv.Delete(path))
				for range generations {
					returned(parties(t, all[1:], 2))
				}
				srv.Client("c0").Refuse(false)
				err := first.fails(barrier.ErrNodeDeleted)
				require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
				require.Equal(t, generations > 0, srv.Exists(path), "the party has created the barrier again")
				if generations > 0 {
					requireCycle(t, srv, 2, generations)
					require.NoError(t, srv.Delete(path))
				}
				for _, c := range all {
					require.NoError(t, c.Close())
				}
			}
		}
	})
}
