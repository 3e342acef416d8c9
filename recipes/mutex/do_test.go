package mutex_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/mutex"
)

func TestDoHoldsTheLockWhileTheFunctionRuns(t *testing.T) {
	client, path := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	plain := newMutex(t, client, path+"/plain")
	local := newMutex(t, client, path+"/local", mutex.WithLocalHandoff(mutex.Handoff{Streak: 1, Span: time.Minute}))
	for name, test := range map[string]struct{ lock, rival contracttest.Bounded }{
		"plain":          {plain, plain},
		"local hand-off": {local, local},
	} {
		t.Run(name, func(t *testing.T) { contracttest.Do(t, test.lock, test.rival) })
	}
}

func TestPath(t *testing.T) {
	require.Equal(t, "/locks/a", newMutex(t, testzk.Connected(t, testzk.Connect()), "/locks/a").Path())
	require.Empty(t, new(mutex.Mutex).Path())
}
