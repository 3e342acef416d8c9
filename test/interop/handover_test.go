package interop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// member is a worker at a lock.
type member struct {
	speaker
	kind
}

// two returns members of two languages for each of the kinds.
func two(one, other speaker, kinds ...kind) (members []member) {
	for _, k := range kinds {
		members = append(members, member{one, k}, member{other, k})
	}
	return members
}

// rwWith returns readers and writers, but no readers of kazoo. The readers of kazoo 2.8 wait for
// writers behind them, too, which wait for the readers (kazoo's issue 649).
func rwWith(docent, kazoo speaker) []member {
	return append(two(docent, kazoo, writeKind), member{docent, readKind})
}

// A lock passes a thousand times from one language to another, and the resource finds no user
// beside an incompatible one.
func testHandOvers(t *testing.T, f *fleet) {
	for name, test := range map[string]struct {
		members []member
		goal    int
	}{
		"mutex":                    {two(docent, java, mutexKind), 1000},
		"semaphore mutex":          {two(docent, java, semMutexKind), 1000},
		"read-write lock":          {two(docent, java, readKind, writeKind), 1000},
		"semaphore":                {two(docent, java, twoKind, twoKind), 1000},
		"multi-lock":               {two(docent, java, multiKind), 1000},
		"mutex with kazoo":         {two(docent, awareKazoo, mutexKind), 200},
		"mutex with kazoo's names": {two(docentAsKazoo, kazoo, mutexKind), 200},
		"mutex with kazoo and Curator's names": {append(two(docent, kazooAsCurator, mutexKind),
			member{java, mutexKind}), 300},
		"read-write lock with kazoo":                 {rwWith(docent, awareKazoo), 200},
		"read-write lock with kazoo's names":         {rwWith(docentAsKazoo, kazoo), 200},
		"read-write lock with Curator's names":       {rwWith(docent, kazooAsCurator), 200},
		"mutex with docent's own of different names": {two(docent, docentAsKazoo, mutexKind), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			used := strings.TrimPrefix(path, "/")
			f.resources.open(used, func(r *resource) bool { return r.handOver >= test.goal && r.total() >= fewest })
			f.work(t, test.members, path, used)
			f.resources.inspect(used, func(r *resource) {
				require.Empty(t, r.overlaps)
				require.GreaterOrEqual(t, r.handOver, test.goal)
				t.Logf("%d hand-overs, entries %v", r.handOver, r.entries)
			})
			f.clears(t, path)
		})
	}
}

// work lets all members work until the resource has enough.
func (f *fleet) work(t *testing.T, members []member, path, used string) {
	t.Helper()
	var all []contender
	for _, m := range members {
		if m.language == "kazoo" {
			f.keepParent(t, path)
		}
		all = append(all, f.contender(t, m.speaker, m.kind, path))
	}
	for i, worker := range all {
		worker.tell("work", worker.lock, used, members[i].role)
	}
	f.finish(t, all, used)
}

// finish waits until all workers have ended. It gives up if a resource that has not had enough is no longer
// handed over.
func (f *fleet) finish(t *testing.T, all []contender, resources ...string) {
	t.Helper()
	end, seen := time.Now().Add(3*patience), 0
	for len(all) > 0 {
		done := 0
		for _, name := range resources {
			f.resources.inspect(name, func(r *resource) { done += r.handOver + min(r.total(), fewest) })
		}
		if done > seen {
			end, seen = time.Now().Add(3*patience), done
		}
		require.True(t, time.Now().Before(end), "%d workers do not end", len(all))
		all = slices.DeleteFunc(all, contender.hasWorked)
		time.Sleep(10 * time.Millisecond)
	}
}

// fewest is how often a resource is used at least.
const fewest = 200

// hasWorked reports whether a worker has ended. It fails the test if the worker ended with an
// error.
func (c contender) hasWorked() bool {
	c.t.Helper()
	select {
	case answer := <-c.answers:
		require.Regexp(c.t, `^worked [1-9]\d*$`, answer, c.name)
		return true
	case <-c.done:
		require.FailNow(c.t, c.name+" is gone")
	default:
	}
	return false
}

// keepParent creates a parent that is no container. kazoo creates its parents only once, and fails
// if one is reaped later.
func (f *fleet) keepParent(t *testing.T, path string) {
	t.Helper()
	_, err := f.observer.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	if err != zk.ErrNodeExists {
		require.NoError(t, err)
	}
}
