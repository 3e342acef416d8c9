package rwlock_test

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
)

func readSide(t testing.TB, c *framework.Client, path string) contracttest.Lock {
	return newLock(t, c, path).Read()
}

func writeSide(t testing.TB, c *framework.Client, path string) contracttest.Lock {
	return newLock(t, c, path).Write()
}

var locks = contracttest.Kinds{
	"read":  {New: readSide, Rival: writeSide, Reenters: true},
	"write": {New: writeSide, Reenters: true},
}

func TestContract(t *testing.T)          { locks.Run(t) }
func TestSimulatedContract(t *testing.T) { locks.Simulate(t) }
