// Package simulation runs all recipes together on servers with faults, and checks them against the
// servers' transactions. Its tests are in a package of their own because most of the errors they find
// are between recipes and servers.
//
// The seed of a run chooses some of the recipes, some kinds of faults with their weights, and the
// servers: their number, version, lag, ticks and containers. All recipes and all faults in each run
// would find less. A fault that comes all the time hides what happens after it, and a recipe that ends
// sessions hides what long sessions do.
//
// A checker keeps the lock nodes as of each transaction. It checks a hold when it begins: the
// hold's node exists, no conflicting node is ahead of it, no conflicting hold is valid by its Err,
// and tokens grow. It checks the hold again at the virtual instant at which a transaction deletes
// the node. Err must report the loss by then, unless the test itself has deleted the node. A write
// under a Guard names the node of its hold, which must exist in that transaction. Permits are counted
// as of each hold's transaction and compared with the limit at that time. A semaphore mutex is checked
// both ways.
//
// Counters and shared values are checked as histories. No two sequences return the same number, and no block of numbers
// is missing that no call has lost. A register accepts no request of a holder that another one has
// followed, and refuses none of a valid hold. Caches, views of services and observers of groups are
// compared with the tree, and kept nodes, members and instances with what was kept. Nothing passes a
// barrier too early. In the end all calls return, no node is left, every lock can be acquired, and all
// up-down metrics are zero.
//
// Faults of requests are aimed at one kind of request of one recipe. A campaign counts the faults that
// have met such a request, and fails if a pair was never met in 20,000 seeds.
package simulation
