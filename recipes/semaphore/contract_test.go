package semaphore_test

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// permits is a lock of the contract, with a number of permits.
func permits(n int, newLock func(testing.TB, *framework.Client, string) contracttest.Lock) contracttest.Kind {
	return contracttest.Kind{
		New:     newLock,
		Holders: n,
		Dirs:    func(path string) []string { return []string{path + "/locks", path + "/leases"} },
		Counted: func(path string) []string { return []string{path + "/locks"} },
	}
}

var locks = contracttest.Kinds{
	"semaphore of 1": permits(1, func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
		return newSemaphore(t, c, path, 1)
	}),
	"semaphore of 3": permits(3, func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
		return newSemaphore(t, c, path, 3)
	}),
	"slots": permits(2, func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
		return newSemaphore(t, c, path, 2, semaphore.WithSlots(), semaphore.WithSharedLimit(path+"-limit"))
	}),
	"mutex": permits(1, func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
		return newMutex(t, c, path)
	}),
}

func TestContract(t *testing.T)          { locks.Run(t) }
func TestSimulatedContract(t *testing.T) { locks.Simulate(t) }
