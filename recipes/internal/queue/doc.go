// Package queue is the one waiting line behind all locks: enqueue, see who is ahead, wait for whoever matters, be granted, leave.
//
// Entering the line is one transaction that creates our node and writes the parent's data as it was. The parent's Stat in the answer
// says how many are in line as of that transaction, so that a lock nobody wants is granted without a read; and its mzxid is the
// zxid of the transaction, which is our node's czxid: the fencing token.
//
// The nodes ahead of ours only become fewer. With one of them left, its deletion grants the lock without a read. With more, the second
// last is watched: when it goes, the list is read again while the last one still holds, off the critical path.
package queue
