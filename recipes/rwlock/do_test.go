package rwlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/rwlock"
)

func TestDoHoldsTheLockWhileTheFunctionRuns(t *testing.T) {
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	for name, test := range map[string]struct{ lock, rival contracttest.Bounded }{
		"read":  {rw.Read(), rw.Write()},
		"write": {rw.Write(), rw.Read()},
	} {
		t.Run(name, func(t *testing.T) { contracttest.Do(t, test.lock, test.rival) })
	}
}

func TestPath(t *testing.T) {
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), "/locks/a")
	require.Equal(t, "/locks/a", rw.Read().Path())
	require.Equal(t, "/locks/a", rw.Write().Path())
	require.Empty(t, new(rwlock.Side).Path())
}
