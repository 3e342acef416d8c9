package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
)

// testInspection shows the objects of all languages by their nodes. Each language has a part of the
// tree. In the mixed part they share locks.
func testInspection(t *testing.T, f *fleet) {
	root := newPath(t)
	of := func(language string, k kind, at string) {
		t.Helper()
		f.contender(t, speaker{language, ""}, k, root+"/"+at).holds()
	}
	queue := func(language string, k kind, at string) {
		t.Helper()
		f.queues(f.contender(t, speaker{language, ""}, k, root+"/"+at), k, root+"/"+at)
	}
	for _, language := range []string{"docent", "java"} {
		at := func(name string) string { return language + "/" + name }
		of(language, mutexKind, at("mutex"))
		queue(language, mutexKind, at("mutex"))
		of(language, readKind, at("readers"))
		of(language, readKind, at("readers"))
		queue(language, writeKind, at("readers"))
		of(language, twoKind, at("semaphore"))
		of(language, semMutexKind, at("semaphore-mutex"))
		of(language, multiKind, at("multi"))
		of(language, latchKind, at("latch"))
		of(language, selectorKind, at("selector"))
		f.peers[language].actor(t).do("joined", "join", root+"/"+at("group"), "one", "1")
		f.awaitChildren(t, root+"/"+at("group"), 1) // Curator creates the node in the background
	}
	for _, k := range []kind{mutexKind, readKind} {
		of("kazoo", k, "kazoo/"+k.name)
		queue("kazoo", kind{"write", "alone", plain, itself}, "kazoo/"+k.name)
	}
	f.peers["kazoo"].actor(t).do("joined", "join", root+"/kazoo/party", "one", "-")
	for _, shape := range []string{"semaphore", "barrier", "double-barrier", "counter", "shallow-party"} {
		f.peers["kazoo"].actor(t).do("left", "leave-shape", shape, root+"/kazoo/"+shape)
	}
	java := f.peers["java"].actor(t)
	for _, shape := range []string{"barrier", "double-barrier", "atomic"} {
		java.do("left", "leave-shape", shape, root+"/java/"+shape)
	}
	java.do("set", "limit", root+"/java/count", 9)
	services := f.peers["java"].actor(t)
	services.do("made", "services", root+"/java/services", true)
	services.do("registered", "service", "register", "i-1", "DYNAMIC", 8080, "payload", true)
	of("docent", mutexKind, "mixed/mutex")
	queue("java", mutexKind, "mixed/mutex")
	of("java", writeKind, "mixed/rwlock")
	queue("docent", readKind, "mixed/rwlock")

	c := testzk.Connected(t, f.ensemble.Connect())
	var seen []string
	for o, err := range inspect.Walk(testzk.Context(t), c, root) {
		require.NoError(t, err)
		seen = append(seen, inspected(t, o, root))
	}
	require.Equal(t, []string{
		"/docent/group group? 1+0 curator",
		"/docent/latch latch held 1+0 curator",
		"/docent/multi/a mutex held 1+0 curator",
		"/docent/multi/b mutex held 1+0 curator",
		"/docent/mutex mutex waited-for 1+1 curator",
		"/docent/readers rwlock waited-for 2+1 curator",
		"/docent/selector mutex held 1+0 curator",
		"/docent/semaphore semaphore held 1+0 curator of 2",
		"/docent/semaphore-mutex semaphore held 1+0 curator of 1",
		"/java/atomic atomic? 0+0 curator = 7",
		"/java/barrier barrier? closed 0+0 curator",
		"/java/count count? 0+0 curator = 9",
		"/java/double-barrier double-barrier open 1+0 curator",
		"/java/group group? 1+0 curator",
		"/java/latch latch held 1+0 curator",
		"/java/multi/a mutex held 1+0 curator",
		"/java/multi/b mutex held 1+0 curator",
		"/java/mutex mutex waited-for 1+1 curator",
		"/java/readers rwlock waited-for 2+1 curator",
		"/java/selector mutex held 1+0 curator",
		"/java/semaphore semaphore held 1+0 curator",
		"/java/semaphore-mutex semaphore held 1+0 curator",
		"/java/services/orders service 1+0 curator",
		"/kazoo/counter count? 0+0 kazoo = 7",
		"/kazoo/double-barrier double-barrier open 1+0 kazoo",
		"/kazoo/mutex mutex waited-for 1+1 kazoo",
		"/kazoo/party group 1+0 kazoo",
		"/kazoo/read rwlock waited-for 1+1 kazoo",
		"/kazoo/semaphore semaphore? held 1+0 kazoo of 2",
		"/kazoo/shallow-party group? 1+0 kazoo",
		"/mixed/mutex mutex waited-for 1+1 curator",
		"/mixed/rwlock rwlock waited-for 1+1 curator",
	}, seen)
	barrier, err := inspect.Show(testzk.Context(t), c, root+"/kazoo/barrier")
	require.NoError(t, err)
	require.Equal(t, inspect.KindUnknown, barrier.Kind, "an empty node can be anything")
	mutex, err := inspect.Show(testzk.Context(t), c, root+"/mixed/mutex")
	require.NoError(t, err)
	for i, n := range mutex.Nodes {
		view, err := inspect.Session(testzk.Context(t), c, root, n.Session)
		require.NoError(t, err)
		require.Len(t, slices.Concat(view.Holds, view.Waits), 1, "each actor has a session")
		require.Equal(t, i == 0, len(view.Holds) == 1)
	}
}

func inspected(t *testing.T, o *inspect.Object, root string) string {
	t.Helper()
	require.False(t, o.Torn)
	require.Empty(t, o.Warnings)
	for _, n := range o.Nodes {
		require.Empty(t, n.Err)
		require.NotZero(t, n.Token)
	}
	text := strings.TrimPrefix(o.Path, root) + " " + string(o.Kind)
	if !o.Sure {
		text += "?"
	}
	if o.State != "" {
		text += " " + string(o.State)
	}
	text += fmt.Sprintf(" %d+%d", o.Holders, o.Waiters)
	for _, l := range o.Layouts {
		text += " " + string(l)
	}
	if o.Limit != nil {
		text += fmt.Sprintf(" of %d", *o.Limit)
	}
	if o.Value != nil {
		text += fmt.Sprintf(" = %d", *o.Value)
	}
	return text
}
