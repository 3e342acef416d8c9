package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
)

// book records the calls of locks in their order.
type book struct {
	mu      sync.Mutex
	entries []string
}

func (b *book) add(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, fmt.Sprintf(format, args...))
}

func (b *book) read() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.entries...)
}

// recorded is a mutex that records its calls.
type recorded struct {
	name string
	lock *mutex.Mutex
	book *book
	err  error             // returned instead of acquiring
	with func(*recorded)   // called after acquiring
	ctxs []context.Context // contexts of the acquires
	hold *recipes.Hold
}

func (r *recorded) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return r.do(ctx, "acquire", r.lock.Acquire)
}

func (r *recorded) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return r.do(ctx, "try", r.lock.TryAcquire)
}

func (r *recorded) do(ctx context.Context, how string, acquire acquirer) (*recipes.Hold, error) {
	r.book.add("%s %s", how, r.name)
	r.ctxs = append(r.ctxs, ctx)
	if r.err != nil {
		return nil, r.err
	}
	hold, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	r.hold = hold
	if r.with != nil {
		r.with(r)
	}
	return hold, nil
}

// newRecorded returns recorded mutexes on paths.
func newRecorded(t testing.TB, c *framework.Client, paths []string) (*book, []*recorded) {
	t.Helper()
	b := &book{}
	var all []*recorded
	for i, path := range paths {
		all = append(all, &recorded{name: fmt.Sprint(i), lock: newMutex(t, c, path), book: b})
	}
	return b, all
}

func ofRecorded(t testing.TB, all []*recorded) *multilock.MultiLock {
	t.Helper()
	var locks []recipes.Locker
	for _, r := range all {
		locks = append(locks, r)
	}
	return combined(t, locks...)
}

// changed returns the transaction of the last create or delete below path.
func changed(t testing.TB, path string) int64 {
	t.Helper()
	_, stat, err := testzk.Observer(t).Exists(path)
	require.NoError(t, err)
	return stat.Pzxid
}

func TestOfAcquiresInItsOrderAndReleasesInReverse(t *testing.T) {
	paths := named(t, 3)
	booked, all := newRecorded(t, own(t), []string{paths[2], paths[0], paths[1]})
	m := ofRecorded(t, all)
	hold := acquire(t, m)
	require.Equal(t, []string{"acquire 0", "acquire 1", "acquire 2"}, booked.read())
	require.IsIncreasing(t, hold.Tokens(), "acquired one after another")
	for i, r := range all {
		require.Equal(t, r.hold.Path(), hold.Paths()[i])
	}
	require.NoError(t, hold.Release())
	require.Greater(t, changed(t, paths[0]), changed(t, paths[1]), "released in the order in which they were acquired")
	require.Greater(t, changed(t, paths[2]), changed(t, paths[0]))
	free(t, paths...)

	hold, err := m.TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, []string{"try 0", "try 1", "try 2"}, booked.read()[3:])
	require.NoError(t, hold.Release())
}

func TestAllLocksHaveTheSameDeadline(t *testing.T) {
	paths := named(t, 3)
	_, all := newRecorded(t, own(t), paths)
	ctx := testzk.Context(t)
	deadline, _ := ctx.Deadline()
	hold, err := ofRecorded(t, all).Acquire(ctx)
	require.NoError(t, err)
	for _, r := range all {
		own, bounded := r.ctxs[0].Deadline()
		require.True(t, bounded)
		require.Equal(t, deadline, own)
	}
	require.NoError(t, hold.Release())
}

func TestFirstFailureReleasesInReverseAndJoinsAllErrors(t *testing.T) {
	paths := named(t, 5)
	boom := errors.New("boom")
	booked, all := newRecorded(t, own(t), paths)
	all[3].err = boom
	_, err := ofRecorded(t, all).Acquire(testzk.Context(t))
	require.Equal(t, boom.Error(), err.Error(), "another error")
	require.Equal(t, []string{"acquire 0", "acquire 1", "acquire 2", "acquire 3"}, booked.read(),
		"no lock is acquired after a failure")
	require.Greater(t, changed(t, paths[1]), changed(t, paths[2]), "released in the order in which they were acquired")
	require.Greater(t, changed(t, paths[0]), changed(t, paths[1]))
	free(t, paths...)

	all[2].with = func(*recorded) {
		forbid(t, paths[0], zk.PermDelete)
		forbid(t, paths[2], zk.PermDelete)
	}
	hold, err := ofRecorded(t, all).Acquire(testzk.Context(t))
	require.Nil(t, hold)
	require.ErrorIs(t, err, boom)
	require.ErrorIs(t, err, recipes.ErrReleasePending)
	require.ErrorContains(t, err, all[0].hold.Path())
	require.ErrorContains(t, err, all[2].hold.Path())
	require.NotContains(t, err.Error(), all[1].hold.Path(), "this lock was released")
	free(t, paths[1], paths[3], paths[4])
}

func TestReleaseContinuesAfterAFailureAndJoinsTheErrors(t *testing.T) {
	paths := named(t, 4)
	for name, m := range kinds(t, own(t), paths) {
		hold := acquire(t, m)
		nodes := hold.Paths()
		forbid(t, paths[0], zk.PermDelete)
		forbid(t, paths[2], zk.PermDelete)
		err := hold.Release()
		require.ErrorIs(t, err, recipes.ErrReleasePending, name)
		require.ErrorIs(t, err, zk.ErrNoAuth, name)
		require.ErrorContains(t, err, nodes[0], name)
		if name != "together" { // together has a single release
			require.ErrorContains(t, err, nodes[2], name)
		}
		free(t, paths[1], paths[3])
		for _, i := range []int{0, 2} {
			forbid(t, paths[i], 0)
			remove(t, nodes[i])
		}
	}
}

func TestPartLostDuringALaterWaitIsAcquiredAgain(t *testing.T) {
	paths := named(t, 2)
	c, other := own(t), own(t)
	for _, kind := range []string{"of", "in order"} {
		busy := acquire(t, newMutex(t, other, paths[1]))
		waiter := testlock.Start(t, kinds(t, c, paths)[kind].Acquire)
		before := queued(t, other, paths[1], 2)[1].Node
		lost := queued(t, other, paths[0], 1)[0].Node
		remove(t, lost)
		var after string
		testzk.Eventually(t, func() bool {
			queue, err := newMutex(t, other, paths[1]).Participants(testzk.Context(t))
			if err != nil || len(queue) != 2 || queue[1].Node == before {
				return false
			}
			after = queue[1].Node
			return true
		}, "the wait for the second lock continues without the first")
		require.True(t, waiter.Waiting())
		require.NoError(t, busy.Release())
		hold := waiter.Won(t)
		require.NotEqual(t, lost, hold.Paths()[0])
		require.Equal(t, after, hold.Paths()[1])
		_, err := hold.Guard(testzk.Context(t))
		require.NoError(t, err, "a hold without all of its nodes: %s", kind)
		require.NoError(t, hold.Release())
		free(t, paths...)
	}
}

func TestPartLostBeforeAllAreHeldIsAcquiredAgain(t *testing.T) {
	paths := named(t, 2)
	booked, all := newRecorded(t, own(t), paths)
	all[1].with = func(r *recorded) { // after the last lock is acquired, the first is lost
		r.with = nil
		remove(t, all[0].hold.Path())
		testzk.Closes(t, all[0].hold.Done(), "the part does not report its loss")
	}
	hold := acquire(t, ofRecorded(t, all))
	require.Equal(t, []string{"acquire 0", "acquire 1", "acquire 0", "acquire 1"}, booked.read())
	_, err := hold.Guard(testzk.Context(t))
	require.NoError(t, err)
	for _, path := range paths {
		queued(t, own(t), path, 1)
	}
	require.NoError(t, hold.Release())
	free(t, paths...)
}
