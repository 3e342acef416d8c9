// Package chaos has no code but its tests: processes that contend for locks, follow nodes and keep
// nodes on real servers while servers, networks and processes fail. The history of all holds is
// checked, and that of all events.
//
// Some tests order one fault: servers that are killed or cut off, processes that are paused,
// creates that are applied after the client has looked for them, silences before a cut, a leader
// that stood still, a shorter timeout at a reconnect. What happens next waits for a condition,
// which a process or the relays between the servers show. A round in which the fault did not come
// about is repeated, and the test fails if it comes about in none.
//
// One test orders faults of everything that a worker follows and keeps, one after the other. It
// prints how long each node was away that could have been there, by what a witness has seen on the
// servers.
//
// TestSiege has all of these faults at random, three to five at a time, and more: stalled disks,
// servers that lose data, rolling restarts, slow links, resets, partitions that cut elections of
// the servers, and pauses and cuts of workers that lead an election. A fault is counted if it had
// an effect. Workers are processes that hold mutexes, alone, passed on, kept between holds and
// several as one, both sides of read-write locks, permits of a limit that is fixed and of one that
// moves, and leaderships by an election and by a latch. They tell when each hold was valid, by a
// clock that they have in common, and add to a counter. With the same client each worker has
// persistent watches and one-shot watches on the paths of its locks, caches of a subtree that all
// workers change, a persistent.Node at a fixed path, one with a number, a membership, and a view
// of the group. Two more workers have no locks. All of them are paused and killed. To some workers
// the servers seem to be older than 3.6: their caches have one-shot watches.
//
// While faults go on, these are checked again and again:
//
//   - no two holds that exclude one another were valid at a time, and no more permits than the limit
//     allowed when they were taken;
//   - tokens grew, and writes that were accepted with a hold did not go back, also those of which the
//     holder does not know that they were;
//   - no holder's node was deleted by another, and a hold was lost with its session only;
//   - no process ended by itself;
//   - no addition to the counter is lost, and none counts twice, unless its outcome is unknown.
//
// After each round of faults there must have been grants of all kinds, with writes, and one of a
// node that its worker had kept. All workers come to rest. In half of the rounds each waits until
// it has got what it waits for, and is elected once more. Then
//
//   - the counter has what was added;
//   - no line has a node any more, though all sessions live;
//   - another client gets each lock;
//   - each cache is equal to the subtree. Its events were a history: each has the node as it was shown
//     last and a later version of it, a parent is there before and after its children, and each version
//     was written by a write that its client did not report as not applied;
//   - on each connection, a persistent watch has told all of the changes that are made for it, in their
//     order, to the last one. A one-shot watch has fired for the last change;
//   - each node that is kept is there once, in the session of its client, with the data that was set
//     last; no closed one is; and the view of the group has the members and nothing else.
//
// Servers that lose transactions, as ZooKeeper 3.8.0 sometimes does, are given up, and what was
// wrong with them shows nothing. Plain connections find that out. A server that does not start
// because its last transaction log is empty is started without that file, and counted.
//
// That must be so within the session timeouts and a bound for hangs. No check depends on how fast
// the machine is.
//
// DOCENT_SIEGE says how long the siege lasts: `make siege` sets it. Ensembles of three and of five
// servers take turns in a long one. DOCENT_SIEGE_SEED repeats the choice of servers, settings,
// faults and moments, and what each goroutine of a worker chooses. It does not repeat what comes
// of it: the order in which processes run is another one. The siege ends with one line of verdict,
// which has the seed and the numbers of ensembles, rounds, grants, additions, events and faults of
// each kind, and the longest time until all was well again. A kind of fault that never has an
// effect fails the siege. A test that fails prints where the history is, which has one line for
// each hold and each fault, and the events of the last round; beside it are the logs of the
// workers and of the servers.
package chaos
