package interop

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// combination is two locks of one path that exclude each other.
type combination struct{ holder, rival kind }

func (c combination) String() string { return c.holder.name + " and " + c.rival.name }

// kindOf returns the kind of lock that a language uses in a combination.
func (c combination) kindOf(language string, first, second speaker) string {
	switch language {
	case first.language:
		return c.holder.name
	case second.language:
		return c.rival.name
	}
	return ""
}

// These kinds have lists of participants, and requests to release, in the other languages, too.
var (
	listed    = []string{mutexKind.name, writeKind.name, oneKind.name}
	revocable = []string{mutexKind.name, writeKind.name, readKind.name}
)

// combinations returns the combinations of a pair of languages.
func combinations(one, other speaker) []combination {
	all := []combination{{mutexKind, mutexKind}, {writeKind, writeKind}, {writeKind, readKind}, {readKind, writeKind}}
	switch {
	case one == docentAsKazoo || other == docentAsKazoo:
		return append(all, combination{selectorKind, selectorKind})
	case isOf("kazoo", one, other):
		return all
	}
	for _, k := range []kind{semMutexKind, oneKind, multiKind, latchKind, selectorKind} {
		all = append(all, combination{k, k})
	}
	return all
}

// testPairs tests all methods of locks with pairs of languages, in both directions.
func testPairs(t *testing.T, f *fleet) {
	for _, pair := range [][2]speaker{{docent, java}, {docent, awareKazoo}, {docentAsKazoo, kazoo},
		{docent, kazooAsCurator}} {
		each(t, pair[0], pair[1], func(t *testing.T, first, second speaker) {
			for _, c := range combinations(first, second) {
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					t.Run("exclusion", func(t *testing.T) { t.Parallel(); f.exclude(t, first, second, c) })
					if c.kindOf("kazoo", first, second) != readKind.name { // see rwWith
						t.Run("first come first served", func(t *testing.T) {
							t.Parallel()
							f.serveInOrder(t, first, second, c)
						})
					}
					if c.holder.name == c.rival.name && slices.Contains(listed, c.holder.name) {
						t.Run("participants", func(t *testing.T) { t.Parallel(); f.listEachOther(t, first, second, c) })
					}
					if !isOf("kazoo", first, second) && slices.Contains(revocable, c.holder.name) {
						t.Run("revocation", func(t *testing.T) { t.Parallel(); f.revoke(t, first, second, c) })
					}
				})
			}
			t.Run("readers share", func(t *testing.T) { t.Parallel(); f.share(t, first, second, readKind) })
			if !isOf("kazoo", first, second) {
				t.Run("permits are shared", func(t *testing.T) { t.Parallel(); f.share(t, first, second, twoKind) })
			}
		})
	}
}

// Of tries, acquires with a timeout and acquires without one, only that of the holder succeeds.
func (f *fleet) exclude(t *testing.T, first, second speaker, c combination) {
	path := newPath(t)
	holder, rival := f.contender(t, first, c.holder, path), f.contender(t, second, c.rival, path)
	holder.holds()
	before := f.children(t, c.rival.queue(path))
	rival.isBusy()
	rival.do("busy", "acquire", rival.lock, 200)
	f.awaitNodes(t, c.rival, path, before)
	f.queues(rival, c.rival, path)
	rival.staysOut()
	holder.releases()
	rival.wins()
	holder.isBusy()
	rival.releases()
	holder.holds()
	holder.releases()
	f.clears(t, path)
}

// Two clients hold the semaphore at a time.
func (f *fleet) share(t *testing.T, first, second speaker, k kind) {
	path := newPath(t)
	one, other := f.contender(t, first, k, path), f.contender(t, second, k, path)
	one.holds()
	other.holds()
	if k.name == readKind.name && !isOf("kazoo", first, second) {
		mine := bases(one.lists(one.lock))
		require.Len(t, mine, 2)
		require.Equal(t, mine, bases(other.lists(other.lock)))
	}
	one.releases()
	one.holds()
	if k.role == "one-of-2" {
		third := f.contender(t, first, k, path)
		third.isBusy()
		f.queues(third, k, path)
		other.releases()
		third.wins()
		third.releases()
	} else {
		other.releases()
	}
	one.releases()
	f.clears(t, path)
}

// Locks are granted in the order in which the nodes were created, by any language.
func (f *fleet) serveInOrder(t *testing.T, first, second speaker, c combination) {
	const waiters = 6
	path := newPath(t)
	holder := f.contender(t, first, c.holder, path)
	holder.holds()
	var queue []contender
	for i := range waiters {
		language, k := second, c.rival
		if i%2 == 1 {
			// The kinds alternate, so that no two compatible nodes of a read-write lock are
			// adjacent.
			language, k = first, c.holder
		}
		next := f.contender(t, language, k, path)
		f.queues(next, k, path)
		queue = append(queue, next)
	}
	for i, next := range queue {
		for _, later := range queue[i:] {
			require.True(t, later.waits(), "%s was granted the lock before its turn", later.name)
		}
		holder.releases()
		next.wins()
		holder = next
	}
	holder.releases()
	f.clears(t, path)
}

// Each side lists both participants in the same order. kazoo lists identifiers, which are chosen by
// the caller. A semaphore of Curator lists leases only.
func (f *fleet) listEachOther(t *testing.T, first, second speaker, c combination) {
	path := newPath(t)
	holder, waiter := f.contender(t, first, c.holder, path), f.contender(t, second, c.rival, path)
	reader := f.contender(t, second, c.rival, path)
	holder.holds()
	mine, theirs := bases(holder.lists(holder.lock)), bases(reader.lists(reader.lock))
	if !isOf("kazoo", first, second) {
		require.Len(t, mine, 1)
		require.Equal(t, mine, theirs)
	}
	f.queues(waiter, c.rival, path)
	if c.holder.name != "semaphore" {
		mine, theirs = bases(holder.lists(holder.lock)), bases(reader.lists(reader.lock))
		require.Len(t, mine, 2)
		if isOf("kazoo", first, second) {
			require.Len(t, theirs, 2)
		} else {
			require.Equal(t, mine, theirs)
		}
	}
	holder.releases()
	waiter.wins()
	waiter.releases()
}

// Revocation is Curator's protocol, which kazoo does not have.
func (f *fleet) revoke(t *testing.T, first, second speaker, c combination) {
	path := newPath(t)
	holder, rival := f.contender(t, first, c.holder, path), f.contender(t, second, c.rival, path)
	holder.do("revocable", "revocable", holder.lock)
	holder.holds()
	nodes := holder.lists(holder.lock)
	require.Len(t, nodes, 1)
	require.True(t, strings.HasPrefix(nodes[0], path), nodes[0])
	f.queues(rival, c.rival, path)
	asker := f.contender(t, second, c.rival, path)
	asker.do("asked", "revoke", nodes[0])
	require.Equal(t, "revoked "+holder.lock, holder.hear(holder.events))
	holder.releases()
	rival.wins()
	rival.releases()
}

// After a downgrade no writer gets the lock before the reader has released it, not even a writer
// that waited before.
func testDowngrades(t *testing.T, f *fleet) {
	for _, pair := range [][2]speaker{{docent, java}, {docentAsKazoo, kazoo}, {docent, awareKazoo},
		{docent, kazooAsCurator}} {
		each(t, pair[0], pair[1], func(t *testing.T, first, second speaker) {
			if first.language == "kazoo" {
				t.Skip("it has no downgrade")
			}
			path := newPath(t)
			holder := f.contender(t, first, writeKind, path)
			holder.gets(otherLockName, first, readKind, path)
			reader := contender{holder.actor, otherLockName}
			holder.holds()
			writer, later := f.contender(t, second, writeKind, path), f.contender(t, second, readKind, path)
			f.queues(writer, writeKind, path)
			reader.holds()
			readers, writers := bases(reader.lists(reader.lock)), bases(holder.lists(holder.lock))
			require.Len(t, readers, 1)
			require.Len(t, writers, 2)
			if first.language == "java" && order(readers[0]) > order(writers[1]) {
				t.Log("this Curator puts the reader behind the waiting writers, and so grants them the lock: " +
					"CURATOR-621")
				holder.releases()
				writer.wins()
				return
			}
			holder.releases()
			writer.staysOut()
			f.queues(later, readKind, path)
			reader.releases()
			writer.wins()
			later.staysOut()
			writer.releases()
			later.wins()
			later.releases()
			f.clears(t, path)
		})
	}
}

// All languages use one limit in a SharedCount, which any of them may set.
func testSharedLimit(t *testing.T, f *fleet) {
	each(t, docent, java, func(t *testing.T, first, second speaker) {
		path := newPath(t)
		limit := path + "-limit"
		shared := kind{"shared-semaphore", "", func(path string) []any { return []any{path, limit} }, guarded}
		one, other := f.contender(t, first, shared, path), f.contender(t, second, shared, path)
		one.holds()
		other.isBusy()
		f.queues(other, shared, path)
		one.do("set", "limit", limit, 2)
		other.wins()
		other.do("set", "limit", limit, 1)
		one.releases()
		// Curator calls its listeners in the background.
		testzk.Eventually(t, func() bool {
			one.tell("acquire", one.lock, 0)
			busy := one.answer() == "busy"
			if !busy {
				one.releases()
			}
			return busy
		}, "one more than the limit")
		other.releases()
		one.holds()
		one.releases()
	})
	t.Run("set by kazoo", func(t *testing.T) {
		t.Parallel()
		path := newPath(t)
		limit := path + "-limit"
		shared := kind{"shared-semaphore", "", func(path string) []any { return []any{path, limit} }, guarded}
		one, other := f.contender(t, docent, shared, path), f.contender(t, docent, shared, path)
		one.holds()
		f.queues(other, shared, path)
		f.peers["kazoo"].actor(t).do("set", "limit", limit, 2)
		other.wins()
		other.releases()
		one.releases()
	})
}
