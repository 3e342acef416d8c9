package leader_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// Curator: testBasic.
func TestLatchesLeadInTheOrderOfTheirStart(t *testing.T) {
	t.Parallel()
	path, clients := testzk.Path(t), []*framework.Client{own(t), own(t)}
	var all []*leader.Latch
	for i := range 6 {
		all = append(all, started(t, clients[i%2], path))
		queued(t, clients[i%2], path, i+1)
	}
	var token int64
	for i, l := range all {
		term := await(t, l)
		require.Equal(t, []*leader.Term{term}, leading(all))
		require.Greater(t, term.Token(), token)
		token = term.Token()
		require.NoError(t, l.Close(), "latch %d", i)
		require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
	}
	testzk.Empty(t, path)
}

// Curator: testWaiting, testBasicAlt.
func TestManyLatchesHaveOneLeader(t *testing.T) {
	t.Parallel()
	path, clients := testzk.Path(t), []*framework.Client{own(t), own(t)}
	for range 10 {
		var busy atomic.Bool
		var running sync.WaitGroup
		for i := range 10 {
			l := started(t, clients[i%2], path)
			running.Go(func() {
				if _, err := l.Await(testzk.Context(t)); err != nil || !busy.CompareAndSwap(false, true) {
					t.Errorf("want exactly one leader: %v", err)
				}
				busy.Store(false)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
	}
	testzk.Empty(t, path)
}

// Curator: testCorrectWatching.
func TestCloseInTheMiddleOfTheQueueElectsNoLeader(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		var all []*leader.Latch
		for i := range 5 {
			all = append(all, started(t, member(t, srv, strconv.Itoa(i)), electionPath))
			settle()
		}
		term := await(t, all[0])
		for _, middle := range []int{2, 1, 3} {
			require.NoError(t, all[middle].Close())
			settle()
			require.Equal(t, []*leader.Term{term}, leading(all))
		}
		require.NoError(t, all[0].Close())
		settle()
		require.NotNil(t, all[4].Term(), "all nodes ahead of it are deleted")
		require.Len(t, leading(all), 1)
	})
}

// Curator: testNoServerAtStart.
func TestLatchStartedBeforeTheServerLeadsOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		srv.Stop()
		l, e := newLatch(t, member(t, srv, "c"), electionPath), &recorder{}
		defer l.Listen(e.add)()
		require.NoError(t, l.Start(context.Background()))
		t.Cleanup(func() { _ = l.Close() })
		time.Sleep(10 * time.Minute)
		require.Nil(t, l.Term())
		require.NoError(t, srv.Start())
		time.Sleep(patience)
		require.NotNil(t, l.Term())
		require.Equal(t, "+", e.history())
		require.Len(t, nodes(srv), 1)
	})
}

// Curator: testProperCloseWithoutConnectionEstablished.
func TestLatchWithoutAServerClosesAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		srv.Stop()
		c := member(t, srv, "c")
		l := started(t, c, electionPath)
		time.Sleep(time.Minute)
		begun := time.Now()
		require.NoError(t, l.Close())
		require.LessOrEqual(t, time.Since(begun), time.Second)
		require.NoError(t, srv.Start())
		require.NoError(t, c.WaitConnected(testzk.Context(t)))
		outage()
		require.Zero(t, srv.Requests()[fault.OpCreate])
		require.Empty(t, srv.Tree())
	})
}

// Curator: testResetRace.
func TestLatchThatLosesItsSessionDuringTheCreateHasOneNode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create(electionPath, nil))
		enter := srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
		l := started(t, member(t, srv, "c"), electionPath)
		require.NoError(t, enter.Wait(t.Context()))
		expire(t, srv, "c")
		enter.Release()
		outage()
		require.NotNil(t, l.Term())
		require.Len(t, nodes(srv), 1)
	})
}

// Curator: testCreateDeleteRace.
func TestLatchClosedDuringTheCreateLeavesNoNode(t *testing.T) {
	for name, harm := range map[string]fault.Action{
		"request held": fault.Hold(), "request lost": fault.DropBefore(),
		"answer lost": fault.DropAfter(), "slow": fault.Delay(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				c := member(t, srv, "c")
				require.NoError(t, srv.Create(electionPath, nil))
				enter := srv.On(fault.Match{Op: fault.OpCreate}, harm)
				l := started(t, c, electionPath)
				require.NoError(t, enter.Wait(t.Context()))
				srv.Client("c").Refuse(true)
				require.NoError(t, l.Close())
				srv.ResetFaults()
				settle()
				settle()
				require.Empty(t, nodes(srv), "even though the session lives")
				require.True(t, c.State().IsConnected())
			})
		})
	}
}

func TestAllCallsOfAwaitReturnTheSameTerm(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := await(t, started(t, member(t, srv, "first"), electionPath))
		l := started(t, member(t, srv, "c"), electionPath)
		terms := make(chan *leader.Term, 100)
		for range cap(terms) {
			go func() {
				term, _ := l.Await(context.Background())
				terms <- term
			}()
		}
		settle()
		require.Empty(t, terms)
		require.NoError(t, first.Resign())
		settle()
		require.Len(t, terms, cap(terms))
		for range cap(terms) {
			require.Same(t, l.Term(), <-terms)
		}
	})
}

func TestAwaitSkipsAnEndedTerm(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := started(t, member(t, srv, "c"), electionPath)
		first := await(t, l)
		require.Same(t, first, await(t, l), "the current term")
		require.NoError(t, first.Resign())
		require.Nil(t, l.Term())
		second := await(t, l)
		require.NotSame(t, first, second)
		require.Greater(t, second.Token(), first.Token())
		require.NoError(t, second.Err())
	})
}

// Curator: testAclErrorWithLeader.
func TestAwaitReturnsARefusalAndLatchLeadsLater(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		owner := member(t, srv, "owner", framework.WithAuth("digest", []byte("user:secret")))
		_, err := owner.Create(testzk.Context(t), "/service", nil, framework.ACL(zk.AuthACL(zk.PermAll)...))
		require.NoError(t, err)
		l := started(t, member(t, srv, "c"), electionPath)
		for range 3 {
			_, err := l.Await(testzk.Context(t))
			require.ErrorIs(t, err, zk.ErrNoAuth)
			require.Nil(t, l.Term())
		}
		_, err = owner.SetACL(testzk.Context(t), "/service", zk.WorldACL(zk.PermAll), -1)
		require.NoError(t, err)
		begun := time.Now()
		require.NoError(t, await(t, l).Err())
		require.Less(t, time.Since(begun), 3*time.Second)
	})
}

// Curator: testRelativePath.
func TestAwaitReturnsARefusedDeleteAndLatchLeadsLater(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		for _, opts := range [][]leader.Option{nil, {leader.WithLockDelay(time.Second)}} {
			l := started(t, member(t, srv, "c"), electionPath, opts...)
			term := await(t, l)
			match := fault.Match{Op: fault.OpDelete, Path: term.Path(), Times: fault.Always}
			refused := srv.On(match, fault.Fail(zktest.NoAuth))
			require.ErrorIs(t, term.Resign(), zk.ErrNoAuth)
			_, err := l.Await(testzk.Context(t))
			require.ErrorIs(t, err, zk.ErrNoAuth)
			require.Len(t, nodes(srv), 1)
			refused.Remove()
			time.Sleep(5 * time.Second)
			require.NotNil(t, l.Term())
			require.NoError(t, l.Close())
		}
	})
}

func TestInvalidPathsAreRefused(t *testing.T) {
	t.Parallel()
	c := testzk.Client(t, testzk.Connect())
	for _, path := range []string{"", "/", "service", "service/leader", "/service/", "/a//b", "/a/../b"} {
		_, err := leader.NewLatch(c, path)
		require.ErrorIs(t, err, framework.ErrInvalidPath, "%q", path)
		_, err = leader.New(c, path)
		require.ErrorIs(t, err, framework.ErrInvalidPath, "%q", path)
	}
}
