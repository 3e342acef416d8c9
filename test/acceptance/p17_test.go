package acceptance_test

import (
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A second release of the same hold returns ErrNotHeld and does nothing, even if the lock is held
// again by the same process or by another.
func TestP17_SecondReleaseIsHarmless(t *testing.T) {
	t.Parallel()
	anywhere(t, func(t *testing.T, in place) {
		ours, theirs := in.lock(t), in.lock(t)
		first := acquired(t, ours)
		require.NoError(t, first.Release())
		require.ErrorIs(t, first.Release(), recipes.ErrNotHeld)
		for _, mu := range []*mutex.Mutex{ours, theirs} {
			later := acquired(t, mu)
			require.ErrorIs(t, first.Release(), recipes.ErrNotHeld)
			_, err := later.Guard(t.Context())
			require.NoError(t, err)
			require.NoError(t, later.Release())
		}
		require.ErrorIs(t, new(recipes.Hold).Release(), recipes.ErrNotHeld)
	})
}

// After the lock node was deleted by another client, Release reports it. The same Mutex acquires
// again within 1 s (10 s where time is real and the machine busy).
func TestP17_MutexIsReusableAfterItsNodeWasDeleted(t *testing.T) {
	t.Parallel()
	anywhere(t, func(t *testing.T, in place) {
		mu, other := in.lock(t), in.client(t)
		lost := acquired(t, mu)
		require.NoError(t, other.Delete(t.Context(), lost.Path(), -1))
		require.ErrorIs(t, lost.Release(), recipes.ErrNodeDeleted)
		p17Reusable(t, in, mu, lost)
	})
}

// After the session was lost, Release reports it, and the same Mutex acquires again within 1 s of
// the new session.
func TestP17_MutexIsReusableAfterItsSessionWasLost(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, "no client can end another's session at a given moment")
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := place{srv.MemAddr(), "/test", srv.Client("c").DialContext, testzk.SessionTimeout, 1}
		c := in.client(t)
		mu := in.lockOn(t, c)
		lost := acquired(t, mu)
		for _, session := range srv.Client("c").Sessions() {
			require.NoError(t, session.Expire())
		}
		<-lost.Done()
		require.ErrorIs(t, lost.Release(), framework.ErrSessionLost)
		require.NoError(t, c.WaitConnected(t.Context()))
		p17Reusable(t, in, mu, lost)
	})
}

// p17Reusable acquires and releases with a mutex whose last hold was lost.
func p17Reusable(t *testing.T, in place, mu *mutex.Mutex, lost *recipes.Hold) {
	t.Helper()
	start := time.Now()
	hold := acquired(t, mu)
	require.Less(t, time.Since(start), in.within(time.Second))
	require.Greater(t, hold.Token(), lost.Token())
	require.ErrorIs(t, lost.Release(), recipes.ErrNotHeld)
	_, err := hold.Guard(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Release())
}

const p17Rounds = 1000

// In 1,000 rounds deletions of releases are late, lost or repeated, and holds are released twice.
// No later hold of the same process is ever removed. This is so, too, when sequence numbers start
// over under a new parent.
func TestP17_LateReleaseNeverRemovesALaterHold(t *testing.T) { // not parallel: it would starve the tests in real time
	onlyInProcess(t, "the faults of 1,000 rounds take a virtual clock")
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		in := place{srv.MemAddr(), "/test", srv.Client("c").DialContext, testzk.SessionTimeout, 1}
		mu := in.lock(t)
		var releases sync.WaitGroup
		var stale []*recipes.Hold
		faults := 0
		for range p17Rounds {
			hold := acquired(t, mu)
			for _, old := range stale[max(0, len(stale)-10):] {
				releases.Go(func() { _ = old.Release() })
			}
			time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond)))) // so that late requests arrive
			require.NoError(t, hold.Err())
			require.True(t, srv.Exists(hold.Path()), "%s was deleted", hold.Path())

			rule := p17Spoil(srv, random)
			releases.Go(func() { _ = hold.Release() })
			releases.Go(func() { _ = hold.Release() })
			if stale = append(stale, hold); random.IntN(20) == 0 {
				p17Reap(srv, hold.Path())
			}
			require.NoError(t, rule.Wait(testzk.Context(t)))
			faults += rule.Hits()
		}
		releases.Wait()
		require.Equal(t, p17Rounds, faults)
	})
}

// p17Spoil applies a random fault to the next deletion.
func p17Spoil(srv *zktest.Server, random *rand.Rand) *fault.Rule {
	actions := []fault.Action{
		fault.DropBefore(), fault.DropAfter(), fault.Truncate(3),
		fault.Delay(time.Duration(random.Int64N(int64(100 * time.Millisecond)))),
	}
	return srv.On(fault.Match{Op: fault.OpDelete}, actions[random.IntN(len(actions))])
}

// p17Reap deletes the parent as soon as its last child is deleted, as servers do, whether or not
// the client knows about the child.
func p17Reap(srv *zktest.Server, child string) {
	for srv.Exists(child) {
		time.Sleep(time.Millisecond)
	}
	_ = srv.Delete(path.Dir(child))
}

// The network loses or delays the deletion or its answer at every release. No release removes the
// next hold of the same process. Each such fault also ends the connection, so there are only 9
// rounds.
func TestP17_LateReleaseNeverRemovesALaterHoldBehindABadNetwork(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	lock := testzk.Path(t)
	c := testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(12*time.Second))
	mu, err := mutex.New(c, lock)
	require.NoError(t, err)
	var releases sync.WaitGroup
	defer releases.Wait()
	actions := []fault.Action{fault.DropBefore(), fault.DropAfter(), fault.Delay(20 * time.Millisecond)}
	for round := range 9 {
		hold := acquired(t, mu)
		rule := p.On(fault.Match{Op: fault.OpDelete, Path: lock}, actions[round%len(actions)])
		var released sync.WaitGroup
		released.Go(func() { _ = hold.Release() })
		later := acquired(t, mu)
		released.Wait() // waits for the repeated deletions
		require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
		require.NoError(t, rule.Wait(testzk.Context(t)))
		_, err := later.Guard(testzk.Context(t))
		require.NoError(t, err)
		require.NoError(t, later.Release())
	}
}
