package handoff_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func newMutex(t testing.TB, c *framework.Client, path string, opts ...mutex.Option) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path, opts...)
	require.NoError(t, err)
	return mu
}

func acquire(t testing.TB, mu *mutex.Mutex) *recipes.Hold {
	t.Helper()
	hold, err := mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Err())
	return hold
}
