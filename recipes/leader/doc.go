// Package leader elects one of several candidates, again and again: for controllers, schedulers and single writers.
//
// [Election] calls a function while it leads, under a context that ends with the leadership. [Latch] stands in the background and can be
// asked. Both stand on the nodes of Curator's LeaderSelector and LeaderLatch, and take turns with Java candidates on the same path.
// The two do not mix: a path belongs to one kind.
//
// Leadership is a hold of a lock in other words: at most one [Term] is valid at a time, it ends by the client's own clock before the
// servers let somebody else lead, it has a fencing token, and [Term.Guard] writes to the same ensemble only while it lasts. See
// package recipes for what that guarantees and what it cannot: a leader that is paused between asking and acting acts late, and
// only what it acts on can refuse, by the token.
//
// # How a leader goes
//
// The function of [Election.Run] returns: the usual way, the next one leads when the work is over. [Election.Interrupt] asks it to, by the end
// of its context. [Term.Resign] is at once, whatever still works: the only way for a [Latch], which does not know of the work, and
// for an Election the way to let others lead while the function cleans up.
//
// # No candidate is ever out without a word
//
// Candidates wait for servers as long as it takes, and stand again whenever they lose their place or the leadership: with the session,
// because somebody deleted the node or its parents, because a server was restored from a backup. What does not pass by itself, such as a
// node that the servers refuse to create or to delete, is told: [Election.Run] returns it, [Latch.Await] fails with it.
package leader
