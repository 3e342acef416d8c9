package interop

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

const (
	short = 8 * time.Second // the session timeout of peers that are killed
	long  = time.Minute     // that of peers that keep their sessions while the server is started again, which takes a slow machine 20 s
)

// Locks that are in use all the time, of each kind, while one of the peers is killed, and then the server is, and comes back.
func testAccidents(t *testing.T, all programs) {
	for _, roles := range []struct{ victim, survivor string }{{"java", "docent"}, {"docent", "java"}, {"docent", "kazoo"}, {"kazoo", "docent"}} {
		t.Run(fmt.Sprintf("%s is killed beside %s", roles.victim, roles.survivor), func(t *testing.T) {
			t.Parallel()
			f := assemble(t, all, long, []string{roles.survivor}, reaping()...)
			victim, survivor := speaker{who: roles.victim}, speaker{who: roles.survivor}
			kinds := []kind{mutexKind, writeKind, semMutexKind, oneKind, multiKind}
			if isOf("kazoo", victim, survivor) {
				kinds = []kind{mutexKind, writeKind}
				for _, s := range []*speaker{&victim, &survivor} {
					if s.who == "docent" {
						s.names = docentAsKazoo.names
					}
				}
			}
			f.survive(t, victim, survivor, kinds)
		})
	}
}

// reaping makes a server reap empty containers often, also between two who use one.
func reaping() []ensemble.Option {
	return []ensemble.Option{ensemble.WithProperty("znode.container.checkIntervalMs", "500"),
		ensemble.WithProperty("znode.container.maxPerMinute", "100000")}
}

// survive has the survivor work at locks of all kinds, beside a victim and then beside its successor.
func (f *fleet) survive(t *testing.T, victim, survivor speaker, kinds []kind) {
	var enough atomic.Bool
	var paths, resources []string
	for _, k := range kinds {
		path := newPath(t)
		name := strings.TrimPrefix(path, "/")
		f.resources.open(name, func(*resource) bool { return enough.Load() })
		paths, resources = append(paths, path), append(resources, name)
		if isOf("kazoo", victim, survivor) {
			f.keepParent(t, k.line(path))
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
		f.peers[victim.who] = f.start(t, victim.who, f.ensemble.Connect(), session, f.resources.addr())
		return begin(victim)
	}
	workers := begin(survivor)
	join(short)
	f.goOn(t, resources, workers, victim.who, survivor.who)
	f.peers[victim.who].kill()
	f.goOn(t, resources, workers, survivor.who)
	workers = append(workers, join(long)...)
	f.goOn(t, resources, workers, victim.who, survivor.who)
	server := f.ensemble.Servers()[0]
	require.NoError(t, server.Kill())
	require.NoError(t, server.Start(testzk.Context(t)))
	f.goOn(t, resources, workers, victim.who, survivor.who)
	enough.Store(true)
	f.finish(t, workers)
	for i, name := range resources {
		f.resources.look(name, func(r *resource) { require.Empty(t, r.overlaps) })
		if !isOf("kazoo", victim, survivor) {
			f.vanishes(t, paths[i])
		}
	}
}

// goOn waits until each of the resources was used again and again by each of those who use it.
func (f *fleet) goOn(t *testing.T, resources []string, workers []contender, who ...string) {
	t.Helper()
	const often = 20
	for _, name := range resources {
		before := map[string]int{}
		f.resources.look(name, func(r *resource) {
			for _, w := range who {
				before[w] = r.entries[w]
			}
		})
		for _, w := range who {
			testzk.Eventually(t, func() (more bool) {
				for _, c := range workers {
					if !c.waits() {
						require.FailNow(t, c.name+" has stopped: "+c.answer())
					}
				}
				f.resources.look(name, func(r *resource) { more = r.entries[w] >= before[w]+often })
				return more
			}, "%s does not get on with %s", w, name)
		}
	}
}
