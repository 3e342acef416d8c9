// Package barrier makes programs wait for each other. It has four barriers:
//
//   - [Barrier] is a gate: one program closes and opens it, the others wait.
//   - [Double] is entered by n members together, and left by them together.
//   - [Cyclic] is a place where n parties meet again and again.
//   - [CountDown] is a latch that opens once, after n counts.
//
// A program that works in rounds with the others:
//
//	rounds, err := barrier.NewCyclic(client, "/jobs/rounds", 5)
//	...
//	for {
//		round, err := rounds.Await(ctx) // returns when all five are here
//		...
//
// # Waiting
//
// All waits last through outages. They return nil when what they wait for has happened, and an error
// that says why they ended otherwise: see each method. ctx bounds a wait, and nothing else.
// Double.Enter alone fails when the session is lost, because other members may have counted the one
// that was lost. No wait is woken by a mere reconnect.
//
// # Parties that die
//
// The node of a member of a Double and of a party of a Cyclic belongs to its session. When a process
// crashes, the servers delete the node after the session timeout. Until then it counts as present:
// the others may pass with it. A count of a CountDown stays, because it says what was done.
//
// # Numbers
//
// All programs must give a barrier the same n. A Cyclic and a CountDown keep it in the data of their
// node, and fail with [ErrParties] if it differs. A Double cannot, because Curator's has no place for
// it.
//
// # What a Double shares with Curator and kazoo
//
// A Barrier has the node of Curator's DistributedBarrier and of kazoo's Barrier, and a Double those of
// Curator's DistributedDoubleBarrier. Java and Go members can enter one barrier. Where Go members do
// other things:
//
//   - A member opens the barrier in a transaction that fails if one of the n members has gone.
//   - The node ready that members have left who all crashed inside lets no Go member in. It is
//     replaced when n members are there. Curator's members enter at once when they see it.
//   - A member that gives up deletes its node. In Curator 5 it stays, and is counted.
//   - A member that comes while others are inside writes its node, which tells Go members that it is inside.
//     They do not wait for one of Curator that comes late.
//   - A member waits in Leave for those that were inside when it began to leave. Curator's also waits
//     for those that come later, so give each round a path of its own if Java members take part.
//   - In Curator 5 any event lets a member in, also a reconnect. A member that has begun to leave
//     does not wait for the last one inside if another member has died meanwhile.
//
// kazoo's DoubleBarrier has other names and the same nodes. It deletes the node ready when the first
// member leaves. A member that is without a connection just then may wait in vain, in kazoo and
// here. It enters together with Go members as long as exactly n members come.
//
// # Paths
//
// Missing parents become containers, and so does the path of a Double. The nodes of a Cyclic and of a
// CountDown are persistent: the first stays, because it has the number of the generation, and
// [CountDown.Delete] deletes the second.
package barrier
