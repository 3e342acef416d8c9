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

// short is the session timeout of peers that are killed. A server that is killed is back before.
const short = 15 * time.Second

// Locks that are in use all the time, of each kind, while the server is killed and comes back, and then one of the peers is killed.
func testAccidents(t *testing.T, all programs) {
	for _, roles := range []struct{ victim, survivor string }{{"java", "docent"}, {"docent", "java"}, {"docent", "kazoo"}, {"kazoo", "docent"}} {
		t.Run(fmt.Sprintf("%s is killed beside %s", roles.victim, roles.survivor), func(t *testing.T) {
			t.Parallel()
			f := assemble(t, all, short, []string{roles.victim, roles.survivor}, reaping()...)
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

// survive has the survivor work at locks of all kinds beside a victim.
func (f *fleet) survive(t *testing.T, victim, survivor speaker, kinds []kind) {
	var enough atomic.Bool
	var workers []contender
	var resources, lines []string
	for _, k := range kinds {
		path := newPath(t)
		name := strings.TrimPrefix(path, "/")
		f.resources.open(name, func(*resource) bool { return enough.Load() })
		for _, s := range []speaker{victim, survivor} {
			if s.who == "kazoo" {
				f.keepParent(t, path)
			}
			c := f.contender(t, s, k, path)
			c.tell("work", c.lock, name, k.role)
			if s == survivor {
				workers = append(workers, c)
			}
		}
		resources, lines = append(resources, name), append(lines, path)
	}
	goOn := func(who ...string) {
		t.Helper()
		f.goOn(t, resources, workers, who...)
	}
	goOn(victim.who, survivor.who)
	server := f.ensemble.Servers()[0]
	require.NoError(t, server.Kill())
	require.NoError(t, server.Start(testzk.Context(t)))
	goOn(victim.who, survivor.who)
	f.peers[victim.who].kill()
	goOn(survivor.who)
	enough.Store(true)
	f.finish(t, workers)
	for i, name := range resources {
		f.resources.look(name, func(r *resource) { require.Empty(t, r.overlaps) })
		if !isOf("kazoo", victim, survivor) {
			f.vanishes(t, lines[i])
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
