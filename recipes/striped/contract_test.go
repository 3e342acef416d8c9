package striped_test

import (
	"fmt"
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/striped"
)

const key = "order-17"

// stripe returns the directory of a key's stripe.
func stripe(path string, n int, key string) string {
	return fmt.Sprintf("%s/%d/%d", path, n, striped.Index(key, n))
}

var locks = contracttest.Kinds{
	"plain": {
		New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			return newStriped(t, c, path, 8).For(key)
		},
		Dirs:     func(path string) []string { return []string{stripe(path, 8, key)} },
		Reenters: true,
	},
	"during a change": {
		New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			return newStriped(t, c, path, 5, striped.WithPrevious(8)).For(key)
		},
		Dirs:     func(path string) []string { return []string{stripe(path, 5, key), stripe(path, 8, key)} },
		Reenters: true,
	},
}

func TestContract(t *testing.T)          { locks.Run(t) }
func TestSimulatedContract(t *testing.T) { locks.Simulate(t) }
