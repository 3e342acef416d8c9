package inspect_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
)

// cycles walks and returns the cycles as paths.
func cycles(t *testing.T, c *framework.Client) (all []string) {
	t.Helper()
	for _, cycle := range inspect.Cycles(walk(t, c, "/")) {
		text := ""
		for i, step := range cycle {
			require.Equal(t, cycle[(i+1)%len(cycle)].Session, step.Behind.Session)
			require.Equal(t, step.Session, step.Waits.Session)
			text += step.Path
		}
		all = append(all, text)
	}
	return all
}

func TestCyclesOfMutexes(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		const n = 3
		var clients []*framework.Client
		for i := range n {
			clients = append(clients, client(t, srv, fmt.Sprint(i)))
			testlock.Held(t, newMutex(t, clients[i], fmt.Sprintf("/%d", i)))
		}
		for i := range n - 1 {
			testlock.Queue(t, newMutex(t, clients[i], fmt.Sprintf("/%d", i+1)))
			queued(t, clients[0], fmt.Sprintf("/%d", i+1), 2)
		}
		c := client(t, srv, "operator")
		testlock.Queue(t, newMutex(t, client(t, srv, "bystander"), "/0"))
		queued(t, c, "/0", 2)
		require.Empty(t, cycles(t, c), "the last one can go on")
		testlock.Queue(t, newMutex(t, clients[n-1], "/0"))
		queued(t, c, "/0", 3)
		require.Equal(t, []string{"/0/1/2"}, cycles(t, c), "the bystander is not a part of it")
		cycle := inspect.Cycles(walk(t, c, "/"))[0]
		there, err := inspect.Confirm(t.Context(), c, cycle)
		require.NoError(t, err)
		require.True(t, there)

		view, err := inspect.Session(t.Context(), c, "/", session(t, clients[0]))
		require.NoError(t, err)
		require.Equal(t, "/0", view.Holds[0].Path)
		require.Equal(t, "/1", view.Waits[0].Path)
		views := inspect.Sessions(walk(t, c, "/"))
		require.Len(t, views, 4, "the bystander, too")
		require.Contains(t, views, view)

		require.NoError(t, c.Delete(t.Context(), cycle[0].Behind.Path, -1))
		there, err = inspect.Confirm(t.Context(), c, cycle)
		require.NoError(t, err)
		require.False(t, there)
		testzk.Eventually(t, func() bool { return len(cycles(t, c)) == 0 }, "the cycle stays")
	})
}

func TestGoroutinesOfOneSessionAreNoCycle(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		testlock.Held(t, newMutex(t, c, "/a"))
		testlock.Held(t, newMutex(t, c, "/b"))
		testlock.Queue(t, newMutex(t, c, "/a"))
		testlock.Queue(t, newMutex(t, c, "/b"))
		queued(t, c, "/a", 2)
		queued(t, c, "/b", 2)
		require.Empty(t, cycles(t, c))
	})
}

func TestCyclesOfReadersAndWriters(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b, c := client(t, srv, "a"), client(t, srv, "b"), client(t, srv, "c")
		lock := func(c *framework.Client, path string) *rwlock.RWLock {
			l, err := rwlock.New(c, path)
			require.NoError(t, err)
			return l
		}
		testlock.Held(t, lock(a, "/x").Read())
		testlock.Held(t, lock(b, "/x").Read())
		testlock.Held(t, lock(a, "/y").Read())
		testlock.Queue(t, lock(b, "/y").Write())
		queued(t, c, "/y", 2)
		require.Empty(t, cycles(t, c))
		testlock.Queue(t, lock(a, "/x").Write())
		queued(t, c, "/x", 3)
		require.Equal(t, []string{"/x/y"}, cycles(t, c), "each waits for the reader of the other")
	})
}

// A waiter for permits is blocked only if all holders are.
func TestCyclesOfPermits(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b, free, c := client(t, srv, "a"), client(t, srv, "b"), client(t, srv, "free"), client(t, srv, "c")
		lock := func(c *framework.Client, permits int) recipes.Locker {
			s, err := semaphore.New(c, fmt.Sprintf("/of-%d", permits), permits)
			require.NoError(t, err)
			return s
		}
		testlock.Held(t, lock(free, 3))
		for _, permits := range []int{3, 2} {
			path := fmt.Sprintf("/of-%d", permits)
			for i, c := range []*framework.Client{a, b} {
				testlock.Held(t, lock(c, permits))
				queued(t, c, path, permits-1+i)
			}
			for i, c := range []*framework.Client{a, b} {
				testlock.Queue(t, lock(c, permits))
				queued(t, c, path, permits+1+i)
			}
		}
		require.Equal(t, []string{"/of-2/of-2"}, cycles(t, c), "of the three holders of the other one is free")
		require.Empty(t, inspect.Cycles(nil))
	})
}

// queueOf returns an object with a node of each of some sessions, the first of which hold.
func queueOf(kind inspect.Kind, path string, holders int, sessions ...inspect.ID) *inspect.Object {
	o := &inspect.Object{Kind: kind, Path: path}
	for i, id := range sessions {
		role := inspect.RoleLock
		if kind == inspect.KindSemaphore {
			role = map[bool]inspect.Role{true: inspect.RolePermit, false: inspect.RoleWaiter}[i < holders]
		}
		o.Nodes = append(o.Nodes, inspect.Node{Session: id, Holds: i < holders, Role: role})
	}
	return o
}

// A session is blocked if one of its waits is.
func TestWaitThatCanEndDoesNotHideOneThatCannot(t *testing.T) {
	all := inspect.Cycles([]*inspect.Object{
		queueOf(inspect.KindSemaphore, "/0", 3, 3, 4, 5, 1),
		queueOf(inspect.KindMutex, "/a", 1, 1, 2),
		queueOf(inspect.KindMutex, "/b", 1, 2, 1),
	})
	require.Len(t, all, 1)
	require.Len(t, all[0], 2)
	require.Equal(t, "/a", all[0][0].Path)
	require.Equal(t, "/b", all[0][1].Path)
}

func TestCyclesInALongQueueAreFoundInTime(t *testing.T) {
	const n = 20_000
	var sessions []inspect.ID
	for i := range n {
		sessions = append(sessions, inspect.ID(i+1))
	}
	first := queueOf(inspect.KindMutex, "/a", 1, sessions...)
	require.Empty(t, inspect.Cycles([]*inspect.Object{first}))
	second := queueOf(inspect.KindMutex, "/b", 1, n, 1) // the last waiter holds what the holder waits for
	all := inspect.Cycles([]*inspect.Object{first, second})
	require.Len(t, all, 1)
	require.Len(t, all[0], 2, "the holder is named, and not all that are ahead")
}

func TestConfirmRefusesInvalidArguments(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		_, err := inspect.Confirm(t.Context(), c, nil)
		require.ErrorContains(t, err, "empty")
		var none context.Context
		_, err = inspect.Confirm(none, c, inspect.Cycle{{Path: "/"}})
		require.ErrorIs(t, err, framework.ErrNilContext)
		_, err = inspect.Confirm(t.Context(), nil, inspect.Cycle{{Path: "/"}})
		require.ErrorContains(t, err, "client is nil")
	})
}
