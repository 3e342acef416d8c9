// Package rwlock is a fair, reentrant read-write lock between processes on ZooKeeper. It is
// Curator's InterProcessReadWriteLock, on the same nodes, so Go and Java processes exclude each
// other on one path.
//
//	rw, err := rwlock.New(client, "/locks/catalogue")
//	if err != nil {
//		return err
//	}
//	return rw.Read().Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return catalogue.Load(ctx)
//	})
//
// All programs must use the same kind of lock on a path. Two kinds on one path do not exclude each
// other: a mutex does not wait for readers and writers, nor do they wait for a mutex.
//
// # Guarantees
//
// Those of package recipes, for one writer or any number of readers. The lock is first come, first
// served: a reader waits for the nearest writer ahead, and a writer waits for all nodes ahead. So a
// stream of readers delays a writer only by the readers that came before it, and a stream of
// writers does not starve a reader. Tokens order writers among themselves, and readers against
// writers. The exception is the token of TryUpgrade, see there.
//
// # Both sides
//
// Acquiring the read side with the context of a write hold succeeds at once, beside the write hold.
// So a writer becomes a reader:
//
//	written, err := rw.Write().Acquire(ctx)
//	...
//	reading, err := rw.Read().Acquire(written.Context(ctx))
//	...
//	err = written.Release() // lets other readers in; writers wait
//	use(reading.Context(ctx))
//
// Acquiring the write side with the context of only a read hold fails with ErrUpgrade at once,
// where Curator waits for ever. TryUpgrade succeeds for the only reader.
//
// # Requests
//
// An acquire of each side is a create and, right behind it, a list, in one round trip. A release is
// one request. A waiter needs two watched reads more, and another list when its predecessor is
// deleted. A reader saves this list if the writer was first in the queue, so the readers behind a
// writer get the lock by its event alone. A writer saves it if its predecessor is a writer of the
// same client that has waited, too, and that did not become a reader. Read under write is one
// transaction.
//
// # Nodes
//
// <path>/_c_<uuid>-__READ__<sequence> and <path>/_c_<uuid>-__WRIT__<sequence>, ephemeral and
// sequential. The data is the host's IP address, unless WithData or WithIdentity sets it. A hold
// beside another one has a node that is not sequential, with the number of the other node. path is
// never written.
package rwlock
