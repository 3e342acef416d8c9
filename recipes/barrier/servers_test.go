package barrier_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
)

// These tests run on real servers too.

// connected returns n clients.
func connected(t testing.TB, n int) (all []*framework.Client) {
	t.Helper()
	for range n {
		all = append(all, testzk.Connected(t, testzk.Connect()))
	}
	return all
}

// counts waits until there are n nodes below a path.
func counts(t testing.TB, path string, n int) {
	t.Helper()
	observer := testzk.Observer(t)
	testzk.Eventually(t, func() bool {
		names, _, err := observer.Children(path)
		return err == nil && len(names) == n
	}, "want %d nodes", n)
}

func TestBarrierOnServers(t *testing.T) {
	t.Parallel()
	all, path := connected(t, 3), testzk.Path(t)
	for range 5 {
		require.NoError(t, newBarrier(t, all[0], path).Set(testzk.Context(t)))
		var waiting []*call[struct{}]
		for _, c := range all { // of any server: each knows that the barrier is set
			waiting = append(waiting, wait(t, newBarrier(t, c, path)))
		}
		allWait(waiting)
		require.NoError(t, newBarrier(t, all[1], path).Remove(testzk.Context(t)))
		returned(waiting)
	}
}

func TestDoubleOnServers(t *testing.T) {
	t.Parallel()
	const n = 5
	all, path := connected(t, n), testzk.Path(t)
	for range 5 {
		var entering []*call[*barrier.Entry]
		for i, c := range all {
			allWait(entering)
			entering = append(entering, enter(t, newDouble(t, c, path, n)))
			if i < n-1 {
				counts(t, path, i+1)
			}
		}
		var leaving []*call[struct{}]
		for _, e := range returned(entering) {
			allWait(leaving)
			leaving = append(leaving, leave(t, e))
		}
		returned(leaving)
		testzk.Empty(t, path)
	}
}

func TestDoubleWithASessionThatIsLostInside(t *testing.T) {
	t.Parallel()
	path, p := testzk.Path(t), testzk.Proxy(t)
	mortal := testzk.Connected(t, p.Addr(), testzk.Mortal())
	entries := returned([]*call[*barrier.Entry]{
		enter(t, newDouble(t, mortal, path, 2)), enter(t, newDouble(t, connected(t, 1)[0], path, 2)),
	})
	p.Blackhole(true)
	l := leave(t, entries[1])
	testzk.Closes(t, entries[0].Done(), "the entry does not end")
	require.ErrorIs(t, entries[0].Err(), framework.ErrSessionLost)
	l.returns()
	p.Blackhole(false)
	testzk.Empty(t, path)
}

func TestCyclicOnServers(t *testing.T) {
	t.Parallel()
	const n = 4
	all, path := connected(t, n), testzk.Path(t)
	for generation := range 5 {
		for _, g := range returned(partiesAt(t, all, path, n)) {
			require.EqualValues(t, generation, g)
		}
		testzk.Empty(t, path)
	}
}

func TestLatchOnServers(t *testing.T) {
	t.Parallel()
	const n = 8
	all, path := connected(t, 4), testzk.Path(t)
	var waiting []*call[struct{}]
	for _, c := range all {
		waiting = append(waiting, wait(t, newLatch(t, c, path, n)))
	}
	for i := range n {
		allWait(waiting)
		require.NoError(t, newLatch(t, all[i%len(all)], path, n).CountDown(testzk.Context(t)))
	}
	returned(waiting)
	require.NoError(t, newLatch(t, all[0], path, n).Delete(testzk.Context(t)))
}

// The server is killed and paused while there are waiters of all kinds.
func TestWaitsOutlastTheirServer(t *testing.T) {
	t.Parallel()
	server, path := testzk.Own(t, testzk.Seldom), testzk.Path(t)
	a, b := testzk.Connected(t, server.Connect()), testzk.Connected(t, server.Connect())
	require.NoError(t, a.CreateContainers(testzk.Context(t), path))
	require.NoError(t, newBarrier(t, a, path+"/barrier").Set(testzk.Context(t)))
	gate := wait(t, newBarrier(t, b, path+"/barrier"))
	latch := wait(t, newLatch(t, b, path+"/latch", 1))
	party := await(t, newCyclic(t, b, path+"/cyclic", 2))
	server.Kill(t)
	server.Start(t)
	server.Pause(t)
	server.Resume(t)
	gate.waits()
	latch.waits()
	party.waits()
	require.NoError(t, newBarrier(t, a, path+"/barrier").Remove(testzk.Context(t)))
	require.NoError(t, newLatch(t, a, path+"/latch", 1).CountDown(testzk.Context(t)))
	await(t, newCyclic(t, a, path+"/cyclic", 2)).returns()
	gate.returns()
	latch.returns()
	party.returns()
}
