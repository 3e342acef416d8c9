// Package leader elects one of several candidates, again and again. It is for controllers,
// schedulers and single writers.
//
// [Election] calls a function while it leads, with a context that ends with the leadership. [Latch]
// is a candidate in the background that can be asked whether it leads. They use the nodes of
// Curator's LeaderSelector and LeaderLatch, and share the leadership with Java candidates on the
// same path. The two kinds do not mix: use one kind on a path.
//
// A term is a hold of a lock. At most one [Term] is valid at a time. It ends by the client's own
// clock before the servers let another candidate lead. It has a fencing token. [Term.Guard] writes
// to the same ensemble only while the term lasts. Package recipes says what that guarantees, and
// what it cannot: a leader that is paused between a check and a write writes late. Only the
// resource can refuse such a write, by the token.
//
// # How a term ends
//
// The usual way is that the function of [Election.Run] returns: the next candidate leads when the
// work has stopped. [Election.Interrupt] asks the function to return by ending its context.
// [Term.Resign] ends the term at once, whatever still runs. A [Latch] has only that way, because it
// does not know the work. With an Election, Resign lets other candidates lead while the function
// cleans up.
//
// # Errors and retries
//
// A candidate waits for servers for any time. It stands for election again whenever it loses its
// node or the leadership: with the session, because another client deleted the node or its parents,
// because a server was restored from a backup. Errors that do not pass by themselves are reported,
// such as a node that the servers refuse to create or to delete: [Election.Run] returns them, and
// [Latch.Await] fails with them.
package leader
