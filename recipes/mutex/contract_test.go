package mutex_test

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
)

var locks = contracttest.Kinds{"mutex": {
	New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
		return newMutex(t, c, path)
	},
	Reenters: true,
}}

func TestContract(t *testing.T)          { locks.Run(t) }
func TestSimulatedContract(t *testing.T) { locks.Simulate(t) }
