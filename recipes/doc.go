// Package recipes has what all recipes share: the [Hold] that every acquire returns, the errors, and the participants of a line. The
// recipes themselves are in the packages below.
//
// # What a hold guarantees
//
// At most one valid hold of a lock exists at a time, where valid means: while [Hold.Err] is nil; it goes by a clock that has to
// run at the servers' rate within the margin that the session timeout leaves. And as long as nobody else deletes lock nodes.
// First come, first served, in the order of the servers' transactions. The lock of a process that crashed is free once the
// servers expire its session: after the session timeout, rounded up to their tick.
//
// # What it does not
//
// A process can be paused between asking whether it holds the lock and acting on the answer, for longer than the session lasts. No
// lock service can prevent that. What stops a late write is the resource: give it [Hold.Token] and let it refuse a token smaller
// than one it has seen; or, for data in the same ensemble, write with [Hold.Guard].
//
// # How a hold ends
//
// By Release; when the session is over, told by a server or found out by the clock; when somebody deletes the lock node; when
// the client is closed. A connection that is merely suspended does not end it, unless the client's loss policy is Strict. Done
// is closed, the contexts made by [Hold.Context] end with the reason as their cause, and Err says it.
package recipes
