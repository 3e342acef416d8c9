// Package recipes has what all recipes share: the [Hold] that every acquire returns, [Do] and
// [DoWithin], which hold a lock while a function runs, the errors, the [Participant] of a queue,
// and [Revoke]. The recipes themselves are in the packages below.
//
// # What a hold guarantees
//
// At most one valid hold of a lock exists at a time. A hold is valid while [Hold.Err] returns nil.
// This assumes that the local clock runs at the servers' rate, within the margin of the session
// timeout. It also assumes that no other program deletes lock nodes.
//
// Locks are first come, first served, in the order of the servers' transactions. The lock of a
// process that crashed is free once the servers expire its session: after the session timeout,
// rounded up to their tick.
//
// # What it does not
//
// A process can be paused between checking that it holds the lock and acting on the answer, for
// longer than the session lasts. No lock service can prevent that. The resource can stop a late
// write: pass it [Hold.Token], and let it refuse a token smaller than one that it has seen. For
// data in the same ensemble, write with [Hold.Guard].
//
// # How a hold ends
//
// A hold ends by Release; when its session ends, reported by a server or found by the clock; when
// another client deletes the lock node; when the client is closed; when a lock of another service
// that is a part of it ends. A connection that is only suspended does not end it, unless the
// client's loss policy is Strict. When a hold ends, Done is closed, the contexts of [Hold.Context]
// end with the reason as their cause, and Err returns the reason.
//
// # Errors
//
// These are all errors of the library to compare with by [errors.Is]. The errors of ZooKeeper are
// returned, too: zk.ErrNoNode, zk.ErrNoAuth and so on. [framework.OutcomeOf] reports whether a
// failed operation was applied, and [framework.IsTransient] whether it may succeed later.
//
//	error                       when                                     what to do
//	framework.ErrAuthFailed     the servers refuse a credential          correct it; the client then goes on
//	framework.ErrClosed         Close of the client was called           stop
//	framework.ErrInvalidPath    a path is not valid for its use          correct the program
//	framework.ErrNilContext     a context is nil                         correct the program
//	framework.ErrNotConnected   no server could be reached in time       try again; the chain has the servers' errors
//	framework.ErrRolledBack     another operation of a Multi failed      look at that operation's Result
//	framework.ErrSessionLost    the session has ended for this client    stop what relied on it; acquire again
//	framework.ErrSuspended      a suspended connection, under Strict     stop what relied on it; acquire again
//	framework.ErrTooLarge       a request is larger than servers accept  ask for less at once
//	framework.ErrUnimplemented  the server does not know a request       do without it, or update the servers
//	framework.ErrZeroValue      a value not made by its constructor      correct the program
//	recipes.ErrForeignLost      the lock of another service was lost     stop the work; acquire again
//	recipes.ErrManySessions     no transaction covers all of the locks   guard each part, or use tokens
//	recipes.ErrNodeDeleted      another client deleted the lock node     stop the work; acquire again
//	recipes.ErrNotAcquired      other holders or waiters are ahead       try again later
//	recipes.ErrNotHeld          the hold was released before             ignore it in a defer
//	recipes.ErrReleasePending   released; the node may still be there    check ErrNotAcquired first; else nothing
//	recipes.ErrUnsupported      a lock of another service has no Guard   use the token
//	rwlock.ErrUpgrade           a read hold cannot become a write hold   release it, then acquire the write side
//	semaphore.ErrLimit          numbers of permits do not match          give all programs the same limit
//	striped.ErrStripes          programs with another number run         change it by way of WithPrevious
//	multilock.ErrPartlyHeld     the context holds a part of the locks    acquire all of them at once
//	condition.ErrOtherLock      the hold is not one of its mutex alone   correct the program
//	condition.ErrOtherHolds     the lock was entered more than once      release the other holds first
//	leader.ErrInterrupted       Election.Interrupt was called (a cause)  return from the function
//	leader.ErrLatchClosed       the Latch is closed, or its client       make another Latch
//	leader.ErrNotStarted        Await before Start                       correct the program
//	leader.ErrRunning           Run or Start while it runs already       correct the program
//	cache.ErrClosed             the cache is closed                      make another Cache
//	cache.ErrTooLarge           a cache would exceed WithLimit           raise the limit, or cache less
//	persistent.ErrClosed        the Node is closed                       make another Node
//	persistent.ErrNotStarted    WaitReady before Start                   correct the program
//	counter.ErrCorrupt          the data of a node is not a number       set another one, or correct its writer
//	counter.ErrOverflow         the sum does not fit into the counter    correct the program
//	persistent.ErrOccupied      the path has a node of another owner     wait, or use another path
//	persistent.ErrPending       closed; the node may still be there      nothing: its deletion continues
//	persistent.ErrStarted       Start was called before                  correct the program
//	group.ErrIDInUse            another member has the id                wait, or use another id
//	group.ErrClosed             the membership is closed                 join again
//	group.ErrNoPayload          a payload with kazoo's names             leave it out
//	group.ErrPending            closed; the node may still be there      nothing: its deletion continues
//	discovery.ErrClosed         the registration or the view is closed   make another one
//	discovery.ErrIDInUse        another instance has the ID              wait, or use another ID
//	discovery.ErrNoInstance     no instance can be picked                try again later
//	discovery.ErrPending        closed; the node may still be there      nothing: its deletion continues
//	discovery.ErrUnreadable     the data of a node is not an instance    correct the program that wrote it
//	inspect.ErrLimit            a walk would exceed WithLimit            raise the limit, or walk less
//	barrier.ErrLeft             Entry.Leave was called                   enter again
//	barrier.ErrNodeDeleted      another client deleted a node            do not count on the barrier; begin again
//	barrier.ErrNotOpen          Delete of a latch that is not open       wait for it first
//	barrier.ErrParties          programs have different numbers          give all programs the same number
//	fence.ErrNoToken            a number is not a token                  correct the program
//	fence.ErrStale              a larger token was seen before           refuse it: its sender is no holder now
//
// A failed acquire of several locks one after another, as by multilock.Combine, can match both
// ErrNotAcquired and ErrReleasePending: the locks that it had are being released. With Do and
// DoWithin the function has not run then.
//
// # Nil and zero values
//
// What nil arguments and zero values do is the same in all packages: see "Nil and zero values" in
// package [framework].
package recipes
