package interop

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

const (
	short = 8 * time.Second // session timeout of peers that are killed, if no other waits for its end
	// Peers that keep their sessions while the server restarts use this session timeout. A restart
	// takes 20 s on a slow machine.
	long = time.Minute
	// A server that starts may leave a request for a session without an answer. kazoo waits for it as
	// long as its session lasts, makes another one, and needs its turn.
	stalled = 3 * long
	// Each user of a resource stays in it so long. The locks are held nearly all the time, and the servers
	// are not busy all the time.
	stay = 10 * time.Millisecond
)

// Locks of each kind are in use all the time while one of the peers is killed, and then while the
// server is killed and restarted.
func testAccidents(t *testing.T, all programs) {
	for _, roles := range []struct{ killed, survivor string }{{"java", "docent"}, {"docent", "java"},
		{"docent", "kazoo"}, {"kazoo", "docent"}} {
		t.Run(fmt.Sprintf("%s is killed beside %s", roles.killed, roles.survivor), func(t *testing.T) {
			t.Parallel()
			f := assemble(t, all, long, []string{roles.survivor}, reaping()...)
			killed, survivor := speaker{language: roles.killed}, speaker{language: roles.survivor}
			kinds := []kind{mutexKind, writeKind, semMutexKind, oneKind, multiKind}
			if isOf("kazoo", killed, survivor) {
				kinds = []kind{mutexKind, writeKind}
				for _, s := range []*speaker{&killed, &survivor} {
					if s.language == "docent" {
						s.names = docentAsKazoo.names
					}
				}
			}
			f.survive(t, killed, survivor, kinds)
		})
	}
}

// reaping makes a server reap empty containers often, also between two acquires.
func reaping() []ensemble.Option {
	return []ensemble.Option{ensemble.WithProperty("znode.container.checkIntervalMs", "500"),
		ensemble.WithProperty("znode.container.maxPerMinute", "100000")}
}

// survive lets the survivor use locks of all kinds, first with a peer that is killed and then with
// a new one.
func (f *fleet) survive(t *testing.T, killed, survivor speaker, kinds []kind) {
	var enough atomic.Bool
	var paths, resources []string
	for _, k := range kinds {
		path := newPath(t)
		name := strings.TrimPrefix(path, "/")
		f.resources.open(name, func(*resource) bool { return enough.Load() })
		f.resources.inspect(name, func(r *resource) { r.stay = stay })
		paths, resources = append(paths, path), append(resources, name)
		if isOf("kazoo", killed, survivor) {
			f.keepParent(t, k.queue(path))
		}
	}
	begin := func(s speaker) (workers []contender) {
		t.Helper()
		for i, k := range kinds {
			c := f.contender(t, s, k, paths[i])
			c.tell("work", c.lock, resources[i], k.role)
			workers = append(workers, c)
		}
		return workers
	}
	join := func(session time.Duration) []contender {
		t.Helper()
		f.peers[killed.language] = f.start(t, killed.language, f.ensemble.Connect(), session, f.resources.addr())
		return begin(killed)
	}
	workers := begin(survivor)
	victims := join(calm)
	f.goOn(t, resources, slices.Concat(workers, victims), killed.language, survivor.language)
	f.peers[killed.language].kill()
	f.goOn(t, resources, workers, survivor.language)
	workers = append(workers, join(long)...)
	f.goOn(t, resources, workers, killed.language, survivor.language)
	server := f.ensemble.Servers()[0]
	require.NoError(t, server.Kill())
	require.NoError(t, server.Start(testzk.Context(t)))
	f.goOn(t, resources, workers, killed.language, survivor.language)
	// The driver may have dialled before the server answered, and then waits on that connection for
	// several session timeouts.
	f.observer = testzk.ObserverOf(t, f.ensemble.Connect())
	enough.Store(true)
	f.finish(t, workers, resources...)
	for i, name := range resources {
		f.resources.inspect(name, func(r *resource) { require.Empty(t, r.overlaps) })
		if !isOf("kazoo", killed, survivor) {
			f.vanishes(t, paths[i])
		}
	}
}

// goOn waits until each of the languages has used each of the resources several times more.
func (f *fleet) goOn(t *testing.T, resources []string, workers []contender, language ...string) {
	t.Helper()
	const often = 20
	for _, name := range resources {
		before := map[string]int{}
		f.resources.inspect(name, func(r *resource) {
			for _, w := range language {
				before[w] = r.entries[w]
			}
		})
		for _, w := range language {
			goesOn := func() (more bool) {
				for _, c := range workers {
					if !c.waits() {
						require.FailNow(t, c.name+" has stopped: "+c.answer())
					}
				}
				f.resources.inspect(name, func(r *resource) { more = r.entries[w] >= before[w]+often })
				return more
			}
			require.Eventually(t, goesOn, stalled, 5*time.Millisecond, "%s makes no progress with %s", w, name)
		}
	}
}
