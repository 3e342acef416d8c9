package group_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// These tests run on real servers too.

func (w *watcher) sees(want ...string) {
	w.t.Helper()
	testzk.Eventually(w.t, func() bool { return slices.Equal(want, w.members()) }, "want %v", want)
}

func TestGroupOnServers(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := testzk.Proxy(t)
	cut := testzk.Connected(t, p.Addr(), testzk.Mortal())
	calm := testzk.Connected(t, testzk.Connect())
	watchers := []*watcher{watch(t, calm, path), watch(t, cut, path)}
	one, two := join(t, cut, path, "one", "1"), join(t, calm, path, "two", "2")
	for _, w := range watchers {
		w.sees("one=1", "two=2")
	}
	session, err := cut.Session(t.Context())
	require.NoError(t, err)
	p.Blackhole(true)
	<-session.Done()
	require.NoError(t, one.SetPayload([]byte("1b")))
	watchers[0].sees("two=2")
	p.Blackhole(false)
	for _, w := range watchers {
		w.sees("one=1b", "two=2")
	}
	require.NoError(t, two.Close())
	for _, w := range watchers {
		w.sees("one=1b")
	}
	require.NoError(t, one.Close())
	for _, w := range watchers {
		w.sees()
	}
}

func TestGroupOutlastsItsServer(t *testing.T) {
	t.Parallel()
	server, path := testzk.Own(t, testzk.Seldom), testzk.Path(t)
	a, b := testzk.Connected(t, server.Connect()), testzk.Connected(t, server.Connect())
	w := watch(t, a, path)
	m := join(t, b, path, "one", "1")
	w.sees("one=1")
	server.Kill(t)
	require.NoError(t, m.SetPayload([]byte("killed")))
	server.Start(t)
	w.sees("one=killed")
	server.Pause(t)
	require.NoError(t, m.SetPayload([]byte("paused")))
	server.Resume(t)
	w.sees("one=paused")
}
