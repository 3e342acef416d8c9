package mutex_test

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
)

func TestContract(t *testing.T) {
	contracttest.Run(t, contracttest.Kind{
		New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			return newMutex(t, c, path)
		},
		Reenters: true,
	})
}
