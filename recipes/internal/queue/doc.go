// Package queue acquires all locks of the recipes: it creates a lock node in a queue, finds the
// nodes ahead of it, waits until they are deleted, and makes a hold.
//
// A recipe describes its lock by a [Spec]: the queues that the lock has a node in, which nodes of
// a queue conflict with its own ([Rules]), and a [Gate] if the front of the queue is not enough,
// as with a semaphore.
//
// # From enqueue to grant
//
// [Lock.Acquire] (acquire.go) calls Lock.attempt, which does this:
//
//  1. Enqueue. Lock.enqueue (acquire.go) sends a create of a protected ephemeral sequential node
//     ([enqueue.Create]) and, right behind it on the same connection, a list of the directory: one
//     round trip. The servers answer the requests of a connection in order, so the list shows the
//     own node and all that are ahead. With several queues, one transaction creates all nodes and
//     the lists follow it. The czxid in the reply is the fencing token.
//  2. The lock is free if the own node is the only child of the directory, or its number is 0
//     (waiter.awaitAlone, acquire.go). Nothing more is sent; go on with step 7. Otherwise
//     waiter.waitForFront (wait.go) does steps 3 to 6.
//  3. Find the predecessors. waiter.listQueue (wait.go) sorts the list (order.go) and looks up the
//     conflicting node before the own one, the predecessor, and the one before that, the
//     grandpredecessor (snapshot.go). No predecessor: the lock is free. Go on with step 7.
//  4. One predecessor: waiter.waitForDeletion (wait.go) sends two reads with a watch in one round
//     trip, one of the predecessor and one of the own node. The deletion of the predecessor
//     grants the lock, and nothing more is read (predecessors.needsNoList).
//  5. More predecessors: the grandpredecessor is watched first. Its deletion leaves one
//     predecessor, which still holds the lock. Then waiter.relist sends a list and a read of the
//     predecessor with a watch, in one round trip, while the predecessor holds. So the last
//     deletion needs no read. If the list still shows more predecessors, the step is repeated.
//  6. Exceptions. A predecessor that waits in the same session is known without a list: step 1
//     sends none, and the predecessor's own watch serves both waiters (localpredecessor.go). The
//     queue is listed once more after the last deletion where another node may take the position
//     of the deleted one: for writers of a read-write lock ([Rules].PositionsReused), and for
//     readers with a reader ahead of the predecessor. Writers watch the predecessor and not the
//     grandpredecessor.
//  7. Grant. Lock.grant (acquire.go) makes an ownership.Hold. If the reply to the create was lost, it
//     reads the czxid of the node first. After a wait in several queues it checks that all nodes
//     still exist. With a gate, Gate.Admit makes the hold instead.
//
// While a list of a queue is under way in a session, all waiters that need one share the next
// list (shared.go). It is parsed and sorted once, and each waiter finds its own node by binary
// search.
//
// # Lost reply to the create
//
// The name of the node begins with a GUID. If the connection breaks before the reply arrives, the
// framework searches the directory for the GUID on the connection that follows, after a sync. It
// returns the node that it finds, or sends the create again. A node that was found has no known
// czxid yet, and the list that followed the create is not used: Lock.enqueue drops it, and
// waiter.listQueue requests another one.
//
// # Lost connection, session or node
//
// The reads of a waiter are repeated as long as its session lasts ([RetryInSession], retry.go): the
// waiter keeps its node and its position. If the session is lost or another client deletes the
// node, Acquire creates a new node at the end of the queue (Lock.requeues, acquire.go).
//
// # Deletion of the node
//
//   - The release of the hold deletes the node of a holder (package ownership).
//   - Lock.attempt deletes the nodes of an acquire that fails, by deleteAll and
//     [enqueue.DeleteNodes]. The framework repeats the deletion in the background, independent of
//     the caller's context. The call waits for it for at most a second.
//   - The framework deletes in the background a node that a create without a reply may have left.
//   - The servers delete all nodes of a session that ends.
//
// # Other packages
//
// Names of lock nodes are read by package locknode, and nodes are created by package enqueue. Package
// handoff is above the queue: with it, the goroutines of a client that want the same lock wait in
// memory, share one node and pass it on without a request. Package report is above both: it measures
// acquires and warns of long waits, of which an [Observer] tells it.
//
// The directories of queues are never written, except those that a recipe has made for itself
// ([enqueue.Counted]).
package queue
