package multilock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestUncontendedSetIsOneTransactionWithListsBehindIt(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		paths := []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g"}
		m := newMulti(t, simClient(t, srv, "c", 4*time.Second), paths)
		require.NoError(t, acquire(t, m).Release()) // creates the parents

		before := srv.Client("c").Requests()
		hold := acquire(t, m)
		after := srv.Client("c").Requests()
		require.Equal(t, 1, after[fault.OpMulti]-before[fault.OpMulti])
		require.Equal(t, len(paths), after[fault.OpGetChildren2]-before[fault.OpGetChildren2])
		require.Equal(t, 1+len(paths), after.Total()-before.Total(), "requests of an acquire: %v", after)
		require.NoError(t, hold.Release())
		after = srv.Client("c").Requests()
		require.Equal(t, 2, after[fault.OpMulti]-before[fault.OpMulti])
		require.Equal(t, 2+len(paths), after.Total()-before.Total(), "requests of an acquire and a release: %v", after)
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}

func TestHoldHasATokenAndANodeForEachPathInTheirOrder(t *testing.T) {
	paths := named(t, 3)
	slices.Reverse(paths)
	for name, opts := range map[string][]multilock.Option{"together": nil, "in order": {multilock.WithPathOrder()}} {
		t.Run(name, func(t *testing.T) {
			c := own(t)
			before := make([]int64, len(paths))
			for i, path := range paths { // in an order different from both, so that the tokens differ
				hold := acquire(t, newMutex(t, c, path))
				before[i] = hold.Token()
				require.NoError(t, hold.Release())
			}
			hold := acquire(t, newMulti(t, c, paths, opts...))
			require.Len(t, hold.Tokens(), len(paths))
			require.Len(t, hold.Paths(), len(paths))
			require.Equal(t, hold.Paths()[0], hold.Path())
			require.Zero(t, hold.Token(), "a token of several locks")
			for i, node := range hold.Paths() {
				require.Equal(t, paths[i], path.Dir(node))
				_, stat, err := testzk.Observer(t).Exists(node)
				require.NoError(t, err)
				require.Equal(t, stat.Czxid, hold.Tokens()[i], "the token of %s is that of another lock", node)
				require.Greater(t, hold.Tokens()[i], before[i], "the previous holder had a larger token")
			}
			require.NoError(t, hold.Release())
			free(t, paths...)
		})
	}
}

func TestMutexOnOneOfThePathsExcludesAndIsExcluded(t *testing.T) {
	paths := named(t, 2)
	c, other := own(t), own(t)
	m := newMulti(t, c, paths)
	hold := acquire(t, m)
	for _, path := range paths {
		excluded(t, other, path)
	}
	require.NoError(t, hold.Release())
	for _, path := range paths {
		single := acquire(t, newMutex(t, other, path))
		waiter := testlock.Start(t, m.Acquire)
		queued(t, other, path, 2)
		require.True(t, waiter.Waiting())
		require.NoError(t, single.Release())
		require.NoError(t, waiter.Won(t).Release())
	}
}

func TestTryAcquireOfFreeLocks(t *testing.T) {
	paths := named(t, 3)
	hold, err := newMulti(t, own(t), paths).TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	excluded(t, own(t), paths[2])
	require.NoError(t, hold.Release())
	free(t, paths...)
}

func TestTryAcquireOfBusyLocksOnlyReads(t *testing.T) {
	paths := named(t, 3)
	c := own(t)
	require.NoError(t, acquire(t, newMulti(t, c, paths)).Release())
	busy := acquire(t, newMutex(t, c, paths[2]))
	for name, opts := range map[string][]multilock.Option{"together": nil, "in order": {multilock.WithPathOrder()}} {
		p := testzk.Proxy(t)
		m := newMulti(t, testzk.Connected(t, p.Addr()), paths, opts...)
		p.ResetCounts()
		_, err := m.TryAcquire(testzk.Context(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired, name)
		free(t, paths[:2]...)
		queued(t, c, paths[2], 1)
		if opts == nil {
			require.Equal(t, 3, p.Requests()[fault.OpGetChildren2], "%v", p.Requests())
			require.Equal(t, 3, testlock.Sent(p), "%v", p.Requests())
		}
	}
	require.NoError(t, busy.Release())
}

func TestAcquireFailsWithAnEndedContextEvenIfTheLocksAreFree(t *testing.T) {
	paths := named(t, 2)
	c := own(t)
	reason := errors.New("canceled by the test")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	for name, m := range map[string]*multilock.MultiLock{
		"New": newMulti(t, c, paths), "Combine": combined(t, newMutex(t, c, paths[0]), newMutex(t, c, paths[1])),
	} {
		for how, acquire := range map[string]acquirer{"Acquire": m.Acquire, "TryAcquire": m.TryAcquire} {
			hold, err := acquire(ctx)
			require.Nil(t, hold, "%s, %s", name, how)
			require.ErrorIs(t, err, reason, "%s, %s", name, how)
			require.NotErrorIs(t, err, recipes.ErrNotAcquired, "%s, %s", name, how)
		}
	}
	free(t, paths...)
}

func TestDataIsOnEachNode(t *testing.T) {
	paths := named(t, 2)
	c := own(t)
	data := []byte("worker 7")
	m := newMulti(t, c, paths, multilock.WithData(data))
	copy(data, "xxxxxx") // the caller may change its slice
	hold := acquire(t, m)
	for _, path := range paths {
		require.Equal(t, "worker 7", string(queued(t, c, path, 1)[0].Data))
	}
	require.NoError(t, hold.Release())
	hold = acquire(t, newMulti(t, c, paths, multilock.WithIdentity()))
	for _, path := range paths {
		require.NotNil(t, queued(t, c, path, 1)[0].Identity)
	}
	require.NoError(t, hold.Release())
}

func TestLocksInANamespace(t *testing.T) {
	root := testzk.Path(t)
	c := own(t)
	m := newMulti(t, c.Namespace(root[1:]), []string{"/deep/b", "/deep/a"})
	hold := acquire(t, m)
	require.Equal(t, []string{"/deep/b", "/deep/a"}, []string{path.Dir(hold.Path()), path.Dir(hold.Paths()[1])})
	excluded(t, c, root+"/deep/a")
	excluded(t, c, root+"/deep/b")
	_, err := hold.Guard(testzk.Context(t), framework.CreateOp("/deep/data", nil))
	require.NoError(t, err)
	_, err = c.Exists(testzk.Context(t), root+"/deep/data")
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	free(t, root+"/deep/a", root+"/deep/b")
}

func TestPathAndAPathBelowItAreTwoLocks(t *testing.T) {
	path := testzk.Path(t)
	c := own(t)
	m := newMulti(t, c, []string{path, path + "/below"})
	for range 2 {
		hold := acquire(t, m)
		excluded(t, c, path)
		excluded(t, c, path+"/below")
		require.NoError(t, hold.Release())
	}
	free(t, path+"/below")
}

func TestManyPaths(t *testing.T) {
	paths := named(t, 300)
	c, other := own(t), own(t)
	m := newMulti(t, c, paths)
	hold := acquire(t, m)
	require.Len(t, hold.Tokens(), len(paths))
	_, err := hold.Guard(testzk.Context(t))
	require.NoError(t, err)
	for _, i := range []int{0, 150, 299} {
		excluded(t, other, paths[i])
	}
	backwards := slices.Clone(paths)
	slices.Reverse(backwards)
	waiter := testlock.Start(t, newMulti(t, other, backwards).Acquire)
	queued(t, c, paths[0], 2)
	require.True(t, waiter.Waiting())
	require.NoError(t, hold.Release())
	next := waiter.Won(t)
	for i, token := range next.Tokens() {
		require.Greater(t, token, hold.Tokens()[len(paths)-1-i])
	}
	require.NoError(t, next.Release())
	for _, i := range []int{0, 150, 299} {
		free(t, paths[i])
	}
}

func TestErrorsNameTheValue(t *testing.T) {
	c := own(t)
	for name, row := range map[string]struct {
		client *framework.Client
		paths  []string
		opts   []multilock.Option
		says   string
		is     error
	}{
		"no paths":    {c, nil, nil, "no paths", nil},
		"empty list":  {c, []string{}, nil, "no paths", nil},
		"nil client":  {nil, []string{"/a"}, nil, "client is nil", nil},
		"zero client": {&framework.Client{}, []string{"/a"}, nil, "zero value", framework.ErrZeroValue},
		"root":        {c, []string{"/a", "/"}, nil, `"/"`, framework.ErrInvalidPath},
		"no path":     {c, []string{"/a", "b"}, nil, `"b"`, framework.ErrInvalidPath},
		"trailing":    {c, []string{"/a", "/b/"}, nil, `"/b/"`, framework.ErrInvalidPath},
		"empty path":  {c, []string{"/a", ""}, nil, `""`, framework.ErrInvalidPath},
		"twice":       {c, []string{"/a", "/b", "/a"}, nil, `"/a": given twice`, framework.ErrInvalidPath},
		"nil option":  {c, []string{"/a"}, []multilock.Option{multilock.WithPathOrder(), nil}, "option 1 is nil", nil},
		"data and more": {
			c, []string{"/a"}, []multilock.Option{multilock.WithData(nil), multilock.WithIdentity()},
			"WithData and WithIdentity", nil},
	} {
		m, err := multilock.New(row.client, row.paths, row.opts...)
		require.Nil(t, m, name)
		require.ErrorContains(t, err, "new multi-lock: ", name)
		require.ErrorContains(t, err, row.says, name)
		if row.is != nil {
			require.ErrorIs(t, err, row.is, name)
		}
	}
}

func TestCallerMayChangeTheListOfPaths(t *testing.T) {
	paths := named(t, 2)
	c := own(t)
	given := slices.Clone(paths)
	m := newMulti(t, c, given)
	given[0] = paths[0] + "-other"
	hold := acquire(t, m)
	require.Equal(t, paths[0], path.Dir(hold.Path()))
	require.NoError(t, hold.Release())
}

func TestZeroMultiLock(t *testing.T) {
	for name, m := range map[string]*multilock.MultiLock{"zero": {}} {
		for how, acquire := range map[string]acquirer{"Acquire": m.Acquire, "TryAcquire": m.TryAcquire} {
			hold, err := acquire(context.Background())
			require.Nil(t, hold, "%s, %s", name, how)
			require.ErrorIs(t, err, framework.ErrZeroValue, "%s, %s", name, how)
			require.ErrorContains(t, err, "MultiLock", "%s, %s", name, how)
		}
	}
	var none context.Context
	_, err := newMulti(t, own(t), []string{"/a"}).Acquire(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
}
