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

func TestContract(t *testing.T) {
	for name, kind := range map[string]contracttest.Kind{
		"read":  {New: readSide, Rival: writeSide, Reenters: true},
		"write": {New: writeSide, Reenters: true},
	} {
		t.Run(name, func(t *testing.T) { contracttest.Run(t, kind) })
	}
}
