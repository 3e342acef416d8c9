package counter_test

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/zktest"
)

const path = "/counters/orders"

// The helpers of all recipes.
var (
	virtually = testlock.Virtually
	client    = testlock.Named
	expire    = testlock.Expire
)

// idle waits until markers of unused counters are deleted.
func idle() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func newAtomic(t testing.TB, c *framework.Client, path string, opts ...counter.Option) *counter.Atomic {
	t.Helper()
	a, err := counter.NewAtomic(c, path, opts...)
	require.NoError(t, err)
	return a
}

func newCount(t testing.TB, c *framework.Client, path string, seed int32) *counter.Count {
	t.Helper()
	n, err := counter.NewCount(c, path, seed)
	require.NoError(t, err)
	return n
}

func newValue(t testing.TB, c *framework.Client, path, seed string) *counter.Value {
	t.Helper()
	v, err := counter.NewValue(c, path, []byte(seed))
	require.NoError(t, err)
	return v
}

// added adds and requires a result.
func added(t testing.TB, a *counter.Atomic, delta, want int64) {
	t.Helper()
	sum, err := a.Add(testzk.Context(t), delta)
	require.NoError(t, err)
	require.Equal(t, want, sum)
}

// stored returns the number of an Atomic as the server has it.
func stored(t testing.TB, srv *zktest.Server, path string) int64 {
	t.Helper()
	data, err := srv.Get(path)
	require.NoError(t, err)
	require.Len(t, data, 8)
	return int64(binary.BigEndian.Uint64(data))
}

// requires an error with an outcome.
func failed(t testing.TB, err error, outcome framework.Outcome, target error) {
	t.Helper()
	require.ErrorIs(t, err, target)
	require.Equal(t, outcome, framework.OutcomeOf(err), "%v", err)
}

func background() context.Context { return context.Background() }
