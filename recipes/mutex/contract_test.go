package mutex_test

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/locktest"
)

func TestContract(t *testing.T) {
	locktest.Run(t, locktest.Kind{
		New:      func(t testing.TB, c *framework.Client, path string) locktest.Lock { return newMutex(t, c, path) },
		Reenters: true,
	})
}
