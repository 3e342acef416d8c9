// Package chaos has no code but its tests: processes that contend for locks on real servers while
// servers, networks and processes fail, with the history of all holds checked.
//
// Some tests order one fault: servers that are killed or cut off, processes that are paused, creates
// that are applied after the client has looked for them, silences before a cut, a leader that stood
// still, a shorter timeout at a reconnect. What happens next waits for a condition, which a process or
// the relays between the servers show. A round in which the fault did not come about is repeated, and
// the test fails if it comes about in none.
//
// TestSiege has all of these faults at random, one to three at a time. Workers are processes that hold
// mutexes, both sides of read-write locks, permits and leaderships, and tell when each hold was valid,
// by a clock that they have in common. After each round of faults all workers come to rest, and then
//
//   - no two holds that exclude one another were valid at a time, and no more permits than there are;
//   - tokens grew, and writes that were accepted with a hold did not go back;
//   - no holder's node was deleted by another;
//   - no line has a node any more, though all sessions live;
//   - another client gets each lock.
//
// That must be so within the session timeouts and a bound for hangs. No check depends on how fast the
// machine is.
//
// DOCENT_SIEGE says how long the siege lasts. Its seed is printed, with the number of grants, of
// faults of each kind, and the longest time until all was well again; DOCENT_SIEGE_SEED repeats the
// choice of faults. A test that fails prints where the history is, which has one line for each hold
// and each fault; beside it are the logs of the workers and of the servers.
package chaos
