package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

func TestErrorsNameTheNodeAheadAmongAllLocks(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	held := acquire(t, newMutex(t, c, path+"/b"))
	all := newMulti(t, testzk.Connected(t, testzk.Connect()), []string{path + "/a", path + "/b"})
	testzk.Everywhere(t)
	_, err := all.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorContains(t, err, "recipes: not acquired: behind "+held.Path())
	require.NoError(t, held.Release())
}
