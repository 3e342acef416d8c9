package rwlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

func TestErrorsNameTheNodeAhead(t *testing.T) {
	path := testzk.Path(t)
	a := newLock(t, testzk.Connected(t, testzk.Connect()), path)
	b := newLock(t, testzk.Connected(t, testzk.Connect()), path)
	held := acquire(t, a.Read())
	testzk.Everywhere(t)
	_, err := b.Write().TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorContains(t, err, "recipes: not acquired: behind "+held.Path())
	require.NoError(t, held.Release())
}
