package multilock_test

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
)

// two returns the paths of the two locks that a lock of the contract combines.
func two(path string) []string { return []string{path + "/a", path + "/b"} }

var locks = contracttest.Kinds{
	"new": {
		New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			return newMulti(t, c, two(path))
		},
		Dirs:     two,
		Reenters: true,
	},
	"of": {
		New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			return combined(t, newMutex(t, c, path+"/a"), newMutex(t, c, path+"/b"))
		},
		Dirs:     two,
		Reenters: true,
	},
}

func TestContract(t *testing.T)          { locks.Run(t) }
func TestSimulatedContract(t *testing.T) { locks.Simulate(t) }
