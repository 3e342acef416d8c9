// Package counter has numbers and values that processes share, on the nodes of Curator's
// SharedCount, SharedValue and DistributedAtomicLong, and of kazoo's Counter.
//
//	orders, err := counter.NewAtomic(client, "/counters/orders")
//	...
//	number, err := orders.Add(ctx, 1)
//
// [Atomic] is a number of 64 bits, [Count] one of 32 bits, and [Value] any data. A [Sequence] takes
// blocks of numbers from an Atomic and hands them out one by one.
//
// # What an update guarantees
//
// Add, Set and CompareAndSet are applied once or not at all. An update that returns no error was
// applied once, whatever was lost on the way: answers, connections, servers. An update that fails
// has an error, and [framework.OutcomeOf] says what became of it: not applied, then it never will
// be; or unknown. The outcome is unknown in two cases. The context has ended, or the client's retry
// policy was exhausted, while an answer was missing, or while another goroutine was about to send the
// update together with others. Or the session was lost while an answer was missing, and others have
// written since. Do not repeat an update with an unknown outcome, unless it may be applied twice.
//
// CompareAndSet returns false only if the node had another value or version after the call began.
//
// # How
//
// An update is one transaction. It writes the counter's node if the node has the version that was
// read. It also writes the number of the update into the client's marker: an ephemeral child of the
// counter's node. After a lost answer the same transaction is sent again. It cannot be applied twice,
// and if the version is another one, the marker tells whether the update is the reason. The marker
// also ties the transaction to this node: a version alone cannot tell a node from the next one of
// its name.
//
// A client creates the marker at its first update of a counter, and deletes it two seconds after the
// last. As long as it is there, the node cannot be deleted without it: use
// framework.Client.DeleteRecursive. A marker that the client may not delete stays, and is used again
// until the session ends. A client that may not create children of the node has no marker. Then the
// outcome after a lost answer is unknown if another client may have written what this one wanted to
// write.
//
// # Cost
//
// The first update of a client takes three requests, and further ones take one, as long as no other
// client writes: the last known version is kept. Updates of goroutines of one client that wait for
// each other are written together. If other clients write too, an update takes a read and a write. It
// is tried three times. Then it waits in a queue, which is a lock, and is tried until it is applied:
// see [WithLock].
//
// # Nodes
//
// The data is Curator's, byte for byte, and Curator, kazoo and docent may write a counter at the same
// time. A missing node is created as a persistent node, with containers above it. A container must
// not be a counter: the servers delete it when its last marker is deleted.
//
// # Reads
//
// Get reads from the client's server. What it returns may be a little old, but is never older than
// what the client has seen before: see framework.Client.Sync. Observe follows a counter.
package counter
