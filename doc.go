// Package docent is a library of distributed locks, leader election and registrations on Apache ZooKeeper,
// in the manner of Apache Curator and on the same nodes. This package itself is empty: import the packages
// below it.
//
// # What to import
//
//	github.com/docent-zk/docent/framework           a client: sessions, states, operations, watches
//	github.com/docent-zk/docent/framework/metrics   what the client and the recipes measure
//	github.com/docent-zk/docent/recipes             Hold, Locker, Do, and the errors of all recipes
//	github.com/docent-zk/docent/recipes/mutex       InterProcessMutex
//	github.com/docent-zk/docent/recipes/rwlock      InterProcessReadWriteLock
//	github.com/docent-zk/docent/recipes/semaphore   InterProcessSemaphoreV2, InterProcessSemaphoreMutex
//	github.com/docent-zk/docent/recipes/multilock   InterProcessMultiLock
//	github.com/docent-zk/docent/recipes/striped     a lock for each of any number of keys
//	github.com/docent-zk/docent/recipes/ensembles   locks on several ensembles, by their names
//	github.com/docent-zk/docent/recipes/condition   java.util.concurrent.locks.Condition
//	github.com/docent-zk/docent/recipes/leader      LeaderSelector, LeaderLatch
//	github.com/docent-zk/docent/recipes/counter     SharedCount, SharedValue, DistributedAtomicLong
//	github.com/docent-zk/docent/recipes/persistent  PersistentNode, PersistentTtlNode
//	github.com/docent-zk/docent/recipes/group       GroupMember
//	github.com/docent-zk/docent/recipes/cache       CuratorCache
//	github.com/docent-zk/docent/recipes/discovery   ServiceDiscovery
//	github.com/docent-zk/docent/recipes/inspect     what locks there are, for operators
//	github.com/docent-zk/docent/recipes/barrier     DistributedBarrier, DistributedDoubleBarrier
//	github.com/docent-zk/docent/fence               the resource's side of a fencing token
//	github.com/docent-zk/docent/retry               retry policies
//	github.com/docent-zk/docent/zktest              a ZooKeeper server in the process of a test, with faults
//
// # A lock
//
// Do, a method of the locks, acquires a lock, calls a function with a context that ends if the lock is
// lost, and releases the lock. [recipes.Do] does the same for any [recipes.Locker]:
//
//	client, err := framework.New("zk1:2181,zk2:2181,zk3:2181")
//	...
//	mu, err := mutex.New(client, "/locks/orders")
//	...
//	err = mu.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return store.Write(ctx, hold.Token(), order)
//	})
//
// # More
//
// The repository has a guide, docs/README.md. It begins with the first ten minutes (docs/start.md),
// the concepts (docs/concepts.md) and an example of each recipe (docs/recipes.md). Its folder examples
// has programs that run without a server.
//
// [recipes.Do]: https://pkg.go.dev/github.com/docent-zk/docent/recipes#Do
package docent
