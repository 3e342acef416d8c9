// Package mutex is a fair, reentrant lock between processes on ZooKeeper: Curator's InterProcessMutex, on the same nodes, so that Go
// and Java processes exclude each other on one path.
//
//	mu, err := mutex.New(client, "/locks/orders")
//	if err != nil {
//		return err
//	}
//	hold, err := mu.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { err = errors.Join(err, hold.Release()) }() // tells if the lock was lost before the work was done
//	ctx = hold.Context(ctx)                                   // ends if the lock is lost; acquiring mu under it re-enters
//	return store.Write(ctx, row, hold.Token())
//
// # Guarantees
//
// Those of package recipes: at most one valid hold; first come, first served; a crashed holder's lock is free once the servers
// expire its session; a fencing token that grows from node to node. An acquire that nobody contends for is one round trip,
// a create and a list right behind it, a release one request; a hand-over takes no request after the servers' event.
//
// # Reentrancy
//
// There is no thread that could own a lock in Go. Inside means: under the context of a hold. Acquiring the same path of the same
// client there returns another level of the same node; the node goes with the last level, in whatever order they are released.
// Acquiring under any other context queues.
//
// # How it ends
//
// See package recipes: a hold ends by Release or by loss, and tells why. An outage that ends before the session's deadline (which is
// by default about half of the session timeout away when it begins) costs neither a hold, unless the client's loss policy is Strict, nor a
// place in line.
//
// # Nodes
//
// <path>/_c_<uuid>-lock-<sequence>, ephemeral and sequential, with the host's IP address as data, unless WithData or WithIdentity says
// otherwise. path and its missing ancestors are made containers. Path is never written. Other children of path are
// ignored, but Curator clients are blocked by names that sort before digits.
package mutex
