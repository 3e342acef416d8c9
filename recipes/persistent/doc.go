// Package persistent keeps a node on the servers for as long as a program wants: through lost
// connections, lost sessions, and deletions by other clients. It is for registrations, such as the
// address of a server. Package group builds groups of processes on it.
//
//	node, err := persistent.New(client, "/services/orders/host-3", []byte("10.0.0.3:8080"))
//	...
//	err = node.Start(ctx)
//	...
//	defer node.Close()
//	err = node.WaitReady(ctx) // the node is there
//
// # What a Node does
//
// The node is ephemeral, unless an option says otherwise. When the session is lost, the Node waits
// until the old session's node is deleted, and creates the node in the next session. When another
// client deletes the node, or overwrites its data, the Node mends that: at once the first time, and
// after a growing pause of up to a second if it happens again and again. It never deletes a node
// without need: after a reconnect with the same session the node is only read.
//
// [Node.SetData] returns at once. The data is written when there is a connection, the last data
// only. [Node.WaitReady] waits until the node is there with the data of the last SetData.
//
// [Node.Close] deletes the node. A create that the servers apply late, after its answer was lost,
// is undone: the Node looks for its node until no such create can be applied any more.
//
// # The owner of a node
//
// A Node does not adopt or delete the node of another program. An ephemeral node belongs to this
// Node if it belongs to the client's current session: one client has one running Node at a path. A
// node of another mode belongs to this Node if this Node has created it, which its czxid shows. If
// another program's node is at the path, the Node waits for some time, and then ends with
// [ErrOccupied]: see [WithOccupiedTimeout] and [WithTakeover].
//
// When a Node is closed, and its deletion is not confirmed yet, the client may start the next Node
// at the path. The last one's node then belongs to the next one, which keeps a node that was created
// with the same mode, time to live and ACL. It deletes any other node, and creates its own.
//
// # Errors
//
// A Node outlasts outages of any length. Errors that no retry can mend end it: zk.ErrNoAuth,
// zk.ErrInvalidACL, framework.ErrAuthFailed, zk.ErrNoChildrenForEphemerals, ErrOccupied and so on.
// Then [Node.Done] is closed, and [Node.Err] returns the error.
package persistent
