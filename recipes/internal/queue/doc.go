// Package queue is the one waiting line behind all locks: enqueue, see who is ahead, wait for whoever matters, be granted, leave.
//
// Entering a line is a create and a list of the line right behind it on the same connection, without waiting for the answer to the create:
// one round trip. Servers answer the requests of a connection in their order, so the list shows our node, and all that are ahead. Several
// lines are one transaction of creates, and the lists behind it. The zxid of the reply is our nodes' czxid: the fencing token. The lines'
// directories are never written, but those that a recipe has made for itself.
//
// While a list of a line is under way in a session, all who need one share the next. It is parsed once, and each finds its place by search.
//
// The nodes ahead of ours only become fewer. With one of them left, its deletion grants the lock without a read. With more, the second
// last is watched: when it goes, the list is read again while the last one still holds, off the critical path. Where a node may
// leave another at its place, as with read-write locks, the list has the last word. Those of one session who stand one behind the other
// know of each other, and read no list at all.
//
// A recipe is a [Spec] for it: the lines, what stands in the way there, and, if being at the front is not enough, an [Admission].
package queue
