// Package ensembles spreads locks over several ensembles by their names. Use it where one ensemble
// cannot serve all locks: see docs/scaling.md, which has the limits of one.
//
//	set, err := ensembles.New([]ensembles.Ensemble{{Name: "a", Client: a}, {Name: "b", Client: b}})
//	...
//	lock, err := set.Lock("order-17", func(c *framework.Client) (recipes.Locker, error) {
//		return mutex.New(c, "/locks/order-17")
//	})
//	...
//	err = lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return work(ctx)
//	})
//
// # Guarantees
//
// Those of the locks. Each name has one ensemble, so all programs with the same set exclude each
// other. While an ensemble is down, the locks of its names cannot be acquired, and those of all other
// names can. A Set never uses another ensemble instead. Clients that still reach the first one would
// not be excluded: two holders.
//
// Tokens of two ensembles cannot be compared. A resource keeps the largest token of each ensemble,
// with the ensemble's name, and refuses a write if one of its tokens is smaller than that.
//
// # The ensemble of a name
//
// It is found by rendezvous hashing, also called highest random weight. The weight of an ensemble for a
// name is the first eight bytes of a SHA-256 hash, as a big-endian number without a sign. Hashed are
// the name of the ensemble, a zero byte, and the name of the lock, both in UTF-8. The ensemble with the
// largest weight has the name. Of two equal weights the one of the ensemble whose name sorts first
// counts. This rule never changes, and other languages can compute it.
//
// If an ensemble is added to n, about one name in n+1 moves, always to the new one. If one is removed,
// only its names move. The order of the ensembles and their addresses do not matter. The name of an
// ensemble is for ever. With another name the same servers would be another ensemble, and a lock that
// moves from one of the two names to the other would wait for its own node.
//
// # Changing the set
//
// Two programs exclude each other on a name that moves only if they hold its lock on a common
// ensemble. To change the set from old to new while programs run:
//
//  1. Start the new ensemble. Nothing else changes.
//  2. Replace each program by one with New(new, WithPrevious(old...)). It holds the lock of a name
//     that moves on both ensembles. So it excludes the programs with old, and those of the next step.
//  3. Wait until no program with old alone runs: until its processes have ended, not only their
//     sessions. A process that is paused or cut off has not ended.
//  4. Replace each program by one with New(new).
//  5. When no program of step 2 runs any more, stop an ensemble that was removed, and have the
//     resources forget its tokens.
//
// A program that changes its set without a restart has done a step when all holds of the set before
// are released, and no acquire with it is under way. Before that it must not acquire a lock of the next
// set under a hold of the set before: two programs that do so can wait for each other.
//
// What goes wrong if a step is skipped:
//
//   - Without step 2, or if step 4 begins before step 3 is done, a program with old alone and one
//     with new alone have the same lock at once.
//   - If step 3 waits for sessions only, a process that was paused writes with its token of the old
//     ensemble, while holders with new alone send no token of that ensemble. So no resource refuses it.
//   - If an ensemble is stopped, or cannot be reached, before step 5, programs of step 2 cannot acquire
//     the locks of the names that move. While they try, they may hold the lock on the other ensemble, and
//     programs with old alone wait for it. A deadline of the acquire bounds that.
//   - If a second change begins before step 5, programs may run that have no set in common.
//
// To take a change back, replace each program by one of step 2 again, wait until none with new alone
// runs, and then go back to New(old). Nothing checks these steps: programs of two sets may share no
// ensemble at all.
//
// # Nodes and requests
//
// Those of the locks. A lock of a name that moves takes the requests of two locks, one after another.
// Ensembles are in the order of their names then, whichever is new. So programs of two changes in
// opposite directions cannot deadlock with each other.
package ensembles
