// Package fence is the resource's side of a fencing token: a [Register] remembers the largest token it has seen and refuses
// smaller ones.
//
// A lock alone cannot stop a holder that was paused, lost the lock meanwhile, and goes on as if nothing had happened: only the
// resource can refuse what comes late. So whoever holds the lock sends the token of its hold (recipes.Hold.Token) with each
// request, and the resource lets the token decide:
//
//	var fencing fence.Register // one for each lock, shared by all requests
//
//	func (s *store) Put(token int64, key, value string) error {
//		return fencing.Do(token, func() error { return s.put(key, value) })
//	}
//
// Later holders have larger tokens (equal ones among goroutines that pass a node on among
// themselves, see mutex.WithLocalHandoff), so from the first request of a later holder on, those of all earlier ones fail with
// [ErrStale]. Until that request comes nobody else has touched the resource, and a late write of the earlier holder does no harm.
//
// The package needs nothing but the standard library, so that a resource can use it without knowing ZooKeeper. Curator has no
// counterpart.
//
// # What it is not
//
// A Register lives in one process and in memory. Where a resource has several processes, or outlives them, the largest token
// belongs next to the data and is stored with it, in the same step as each write. In SQL that is a column of the row, and no
// Register is needed: the UPDATE sets the column to the token of the request, under the condition that the column is smaller than
// or equal to that token; if it changes no row, a later holder was there. A resource that keeps its data in another way reads the
// stored token back when it starts, and gives it to [Register.Accept] before it serves anybody: a Register that begins with
// nothing lets the latecomers in that the one before it had refused.
//
// Nor does it know locks from one another: tokens of different locks, or of different ensembles, do not compare. Where the
// servers of the lock are restored from a backup, tokens may begin again with smaller ones: reset what the resource remembers
// along with it.
package fence
