package multilock_test

import (
	"testing"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/multilock"
)

func TestDoHoldsTheLockWhileTheFunctionRuns(t *testing.T) {
	client, path := own(t), testzk.Path(t)
	together := newMulti(t, client, []string{path + "/a", path + "/b"})
	inOrder := newMulti(t, client, []string{path + "/c", path + "/d"}, multilock.WithPathOrder())
	listed := combined(t, newMutex(t, client, path+"/e"), newMutex(t, client, path+"/f"))
	for name, test := range map[string]struct{ lock, rival contracttest.Bounded }{
		"New":           {together, together},
		"WithPathOrder": {inOrder, inOrder},
		"Of":            {listed, listed},
	} {
		t.Run(name, func(t *testing.T) { contracttest.Do(t, test.lock, test.rival) })
	}
}
