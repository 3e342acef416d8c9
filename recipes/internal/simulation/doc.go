// Package simulation runs all recipes together on one server with followers, network faults and
// clients that come and go, and checks them against what the server's transactions say. Its tests
// are in no recipe's own package because most of what they find is between recipes and servers.
//
// A checker keeps the lock nodes as of each transaction. It checks a hold when it begins: its node
// is there, no node ahead of it blocks it, no conflicting hold is valid by its Err, and tokens
// grow. It checks it again at the virtual instant at which a transaction deletes the node: Err must
// tell by then, unless the test itself has deleted the node. Permits are counted as of each hold's
// transaction, against the limit in force then. In the end no node is left, every lock can be had,
// and all levels of the metrics are zero.
package simulation
