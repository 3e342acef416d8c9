package semaphore_test

import (
	"fmt"
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func TestContract(t *testing.T) {
	for _, limit := range []int{1, 3} {
		t.Run(fmt.Sprintf("semaphore of %d", limit), func(t *testing.T) {
			contract(t, limit, func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
				return newSemaphore(t, c, path, limit)
			})
		})
	}
	t.Run("slots", func(t *testing.T) {
		contract(t, 2, func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			return newSemaphore(t, c, path, 2, semaphore.WithSlots(), semaphore.WithSharedLimit(path+"-limit"))
		})
	})
	t.Run("mutex", func(t *testing.T) {
		contract(t, 1, func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			return newMutex(t, c, path)
		})
	})
}

func contract(t *testing.T, holders int, newLock func(testing.TB, *framework.Client, string) contracttest.Lock) {
	contracttest.Run(t, contracttest.Kind{
		New:     newLock,
		Holders: holders,
		Dirs:    func(path string) []string { return []string{path + "/locks", path + "/leases"} },
		Counted: func(path string) []string { return []string{path + "/locks"} },
	})
}
