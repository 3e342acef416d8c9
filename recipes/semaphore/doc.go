// Package semaphore limits how many processes do something at the same time, on ZooKeeper: Curator's InterProcessSemaphoreV2, and with
// [NewMutex] its InterProcessSemaphoreMutex, on the same nodes, so that Go and Java processes share the permits of one path.
//
//	sem, err := semaphore.New(client, "/limits/exports", 5)
//	if err != nil {
//		return err
//	}
//	permit, err := sem.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { err = errors.Join(err, permit.Release()) }()
//	return export(permit.Context(ctx))
//
// # Guarantees
//
// Those of package recipes, of as many valid permits as the limit says. First come, first served, also among those who want several
// permits, which are acquired all or none; who waits for permits has none that others could wait for. Each hold has a token; of
// a semaphore of more than one it says who came first, not who is the only one.
//
// # The limit
//
// It is what New was given, noted in the data of path, and processes that use the semaphore at the same time with other numbers get
// ErrLimit; if nobody uses it, the newcomer's number is noted instead. Curator's clients note nothing and do not look. Or it is what a
// node says, WithSharedLimit. Each acquire checks in its transaction that the limit is still what it was, so that none succeeds by an old
// one; for that the node must not be deleted and made again while the semaphore is in use, which looks like no change at all. Keep
// nothing else in either node, and use path for nothing else.
//
// # Requests
//
// Permits that nobody waits for are one transaction, and one request to release, however many they are. If there are others, it takes that
// back and stands in line. Who is first there watches its place and the leases, reads them whenever they change, and takes the permits and
// leaves the line in one transaction; the others wait for that with a list and two watched reads. Who has met others stands in line at once
// the next time. WithSlots is one read more. The first acquire of a Semaphore reads its nodes, too, and makes those that are missing: keep
// the value.
//
// # Nodes
//
// <path>/leases/_c_<uuid>-lease-<sequence> for each permit, and <path>/locks/_c_<uuid>-lock-<sequence> for those who wait, ephemeral and
// sequential, with the host's IP address as data, unless WithData or WithIdentity says otherwise; WithSlots leases are called
// _c_<uuid>-slot-<number>-lease-<sequence>. path holds the limit in four bytes, big endian, unless it is shared, or something of another
// length is there. The data of locks and leases is written with each acquire, as it was when first read; where their ACL forbids that,
// everybody stands in line. Other children of leases are not counted, where Curator counts them.
//
// Curator takes several permits one after another, and can, holding one, wait behind an AcquireN that waits for it: give one of the two a
// time limit.
package semaphore
