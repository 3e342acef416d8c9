// Package fence checks fencing tokens in the resource that a lock protects. A [Register] remembers
// the largest token it has seen and refuses smaller ones.
//
// A lock alone cannot stop a holder that was paused, lost the lock meanwhile, and goes on. Only the
// resource can refuse its late requests. So a holder sends the token of its hold
// (recipes.Hold.Token) with each request, and the resource checks the token:
//
//	var fencing fence.Register // one for each lock, shared by all requests
//
//	func (s *store) Put(token int64, key, value string) error {
//		return fencing.Do(token, func() error { return s.put(key, value) })
//	}
//
// Later holders have larger tokens. Goroutines that hand a lock node on among themselves have equal
// ones (see mutex.WithLocalHandoff). So after the first request of a later holder, requests of all
// earlier holders fail with [ErrStale]. Before that request no other holder has used the resource,
// and a late write of the earlier holder does no harm. A read is such a request, too. If a later
// holder reads without its token, a late write can come after that read. The later holder then
// overwrites the late write, and it is lost.
//
// The package needs only the standard library, so a resource can use it without ZooKeeper. Curator
// has no counterpart.
//
// # Limits
//
// A Register lives in the memory of one process. If a resource has several processes or outlives
// them, store the largest token with the data, in the same step as each write. In SQL this is a
// column of the row, and no Register is needed. The UPDATE sets the column to the token of the
// request, on condition that the column is not larger than that token. If it changes no row, a
// later holder has written. A resource that stores its data in another way reads the stored token
// at its start, and passes it to [Register.Accept] before it serves any request. A Register that
// starts empty accepts the late requests that the one before it refused.
//
// A Register does not distinguish locks: tokens of different locks or different ensembles cannot be
// compared. If the servers of the lock are restored from a backup, tokens may start again with
// smaller ones. Then reset what the resource remembers as well.
package fence
