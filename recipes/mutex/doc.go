// Package mutex is a fair, reentrant lock between processes on ZooKeeper. It is Curator's
// InterProcessMutex, on the same nodes, so Go and Java processes exclude each other on one path.
//
//	mu, err := mutex.New(client, "/locks/orders")
//	if err != nil {
//		return err
//	}
//	return mu.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return store.Write(ctx, row, hold.Token())
//	})
//
// The context of the function ends when the lock is lost, and acquiring mu with it re-enters. The
// error of Do also reports a loss of the lock before the function returned. Where a function does
// not fit, call Acquire, [recipes.Hold.Context] and [recipes.Hold.Release].
//
// All programs must use the same kind of lock on a path. Two kinds on one path do not exclude each
// other: a mutex, a read-write lock and a semaphore have nodes of different names.
//
// # Guarantees
//
// Those of package recipes: at most one valid hold; first come, first served; a crashed holder's
// lock is free once the servers expire its session; a fencing token that grows from node to node.
//
// An uncontended acquire takes one round trip: a create and, right behind it, a list. A release is
// one request. After the servers' event a waiter needs no further request to get the lock. If the path
// does not exist, the acquire sends one more request for each missing node, the last of which creates
// all of them and the lock node in one transaction. More than 8 missing nodes take up to three requests
// each.
//
// # Reentrancy
//
// Go has no thread identity. Reentrancy follows the context: acquiring the same path of the same
// client with a context from Hold.Context re-enters. It returns another hold of the same node.
// The holds are released in any order, and the last release deletes the node. Acquiring with any
// other context enqueues.
//
// # How it ends
//
// A hold ends by Release or by loss, and reports the reason: see package recipes. An outage that
// ends before the session's deadline costs neither a hold nor a place in the queue. By default the
// deadline is about half of the session timeout away when an outage begins, because the last answer
// can be a sixth of the timeout old. Under the loss policy Strict an outage ends a hold at once.
//
// # Nodes
//
// <path>/_c_<uuid>-lock-<sequence>, ephemeral and sequential. The data is the host's IP address,
// unless WithData or WithIdentity sets it. path and its missing ancestors are created as
// containers. path is never written. Other children of path are ignored, but names that sort
// before digits block Curator clients.
package mutex
