// Package simulation runs all recipes together on one server with followers, network faults and
// clients that are closed and replaced. It checks them against the server's transactions. Its tests
// are in a package of their own because most of the errors they find are between recipes and
// servers.
//
// A checker keeps the lock nodes as of each transaction. It checks a hold when it begins: the
// hold's node exists, no conflicting node is ahead of it, no conflicting hold is valid by its Err,
// and tokens grow. It checks the hold again at the virtual instant at which a transaction deletes
// the node. Err must report the loss by then, unless the test itself has deleted the node. Permits
// are counted as of each hold's transaction and compared with the limit at that time. In the end no
// node is left, every lock can be acquired, and all up-down metrics are zero.
package simulation
