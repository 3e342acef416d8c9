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
	p01Timeout = 3 * time.Second // of the session
	p01Tick    = 200 * time.Millisecond
	p01Runs    = 100
)

// A holder's network falls silent, without a reset, at 100 different moments. Each time the hold has ended at most one session
// timeout (3 s) after the last request that was answered, and before the server deletes the lock node, by the server's own
// clock.
func TestP01_TheHoldEndsBeforeTheServerDeletesItsNode(t *testing.T) {
	if realzk.Wanted() != "" {
		t.Parallel()
		p01OnRealServer(t)
		return
	}
	sim.Run(t, p01Runs, p01InNoTime, zktest.WithTick(p01Tick))
}

// p01InNoTime is one run in virtual time. The server was made as it began.
func p01InNoTime(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	began := time.Now()
	holder := srv.Client("holder")
	client := testzk.Client(t, srv.MemAddr(), framework.WithSessionTimeout(p01Timeout), framework.WithDialer(holder.DialContext),
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
	p01Over(t, hold, work)
	require.Zero(t, time.Since(ended), "the answers took time")
	require.LessOrEqual(t, ended.Sub(answered), p01Timeout, "the hold ended too late after the last answer")
	require.Greater(t, ended.Sub(cut), p01Timeout/3, "the hold ended for no reason")

	time.Sleep(2 * p01Timeout)
	require.False(t, srv.Exists(hold.Path()))
	require.Less(t, ended.Sub(began), p01Expired(t, srv.Trace()), "the node was deleted before the hold ended")
	p01Over(t, hold, work)
	holder.Heal()
}

// p01LastAnswered is when the server carried out the last request whose answer had arrived by the time of the cut. Pings are left
// out of traces, so it may really be later.
func p01LastAnswered(t *testing.T, trace zktest.Trace, cut time.Duration) (at time.Duration) {
	const flight = 2 * time.Millisecond // an answer's, at most
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

// p01Over checks everything that tells of the loss. Nothing of it may need the network.
func p01Over(t *testing.T, hold *recipes.Hold, work context.Context) {
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

// From the instant on at which a hold first says that it is lost it says nothing else, whoever is asked: Err, Guard, Done and
// the contexts, also when the network has recovered.
func TestP01_FromThatInstantOnEverybodyWhoAsksIsTold(t *testing.T) {
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
	p01Over(t, hold, work)
	select {
	case <-hold.Done():
	default:
		require.FailNow(t, "Err tells of the end and Done does not")
	}
	p.Blackhole(false)
	require.NoError(t, client.WaitConnected(testzk.Context(t)))
	p01Over(t, hold, work)
	require.ErrorIs(t, hold.Release(), framework.ErrSessionLost)
}

// An operator deletes the lock node of a holder: the hold ends, Err, Guard and the cause of its context say
// ErrNodeDeleted, and so does Release.
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
