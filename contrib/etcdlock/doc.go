// Package etcdlock has a lock in etcd that is used as the locks of docent are: a recipes.Locker whose
// holds have a fencing token, a local deadline, contexts that end with them, and one end that is told
// everywhere. It needs no ZooKeeper.
//
//	client, err := etcdlock.NewClient(etcd) // a *clientv3.Client
//	...
//	defer client.Close()
//	lock, err := etcdlock.New(client, "locks/orders")
//	...
//	err = lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return store.Write(ctx, hold.Token(), value)
//	})
//
// # The queue
//
// Each acquire creates a key with the client's lease, directly below the name of the lock. The keys
// hold the lock in the order of their create revisions. Each waiter watches the key before its own
// only, so one deletion wakes one waiter. The watch begins at the revision at which that key was
// read. The mutex of etcd's package concurrency has the same order below the same names, so a
// program can change from one to the other while both are in use.
//
// The token is the create revision of the key. It grows over all locks of a cluster, and goes back
// only when the cluster is restored from a backup. An acquire of a free lock is one request, and so
// is a release.
//
// # Promises
//
// A hold is valid until a tenth of the time to live before the lease can expire, reckoned from before
// the last renewal was sent. The table tells when two holds of one lock can be valid at a time, by
// Hold.Err, and what happens to a hold. In each case a write that was sent while the hold was valid
// may arrive later. Then the token or Client.Cmp protects.
//
//	event                        two valid holds     the hold
//	pause of the holder          no                  ends in the first call of Err, if it was too long
//	clock of this machine set    no                  forward: ends early; back: nothing
//	clock of a server set        no                  nothing: servers count spans
//	clock rates differ           above a tenth       -
//	partition of this client     no                  ends at the deadline, before the lock is free
//	change of the leader         no                  goes on; its lease begins anew
//	restart of all servers       no                  goes on, if they are back in time
//	isolated former leader       no                  its renewals do not count
//	a former leader that wakes   a moment            releases before 2024 may revoke the lease too early
//	key deleted by an operator   a moment            ends when the watch tells
//	key written by an operator   no                  ends when the key is read again; if the process
//	                                                 crashes before, the key stays
//	lease revoked                a moment            ends when the watch or a renewal tells
//	data of all servers lost     until a renewal     ends with the next renewal; tokens start again
//	restore from a backup        until a look        ends if its key is not in it; tokens go back
//
// A renewal is made in each third of the time to live. A moment is as long as the way of a message,
// and a tenth of a second in a new hold. If the server of the watch is stuck, the key is looked for
// after up to two times to live, and two minutes at most. So a token or Client.Cmp is needed where a
// late or a second write does harm. Cmp needs no cooperation of another resource if the data are in
// the same cluster.
//
// etcd answers what a majority of its servers has on disk, so no failover takes back a lock.
//
// # Ends
//
// Nothing stays behind. A key is deleted when its hold or its acquire ends, in the background if need
// be, until the servers confirm it. The key of a request that was thought to be lost, and that
// arrives late, is deleted with the next renewal. All keys of a process that has crashed are deleted
// when its lease expires.
package etcdlock
