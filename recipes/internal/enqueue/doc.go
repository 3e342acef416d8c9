// Package enqueue creates lock nodes. It is below package queue: it knows nothing of queues, and does
// not wait for other lock nodes.
//
//   - [Create] creates lock nodes, and missing directories, in one transaction (create.go).
//   - [Counted] is a Create that also counts the children of directories as of its transaction
//     (counted.go). It writes these directories, so they must be such that a recipe has made for
//     itself ([Dir], dir.go). The directories that users name are never written.
//   - [DeleteNodes] deletes the nodes of a create or of a wait that has failed (delete.go).
//   - [WarnOfCounter] warns if a directory's counter of sequence numbers runs out, and [WarnOfOtherLock]
//     if a lock of another kind uses the directory (warnings.go).
//
// # Lost reply
//
// The name of a lock node begins with a GUID. If the connection breaks before the reply to the
// create arrives, the framework searches the directory for the GUID on the connection that follows,
// after a sync. It returns the node that it finds, or sends the create again. A node that was found
// has no known czxid: [Created].Czxid is 0. If the create was sent again, [Node].AfterSend was called
// again, and only what its last call requested comes behind the create. If Create.Do returns before
// the node is found or created, the framework deletes in the background what a create may have left.
package enqueue
