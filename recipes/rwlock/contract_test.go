package rwlock_test

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/locktest"
)

func readSide(t testing.TB, c *framework.Client, path string) locktest.Lock {
	return newLock(t, c, path).Read()
}

func writeSide(t testing.TB, c *framework.Client, path string) locktest.Lock {
	return newLock(t, c, path).Write()
}

func TestContract(t *testing.T) {
	for name, kind := range map[string]locktest.Kind{
		"read":  {New: readSide, Rival: writeSide, Reenters: true},
		"write": {New: writeSide, Reenters: true},
	} {
		t.Run(name, func(t *testing.T) { locktest.Run(t, kind) })
	}
}
