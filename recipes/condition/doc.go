// Package condition lets the holder of a mutex wait until another holder signals that something has
// changed, as java.util.concurrent.locks.Condition does for threads.
//
//	mu, err := mutex.New(client, "/orders/lock")
//	...
//	notEmpty, err := condition.New(mu, "/orders/not-empty")
//	...
//	hold, err := mu.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { _ = hold.Release() }() // of the last hold
//	for empty() {
//		if hold, err = notEmpty.Wait(ctx, hold); err != nil {
//			return err
//		}
//	}
//	...
//	err = notEmpty.Signal(ctx, hold) // by another holder, usually in another process
//
// # Guarantees
//
// [Condition.Wait] releases the lock only after the servers have the waiter's node, so a signal of a
// later holder cannot be missed. [Condition.Signal] lets the waiter go on that came first of those
// without a signal. [Condition.Broadcast] lets all of them go on. A signal without waiters is
// nothing. Waiters acquire the lock again in the order in which they came, each at the end of the
// mutex's queue.
//
// [Condition.WaitWithin] limits the wait for a signal. When the time is over, it acquires the lock
// again, before the waiters ahead if need be, and reports whether it was signaled by then. A signal is
// either reported, or is there for the other waiters.
//
// A waiter that leaves before it has the lock again takes no signal with it: the next waiter that was
// there when the signal was made gets it. Once a waiter has the lock, its signal is used up in the
// transaction that deletes its node. If its process dies after that, its work is lost like that of
// any other holder, and a later holder has to look after it.
//
// # What differs from Java
//
//   - The hold is an argument and a result, because Go has no thread identity. The new hold has a new
//     token.
//   - A Wait that fails returns without the lock, also when ctx ends. Java's await acquires it again
//     before it throws. Acquire it again where the program goes on, and examine what was waited for.
//     The end of the time of WaitWithin is no failure.
//   - A lock that was entered more than once cannot be released for the wait: that is an error.
//   - Not the function of recipes.Do but Acquire is the frame of a wait: the context of Do ends with
//     its hold, and Do releases that hold only.
//
// # Nodes
//
// A waiter is <path>/_c_<uuid>-wait-<sequence>, ephemeral. A signal is a persistent node,
// <path>/signal-<number>-<id>, or <path>/all-<number> for a broadcast. The number is that of the last
// waiter that was there. A signal is deleted with the waiter that takes it. If all waiters that were
// there have left, the next Signal, Broadcast or waiter with the lock deletes it. path and its missing
// ancestors are created as containers. path is never written.
//
// A Wait takes a transaction and a release, a list and a watch, and when it is signaled an acquire, a
// list and a transaction. Only the first waiter watches the directory. Each of the others watches the
// waiter ahead of it.
package condition
