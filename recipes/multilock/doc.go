// Package multilock holds several locks as one, on ZooKeeper: Curator's InterProcessMultiLock. [New] does so with mutexes, whose places in
// line it takes all in one transaction; [Of] with any locks, one after another.
//
//	both, err := multilock.New(client, []string{"/accounts/17", "/accounts/4"})
//	if err != nil {
//		return err
//	}
//	hold, err := both.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { err = errors.Join(err, hold.Release()) }()
//	return transfer(hold.Context(ctx), hold.Tokens())
//
// # Guarantees
//
// Those of package recipes, for all locks together. Multi-locks made by New cannot deadlock with each other, if all of them or none are
// [InOrder]. They can with whoever holds one of the locks and waits for another, and is in no line there before: InOrder is for living with
// those. Each lock has a token, see [recipes.Hold.Tokens]: give a resource that one of them protects the token of that lock.
//
// # Requests
//
// Locks of New that nobody else wants are acquired in one transaction, however many, with a list of each line right behind it, and
// released in one. If somebody is ahead, each line in which that is so takes two watched reads, and before the hold begins one transaction makes sure that all places are still
// there. InOrder and Of take what the locks take, one after another.
//
// # Nodes
//
// <path>/_c_<uuid>-lock-<sequence> in each path, as of package mutex, whose locks they are.
package multilock
