// Package handoff lets the goroutines of a client that want the same lock share one lock node. They
// wait in memory and pass the node on without a request. It is above package queue, which acquires
// the node.
//
//   - The first goroutine that calls [Lock.Acquire] makes a localQueue (handoff.go), one for each lock
//     of a client. A goroutine of the client acquires the node: localQueue.run calls
//     queue.Lock.Acquire. The node belongs to the localQueue. A waiter that gives up costs the others
//     nothing.
//   - localQueue.deliver gives the hold to the first waiter, and sets a sharedNode (sharednode.go) as
//     the hold's ownership.Handoff.
//   - When the hold is released, sharedNode.Next decides: the first waiter gets a new hold of the
//     node, or the node is kept idle, or it is deleted.
//   - When a limit ([Limits]) is reached, sharedNode.readContention lists the queue. If it contains
//     nodes of other clients, the node is deleted. Then localQueue.restart acquires a new one for the
//     goroutines that wait.
package handoff
