package rwlock_test

import (
	"path"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

func TestKazooNamesEndAsInKazoo(t *testing.T) {
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t), rwlock.WithKazooNames())
	for end, side := range map[string]*rwlock.Side{"__rlock__": rw.Read(), "__lock__": rw.Write()} {
		hold := acquire(t, side)
		require.Regexp(t, "^_c_"+guid+"-"+end+`\d{10}$`, path.Base(hold.Path()))
		release(t, hold)
	}
	held := acquire(t, rw.Write())
	beside := downgrade(t, rw, held)
	require.Regexp(t, "^_c_"+guid+"-__rlock__"+digits(held.Path())+"$", path.Base(beside.Path()))
	release(t, held)
	release(t, beside)
}

// Locks with Curator's names, locks with kazoo's names, and nodes that kazoo itself would create.
func TestSidesOfDifferentNamesExcludeEachOther(t *testing.T) {
	const kazoos = "8026b7580c644418a4a7a40067d845c1"
	names := map[string][]rwlock.Option{"Curator's names": nil, "kazoo's names": {rwlock.WithKazooNames()}}
	for name, opts := range names {
		t.Run(name, func(t *testing.T) {
			p, c := testzk.Path(t), testzk.Connected(t, testzk.Connect())
			rw := newLock(t, c, p, opts...)
			for first, sides := range map[string]struct{ free, barred []*rwlock.Side }{
				"-__READ__":                {[]*rwlock.Side{rw.Read()}, []*rwlock.Side{rw.Write()}},
				kazoos + "__rlock__":       {[]*rwlock.Side{rw.Read()}, []*rwlock.Side{rw.Write()}},
				"-__WRIT__":                {nil, []*rwlock.Side{rw.Read(), rw.Write()}},
				kazoos + "__lock__":        {nil, []*rwlock.Side{rw.Read(), rw.Write()}},
				"note of another program-": {[]*rwlock.Side{rw.Read(), rw.Write()}, nil},
			} {
				node := ahead(t, c, p, first)
				for _, side := range sides.free {
					release(t, acquire(t, side))
				}
				for _, side := range sides.barred {
					_, err := side.TryAcquire(testzk.Context(t))
					require.ErrorIs(t, err, recipes.ErrNotAcquired, first)
				}
				require.NoError(t, c.Delete(testzk.Context(t), node, -1))
			}
		})
	}
}

// ahead creates a node of another client in the queue.
func ahead(t *testing.T, c *framework.Client, lock, name string) (node string) {
	t.Helper()
	node, err := c.Create(testzk.Context(t), lock+"/"+name, nil,
		framework.Ephemeral(), framework.Sequential(), framework.Parents(),
		framework.ACL(zk.WorldACL(zk.PermAll)...))
	require.NoError(t, err)
	return node
}

func TestParticipantsOfASideHaveEitherNames(t *testing.T) {
	p, c := testzk.Path(t), testzk.Connected(t, testzk.Connect())
	ours, kazoos := newLock(t, c, p), newLock(t, c, p, rwlock.WithKazooNames())
	for _, holds := range [][]*recipes.Hold{
		{acquire(t, ours.Read()), acquire(t, kazoos.Read())},
		{acquire(t, kazoos.Read()), acquire(t, ours.Read())},
	} {
		for _, l := range []*rwlock.RWLock{ours, kazoos} {
			readers, err := l.Read().Participants(testzk.Context(t))
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(readers), 2)
			writers, err := l.Write().Participants(testzk.Context(t))
			require.NoError(t, err)
			require.Empty(t, writers)
		}
		for _, h := range holds {
			release(t, h)
		}
	}
}

// A waiting WriteLock of kazoo is behind the only reader, like a writer of docent. It does not
// prevent the upgrade.
func TestUpgradeBeforeAWaitingWriterOfKazoo(t *testing.T) {
	p, c := testzk.Path(t), testzk.Connected(t, testzk.Connect())
	rw := newLock(t, c, p)
	held := acquire(t, rw.Read())
	node := ahead(t, c, p, "8026b7580c644418a4a7a40067d845c1__lock__")
	upgraded := upgrade(t, rw, held)
	release(t, upgraded)
	require.NoError(t, c.Delete(testzk.Context(t), node, -1))
	release(t, held)
}
