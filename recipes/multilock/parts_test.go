package multilock_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestGuardOfOneSessionIsOneTransaction(t *testing.T) {
	p := testzk.Proxy(t)
	paths := named(t, 3)
	c := testzk.Connected(t, p.Addr())
	hold := acquire(t, combined(t, newMutex(t, c, paths[0]), newMulti(t, c, paths[1:])))
	before := p.Requests()[fault.OpMulti]
	results, err := hold.Guard(testzk.Context(t), framework.CreateOp(paths[0]+"-data", nil))
	require.NoError(t, err)
	require.Equal(t, paths[0]+"-data", results[0].Path)
	require.Equal(t, before+1, p.Requests()[fault.OpMulti])
	require.NoError(t, hold.Release())
	_, err = hold.Guard(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotHeld)
	require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
}

func TestGuardOfSeveralSessionsOrNamespacesIsRefused(t *testing.T) {
	paths := named(t, 2)
	c := own(t)
	for name, other := range map[string]recipes.Locker{
		"another client":    newMutex(t, own(t), paths[1]),
		"another namespace": newMutex(t, c.Namespace(paths[1][1:]), "/below"),
	} {
		hold := acquire(t, combined(t, newMutex(t, c, paths[0]), other))
		_, err := hold.Guard(testzk.Context(t), framework.CreateOp(paths[0]+"-data", nil))
		require.ErrorIs(t, err, recipes.ErrManySessions, name)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), name)
		_, err = c.Exists(testzk.Context(t), paths[0]+"-data")
		require.ErrorIs(t, err, zk.ErrNoNode, name)
		require.NoError(t, hold.Release(), name)
	}
	same := acquire(t, combined(t, newMutex(t, c, paths[0]), newMutex(t, c.Namespace(""), paths[1])))
	_, err := same.Guard(testzk.Context(t))
	require.NoError(t, err, "another view of the same paths")
	require.NoError(t, same.Release())
}

func TestLossOfOneClientsSessionReleasesTheOtherPart(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	paths := named(t, 2)
	near, far := own(t), testzk.Connected(t, p.Addr(), testzk.Mortal())
	hold := acquire(t, combined(t, newMutex(t, near, paths[0]), newMutex(t, far, paths[1])))
	work := hold.Context(context.Background())
	p.Blackhole(true)
	testlock.LostTo(t, hold, work, framework.ErrSessionLost)
	free(t, paths...)
}

func TestWholeIsValidUntilTheEarliestPartIs(t *testing.T) {
	paths := named(t, 2)
	short := testzk.Connected(t, testzk.Connect(), testzk.Mortal())
	_, all := newRecorded(t, own(t), paths)
	all[0].lock = newMutex(t, short, paths[0])
	for _, locks := range [][]*recorded{{all[0], all[1]}, {all[1], all[0]}} {
		hold := acquire(t, ofRecorded(t, locks))
		before := all[0].hold.ValidUntil()
		whole := hold.ValidUntil()
		require.False(t, whole.Before(before), "earlier than any part")
		require.False(t, whole.After(all[0].hold.ValidUntil()), "later than the part with the short session")
		require.NoError(t, hold.Release())
	}
}

// apart makes a hold of three mutexes of three clients in virtual time.
func apart(t *testing.T, test func(t *testing.T, srv *zktest.Server, parts []*recipes.Hold, whole *recipes.Hold)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var parts []*recipes.Hold
		for _, name := range []string{"a", "b", "c"} {
			c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
			parts = append(parts, acquire(t, newMutex(t, c, "/"+name)))
		}
		test(t, srv, parts, joined(t, parts))
		for _, path := range []string{"/a", "/b", "/c"} {
			children, err := srv.Children(path)
			require.NoError(t, err)
			require.Empty(t, children)
		}
	})
}

func TestAllPartsEndBeforeTheFirstRequestOfTheirRelease(t *testing.T) {
	apart(t, func(t *testing.T, srv *zktest.Server, parts []*recipes.Hold, whole *recipes.Hold) {
		first := srv.On(fault.Match{Op: fault.OpDelete}, fault.Hold())
		released := make(chan error, 1)
		go func() { released <- whole.Release() }()
		require.NoError(t, first.Wait(t.Context()))
		for _, part := range parts {
			require.ErrorIs(t, part.Err(), recipes.ErrNotHeld)
		}
		first.Release()
		require.NoError(t, <-released)
	})
}

func TestSlowPartsAreReleasedTogether(t *testing.T) {
	apart(t, func(t *testing.T, srv *zktest.Server, _ []*recipes.Hold, whole *recipes.Hold) {
		for _, name := range []string{"a", "b", "c"} {
			srv.On(fault.Match{Client: name, Op: fault.OpDelete}, fault.Delay(2*time.Second))
		}
		began := time.Now()
		require.NoError(t, whole.Release())
		require.Less(t, time.Since(began), 3*time.Second)
	})
}

func TestPartsOfSeveralKinds(t *testing.T) {
	paths := named(t, 3)
	c, other := own(t), own(t)
	rw, err := rwlock.New(c, paths[1])
	require.NoError(t, err)
	sem, err := semaphore.New(c, paths[2], 2)
	require.NoError(t, err)
	m := combined(t, newMutex(t, c, paths[0]), rw.Write(), sem)
	hold := acquire(t, m)
	require.Len(t, hold.Tokens(), 3)
	require.Len(t, hold.Paths(), 3)
	_, err = hold.Guard(testzk.Context(t))
	require.NoError(t, err)
	excluded(t, other, paths[0])
	theirs, err := rwlock.New(other, paths[1])
	require.NoError(t, err)
	_, err = theirs.Read().TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	for i, node := range hold.Paths() {
		if i > 0 {
			hold = acquire(t, m)
			node = hold.Paths()[i]
		}
		work := hold.Context(context.Background())
		remove(t, node)
		testlock.LostTo(t, hold, work, recipes.ErrNodeDeleted)
	}
	free(t, paths[0], paths[1], paths[2]+"/leases", paths[2]+"/locks")
}

func TestNestedMultiLocks(t *testing.T) {
	paths := named(t, 5)
	c := own(t)
	m := combined(t, combined(t, newMutex(t, c, paths[4]), newMutex(t, c, paths[3])), newMulti(t, c, paths[:3]))
	hold := acquire(t, m)
	require.Len(t, hold.Tokens(), 5)
	for i, from := range []int{4, 3, 0, 1, 2} {
		require.Equal(t, queued(t, own(t), paths[from], 1)[0].Node, hold.Paths()[i])
	}
	_, err := hold.Guard(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	free(t, paths...)

	for i := range paths {
		hold := acquire(t, m)
		work := hold.Context(context.Background())
		remove(t, hold.Paths()[i])
		_, err := hold.Guard(testzk.Context(t))
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		testlock.LostTo(t, hold, work, recipes.ErrNodeDeleted)
		free(t, paths...)
	}
}

func TestPartReentersUnderTheContextOfTheWhole(t *testing.T) {
	paths := named(t, 2)
	c := own(t)
	first, second := newMutex(t, c, paths[0]), newMutex(t, c, paths[1])
	m := combined(t, first, second)
	hold := acquire(t, m)
	ctx := hold.Context(testzk.Context(t))
	for i, mu := range []*mutex.Mutex{first, second} {
		reentrant, err := mu.TryAcquire(ctx)
		require.NoError(t, err)
		require.Equal(t, hold.Paths()[i], reentrant.Path())
		require.NoError(t, reentrant.Release())
	}
	inner, err := m.Acquire(ctx)
	require.NoError(t, err)
	require.Equal(t, hold.Tokens(), inner.Tokens())
	require.NoError(t, hold.Release())
	_, err = inner.Guard(testzk.Context(t))
	require.NoError(t, err, "one reentrant hold is left")
	require.NoError(t, inner.Release())
	free(t, paths...)
}

// A part that is held already is re-entered.
func TestWholeUnderAPartsContextReleasesOnlyItsOwnHolds(t *testing.T) {
	paths := named(t, 2)
	c := own(t)
	first, second := newMutex(t, c, paths[0]), newMutex(t, c, paths[1])
	outer := acquire(t, first)
	hold, err := combined(t, first, second).Acquire(outer.Context(testzk.Context(t)))
	require.NoError(t, err)
	work := hold.Context(context.Background())
	remove(t, hold.Paths()[1])
	testlock.LostTo(t, hold, work, recipes.ErrNodeDeleted)
	require.NoError(t, outer.Err())
	_, err = outer.Guard(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, outer.Release())
	free(t, paths...)
}

func TestOfRefusesInvalidLists(t *testing.T) {
	c := own(t)
	a, b := newMutex(t, c, "/a"), newMutex(t, c, "/b")
	for name, row := range map[string]struct {
		locks []recipes.Locker
		says  string
	}{
		"none":  {nil, "no locks"},
		"nil":   {[]recipes.Locker{a, nil}, "lock 1 is nil"},
		"twice": {[]recipes.Locker{a, b, a}, "lock 2 is the same as lock 0"},
	} {
		m, err := multilock.Combine(row.locks...)
		require.Nil(t, m, name)
		require.EqualError(t, err, "multilock: "+row.says, name)
	}
	uncomparable := listLock{a}
	require.NotPanics(t, func() { combined(t, uncomparable, uncomparable) })
}

// listLock is a lock whose values are not comparable.
type listLock []*mutex.Mutex

func (l listLock) Acquire(ctx context.Context) (*recipes.Hold, error)    { return l[0].Acquire(ctx) }
func (l listLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) { return l[0].TryAcquire(ctx) }

func TestTryAcquireOfBusyPartsLeavesNoNode(t *testing.T) {
	paths := named(t, 3)
	c := own(t)
	busy := acquire(t, newMutex(t, own(t), paths[2]))
	booked, all := newRecorded(t, c, paths)
	_, err := ofRecorded(t, all).TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.Equal(t, []string{"try 0", "try 1", "try 2"}, booked.read())
	free(t, paths[:2]...)
	queued(t, c, paths[2], 1)
	require.NoError(t, busy.Release())
}

// joined makes one hold of several.
func joined(t *testing.T, parts []*recipes.Hold) *recipes.Hold {
	t.Helper()
	var all []*ownership.Hold
	for _, part := range parts {
		all = append(all, ownership.Of(part))
	}
	whole, err := recipes.NewHold(ownership.Combine(nil, all...), nil)
	require.NoError(t, err)
	return whole
}
