// Package semaphore limits how many processes do something at the same time, on ZooKeeper. It is
// Curator's InterProcessSemaphoreV2, and with [NewMutex] its InterProcessSemaphoreMutex, on the
// same nodes, so Go and Java processes share the permits of one path.
//
//	sem, err := semaphore.New(client, "/limits/exports", 5)
//	if err != nil {
//		return err
//	}
//	return sem.Do(ctx, func(ctx context.Context, permit *recipes.Hold) error {
//		return export(ctx)
//	})
//
// All programs must use the same kind of lock on a path. Two kinds on one path do not exclude each
// other: a semaphore does not wait for a mutex, nor a mutex for a semaphore.
//
// # Guarantees
//
// Those of package recipes, for as many valid permits as the limit says. The order is first come,
// first served, also among acquires of several permits. Such an acquire gets all of its permits or
// none. A waiter has no permit that another one could wait for.
//
// Each hold has a token. With more than one permit it shows the order of arrival only: there can be
// several valid holds.
//
// # The limit
//
// A fixed limit is the number given to New. The data of path notes it. Processes that use the
// semaphore at the same time with other numbers get ErrLimit. If no process uses the semaphore, the
// number of the next one is noted instead. Curator's clients neither note nor check a limit.
//
// A shared limit is the number in a node: see WithSharedLimit.
//
// Each acquire checks in its transaction that the limit has not changed, so no acquire succeeds by
// an old limit. Therefore the node of the limit must not be deleted and created again while the
// semaphore is in use: the check does not see that. Keep nothing else in that node, and use path
// for nothing else.
//
// # Requests
//
// An uncontended acquire is one transaction, and a release is one request, for any number of
// permits. If there are other permits or waiters in the way, the acquire deletes its permits and
// enqueues. The first waiter watches its node and the leases. It reads the leases whenever they
// change. It creates its permits and leaves the queue in one transaction. The other waiters wait
// for that with a list and two watched reads. After such contention the next acquire of the same
// Semaphore enqueues at once. WithSlots is one read more.
//
// The first acquire of a Semaphore also reads its nodes and creates those that are missing: keep
// the value.
//
// # Nodes
//
// <path>/leases/_c_<uuid>-lease-<sequence> for each permit, and
// <path>/locks/_c_<uuid>-lock-<sequence> for each waiter, ephemeral and sequential. The data is the
// host's IP address, unless WithData or WithIdentity sets it. With WithSlots the leases are named
// _c_<uuid>-slot-<number>-lease-<sequence>.
//
// path holds a fixed limit in four bytes, big endian, unless there is data of another length. Each
// acquire writes the data of locks and leases again, as it was when first read. Where the ACL of
// these nodes forbids that, every acquire enqueues. Other children of leases are not counted, but
// Curator counts them.
//
// Curator takes several permits one after another. While it has one, it can wait behind an AcquireN
// that waits for that permit: give one of the two a time limit.
package semaphore
