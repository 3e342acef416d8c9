package semaphore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func TestDoHoldsTheLockWhileTheFunctionRuns(t *testing.T) {
	client, path := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	sem := newSemaphore(t, client, path+"/semaphore", 1)
	mu := newMutex(t, client, path+"/mutex")
	for name, test := range map[string]struct{ lock, rival contracttest.Bounded }{
		"semaphore": {sem, sem},
		"mutex":     {mu, mu},
	} {
		t.Run(name, func(t *testing.T) { contracttest.Do(t, test.lock, test.rival) })
	}
}

func TestPath(t *testing.T) {
	client := testzk.Connected(t, testzk.Connect())
	for _, test := range []struct {
		lock interface{ Path() string }
		path string
	}{
		{newSemaphore(t, client, "/limits/a", 1), "/limits/a"},
		{new(semaphore.Semaphore), ""},
		{newMutex(t, client, "/locks/a"), "/locks/a"},
		{new(semaphore.Mutex), ""},
	} {
		require.Equal(t, test.path, test.lock.Path())
	}
}
