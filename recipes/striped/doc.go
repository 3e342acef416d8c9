// Package striped is locks for any number of keys on a fixed number of mutexes, the stripes. Use it
// where a lock for each key would be too many nodes, and where it does no harm that two keys
// sometimes share a lock.
//
//	locks, err := striped.New(client, "/orders/locks", 64)
//	...
//	err = locks.For(orderID).Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return store.Write(ctx, orderID, order, hold.Token())
//	})
//
// [Striped.For] returns the lock of a key, a [recipes.Locker]. [Striped.ForAll] returns one lock of
// several keys. Locks are not kept: make them where they are used.
//
// # Guarantees
//
// Those of package mutex for each key, also while the number of stripes is changed: at most one valid
// hold; first come, first served among those that share a stripe; reentrancy by the hold's context; a
// fencing token that grows with each holder of a key. A hold of several stripes has one token, because
// their nodes are created in one transaction.
//
// Locks of ForAll cannot deadlock with each other or with those of For. A program that holds one lock
// while it acquires another one of other keys can deadlock with a program that does the reverse.
//
// # Changing the number
//
// Two programs exclude each other on a key if they share a number of stripes. To change the number
// from 64 to 256 while programs run:
//
//  1. Replace the programs, one after another, by programs with
//     striped.New(client, path, 256, striped.WithPrevious(64)). They hold the stripes of both numbers,
//     so they exclude the programs with 64, and those of the next step.
//  2. When no program with 64 alone runs any more, replace them by programs with 256.
//
// A program that would not exclude another one that runs gets [ErrStripes] from its acquires: one
// with 256 alone while a program with 64 alone runs, or one with 64 after that. Programs register for
// that. A program that has crashed is registered until the servers expire its session.
//
// # Nodes
//
// <path>/<number>/<stripe>/_c_<uuid>-lock-<sequence>: each stripe is the path of a mutex, and
// Participants of a mutex.Mutex lists its queue. There are at most as many directories as stripes:
// servers delete those that are not used. The stripe of a key is [Index] of key and number.
//
// <path>/programs/_c_<uuid>-stripes-<number>-<sequence>, or -stripes-<number>-<previous>-<sequence>,
// is a registered session: ephemeral, with a recipes.Identity as data. All directories are containers,
// and none of them is written.
package striped
