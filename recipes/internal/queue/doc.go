// Package queue acquires all locks of the recipes: it creates a lock node in a queue, finds the
// nodes ahead of it, waits until they are deleted, and makes a hold.
//
// A recipe describes its lock by a [Spec]: the queues that the lock has a node in, which nodes of a
// queue conflict with its own ([Rules]), and a [Gate] if the front of the queue is not enough, as
// with a semaphore.
//
// # From enqueue to grant
//
// [Lock.Acquire] calls Lock.attempt (both acquire.go), which waits for the session and does this:
//
//  1. Enqueue. Lock.enqueue (acquire.go) sends a create of a protected ephemeral sequential node
//     ([enqueue.Create]) and, right behind it on the same connection, a list of the directory: one
//     round trip. The servers answer the requests of a connection in order, so the list shows the
//     own node and all that are ahead. The czxid in the reply is the fencing token. With several
//     queues, one transaction creates all nodes, and 64 lists at most follow it. requestMoreLists
//     requests the others when these are answered. If a directory does not exist, the framework
//     sends a transaction that creates it and the node. No list of it follows.
//  2. The lock is free if the own node is the only child of the directory, or has the number 0,
//     which is that of a directory's first child. waitInAllQueues (acquire.go) calls
//     waiter.awaitOnlyChild for each queue. If all are free, nothing more is sent until the grant,
//     which is step 6. For the other queues, waiter.waitForFront (wait.go) does steps 3 to 5, in
//     all of them at the same time.
//  3. Find the predecessor. waiter.listQueue (wait.go) sorts the list (package queuelist) and looks
//     up the conflicting node before the own one, the predecessor, and the one before that, the
//     grandpredecessor (snapshot.go). No predecessor: the lock is free. Go on with step 6. A list
//     is a queuelist.List (the answer), then a queuelist.Order (sorted, shared), then a snapshot
//     and nodesAhead (what one waiter sees).
//  4. One conflicting node ahead: waiter.waitForDeletion (wait.go) watches it and waits for its
//     deletion. waiter.watchNodeAndOwn sends two reads with a watch in one round trip, one of the
//     predecessor and one of the own node. The deletion of the predecessor grants the lock, and
//     nothing more is read, unless a hold of the own session has that node (waiter.needsNoList).
//  5. More conflicting nodes ahead: waitForDeletion waits for the grandpredecessor first, with the
//     same two reads, or one if the own node is watched already. Its deletion usually leaves one
//     conflicting node, the holder. While it holds, waiter.relist sends a list and a read of the
//     predecessor with a watch, in one round trip. So the last deletion needs no read. If the list
//     still shows more nodes ahead, the step is repeated.
//  6. Grant. Lock.grant (acquire.go) makes an ownership.Hold. A hold that lasts 100 ms reads its
//     node once to watch it, unless it is watched already (package ownership).
//
// These are the requests of a mutex whose nodes ahead belong to other sessions. Those between two
// semicolons are one round trip.
//
//	ahead           until the lock is granted
//	no node         create, list
//	one node        create, list; read of the predecessor, read of the own node
//	several nodes   create, list; read of the grandpredecessor, read of the own node; after its
//	                deletion a list, read of the predecessor
//
// # Exceptions
//
//   - Step 1, list under way: while a list of a queue is under way in a session, all waiters that
//     need one share the next list (package queuelist). It is sorted once, and each waiter finds
//     its own node by binary search.
//   - Step 1, same session: if a waiter of the session, or a holder that has waited, is registered
//     for the queue, with a watch on its own node (waiter.register), no list follows the create. If
//     its number is the one before the own number, that watch serves both, and no list is needed
//     (samesession.go). Otherwise the list is requested in a second round trip. A predecessor that
//     a list shows, and that is registered, serves likewise: the grandpredecessor is not watched.
//     If such a predecessor is deleted before it has reached the front, or after its hold was
//     downgraded, the queue is listed. Only waiters without Compatible kinds are registered
//     ([Rules].exclusive).
//   - Steps 4 and 5, writers of a read-write lock ([Rules].PositionsReused): they watch the
//     predecessor and list after each of its deletions, because a writer that downgrades leaves a
//     reader node at its position (position.go). They need no list if the predecessor is a
//     registered waiter that was not downgraded.
//   - Step 4, readers with a reader ahead of the predecessor: they list once more, because that
//     reader may upgrade.
//   - Step 6: if the czxid is not known, Lock.grant reads it. After a wait in several queues, or a
//     suspension under the Strict policy ([ConfirmedLifetime]), it checks that all nodes exist.
//   - [Lock.Try]: Lock.checkFree lists each queue first, and creates no node if a conflicting one
//     is there. The attempt has the Observer dontWait. It returns [ErrBusy] where step 4 or 5 would
//     wait.
//   - With a gate: Gate.TryFast may acquire the lock before step 1, without a node in the queue. In
//     place of step 6, Gate.Admit makes the hold for a [FrontWaiter] (frontwaiter.go).
//
// # Lost reply, connection, session or node
//
// If the reply to the create is lost, the framework finds the node or creates it again (package
// enqueue). A node that was found has no known czxid, and the list that followed the create may be
// older than the node: Lock.enqueue drops it, and waiter.awaitList (wait.go) requests another one
// if it is needed. If the create was sent again, a new list followed it. A watch from before a
// reconnect fires with zk.EventNotWatching, and the queue is listed again. A waiter repeats its
// reads as long as its session lasts ([RetryInSession], retry.go): it keeps its node and its
// position. If the session is lost or another client deletes the node, Acquire creates a new node
// at the end of the queue (Lock.requeues, acquire.go).
//
// # Deletion of the node
//
//   - The release of the last hold of its nodes deletes them, unless a hand-off passes them on or
//     keeps them. So does a loss after which the session lives on (nodes.release and nodes.abandon,
//     package ownership).
//   - An acquire, Downgrade or Upgrade that fails deletes its nodes by [enqueue.DeleteNodes]. The
//     framework repeats the deletion in the background. The call waits for it at most a second, and
//     not at all once ctx has ended. DeleteNodes also deletes a node whose name has no number. If
//     one of several nodes is missing after a lost reply, Create.attempt (package enqueue) deletes
//     the others.
//   - A gate deletes the node in the transaction that admits it ([FrontWaiter.DeleteOp]).
//   - The framework deletes in the background a node that a create without a reply may have left.
//   - The servers delete all nodes of a session that ends.
//   - Another client may delete a node. Package leader deletes the one of its last term
//     (candidate.deleteLastNode).
//
// # Elsewhere
//
//   - Missing directories are created by [enqueue.Create], with the node. No data is written to the
//     directories of queues, except those that a recipe has made for itself ([enqueue.Counted]).
//   - Numbers at the end of the directory's counter do not show the order. waiter.createdBefore
//     (wait.go) then reads the nodes one after another.
//   - New data in a predecessor (Revoke) fires its watch, and the queue is listed again.
//   - [Lock.Downgrade] and [Lock.Upgrade] create a node at the position of a hold (position.go).
//     The token is that of the hold.
//   - Package locknode reads the names of lock nodes. Package handoff is above the queue: it lets
//     the goroutines of a client share one node. Package report measures acquires. It implements
//     [Observer], by which the queue tells it of waits.
package queue
