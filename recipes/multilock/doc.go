// Package multilock holds several locks as one, on ZooKeeper. It is Curator's
// InterProcessMultiLock. [New] acquires mutexes and enters all of their queues in one transaction.
// [Combine] acquires any locks, one after another.
//
//	both, err := multilock.New(client, []string{"/accounts/17", "/accounts/4"})
//	if err != nil {
//		return err
//	}
//	return both.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return transfer(ctx, hold.Tokens())
//	})
//
// # Guarantees
//
// Those of package recipes, for all locks together. Multi-locks of New cannot deadlock with each
// other, if all of them or none are [WithPathOrder]. They can deadlock with a client that holds one
// of the locks while it enqueues for another: use WithPathOrder with such clients.
//
// Each lock has a token, see [recipes.Hold.Tokens]. Give a resource that only one of the locks
// protects the token of that lock.
//
// # Requests
//
// An uncontended acquire of New is one transaction for any number of locks, with a list of each
// queue right behind it. A release is one transaction. Each queue with a node ahead takes two
// watched reads more. Then one transaction checks all nodes before the hold begins. WithPathOrder
// and Combine take the requests of the single locks, one after another.
//
// # Nodes
//
// <path>/_c_<uuid>-lock-<sequence> in each path, as of package mutex: its locks are the parts of a
// multi-lock of New.
package multilock
