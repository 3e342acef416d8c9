package acceptance_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p01Timeout = 3 * time.Second // session timeout
	p01Tick    = 200 * time.Millisecond
	p01Runs    = 100
)

// A holder's network falls silent, without a reset, at 100 different moments. Each time the hold
// ends at most one session timeout (3 s) after the last request that was answered. By the server's
// own clock it ends before the server deletes the lock node.
func TestP01_TheHoldEndsBeforeTheServerDeletesItsNode(t *testing.T) {
	if realzk.Wanted() != "" {
		t.Parallel()
		p01OnRealServer(t)
		return
	}
	sim.Run(t, p01Runs, p01InNoTime, zktest.WithTick(p01Tick))
}

// p01InNoTime is one run in virtual time, on a server that was started at its beginning.
func p01InNoTime(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	began := time.Now()
	holder := srv.Client("holder")
	client := testzk.Client(t, srv.MemAddr(), framework.WithSessionTimeout(p01Timeout),
		framework.WithDialer(holder.DialContext),
		framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N))
	hold := p01Hold(t, client, "/lock")
	work := hold.Context(context.Background())
	time.Sleep(p01Timeout + time.Duration(random.Int64N(int64(p01Timeout))))
	require.NoError(t, hold.Err())

	holder.Cut()
	cut := time.Now()
	answered := began.Add(p01LastAnswered(t, srv.Trace(), cut.Sub(began)))
	<-hold.Done()
	ended := time.Now()
	p01CheckLost(t, hold, work)
	require.Zero(t, time.Since(ended), "the answers were not immediate")
	require.LessOrEqual(t, ended.Sub(answered), p01Timeout, "the hold ended too late after the last answer")
	require.Greater(t, ended.Sub(cut), p01Timeout/3, "the hold ended for no reason")

	time.Sleep(2 * p01Timeout)
	require.False(t, srv.Exists(hold.Path()))
	require.Less(t, ended.Sub(began), p01Expired(t, srv.Trace()), "the node was deleted before the hold ended")
	p01CheckLost(t, hold, work)
	holder.Heal()
}

// p01LastAnswered returns the time at which the server processed the last request whose answer had
// arrived before the cut. Traces have no pings, so the actual time may be later.
func p01LastAnswered(t *testing.T, trace zktest.Trace, cut time.Duration) (at time.Duration) {
	const flight = 2 * time.Millisecond // an answer takes at most so long
	for _, e := range trace.Entries {
		if e.Client == "holder" && e.At <= cut-flight {
			at = e.At
		}
	}
	require.NotZero(t, at)
	return at
}

func p01Expired(t *testing.T, trace zktest.Trace) time.Duration {
	for _, e := range trace.Entries {
		if e.What == "expired" {
			return e.At
		}
	}
	require.FailNow(t, "the server has not ended the session")
	return 0
}

// p01CheckLost checks that all methods of a hold and both contexts report the loss. None of them
// may need the network.
func p01CheckLost(t *testing.T, hold *recipes.Hold, work context.Context) {
	t.Helper()
	require.ErrorIs(t, hold.Err(), framework.ErrSessionLost)
	require.Error(t, work.Err(), "the context has not ended with the hold")
	require.ErrorIs(t, context.Cause(work), framework.ErrSessionLost)
	require.True(t, hold.ValidUntil().IsZero())
	_, err := hold.Guard(context.Background(), framework.CreateOp("/guarded", nil))
	require.ErrorIs(t, err, framework.ErrSessionLost)
	require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
}

func p01Hold(t *testing.T, client *framework.Client, path string) *recipes.Hold {
	t.Helper()
	mu, err := mutex.New(client, path)
	require.NoError(t, err)
	hold, err := mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	return hold
}

// Once a hold has reported that it is lost, it never reports anything else. This is so for Err,
// Guard, Done and the contexts, also when the network has recovered.
func TestP01_LossIsReportedConsistently(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	client := testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(p01Timeout))
	hold := p01Hold(t, client, testzk.Path(t))
	work := hold.Context(context.Background())

	p.Blackhole(true)
	began := time.Now()
	for asked := began; hold.Err() == nil; asked = time.Now() {
		require.Less(t, asked.Sub(began), p01Timeout)
	}
	p01CheckLost(t, hold, work)
	select {
	case <-hold.Done():
	default:
		require.FailNow(t, "Err reports the end and Done does not")
	}
	p.Blackhole(false)
	require.NoError(t, client.WaitConnected(testzk.Context(t)))
	p01CheckLost(t, hold, work)
	require.ErrorIs(t, hold.Release(), framework.ErrSessionLost)
}

// An operator deletes the lock node of a holder. The hold ends. Err, Guard, Release and the cause
// of its context are ErrNodeDeleted.
func TestP01_DeletionOfTheNodeByAnOperatorEndsTheHold(t *testing.T) {
	hold := p01Hold(t, testzk.Connected(t, testzk.Connect(), long()), testzk.Path(t))
	work := hold.Context(context.Background())
	require.NoError(t, testzk.Observer(t).Delete(hold.Path(), -1))
	select {
	case <-work.Done():
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the holder does not notice")
	}
	require.ErrorIs(t, context.Cause(work), recipes.ErrNodeDeleted)
	require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
	_, err := hold.Guard(context.Background(), framework.CreateOp("/guarded", nil))
	require.ErrorIs(t, err, recipes.ErrNodeDeleted)
	require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted)
}
