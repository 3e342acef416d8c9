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
// What nil arguments and zero values do is the same in all packages: see "Nil and zero values" in
// package [framework].
package recipes
