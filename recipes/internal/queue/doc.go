// Package queue is the one waiting line behind all locks: enqueue, see who is ahead, wait for whoever matters, be granted, leave.
//
// Entering a line, or several, is one transaction that creates our nodes and writes the parents, nothing over nothing. The parents' Stats
// in the answer say how many are in line as of that transaction, so that a lock nobody wants is granted without a read; and their
// mzxid is the zxid of the transaction, which is our nodes' czxid: the fencing token. A parent is written at the version that we know,
// for somebody may have put data there: where others come and go, the line is read instead.
//
// The nodes ahead of ours only become fewer. With one of them left, its deletion grants the lock without a read. With more, the second
// last is watched: when it goes, the list is read again while the last one still holds, off the critical path. Where a node may
// leave another at its place, as with read-write locks, the list has the last word. Those of one session who stand one behind the other
// know of each other, and read no list at all.
//
// A recipe is a [Spec] for it: the lines, what stands in the way there, and, if being at the front is not enough, an [Admission].
package queue
