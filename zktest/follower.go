package zktest

import (
	"time"
)

// Follower is a second server of the same ensemble, which learns of changes late. Clients that use it read what the leader had a while
// ago; their own writes are carried out by the leader at once, and answered when the follower has them; sync waits until it has
// everything. A client that has seen more, from the leader say, is not let in. Its methods may be called from any goroutine.
type Follower struct {
	srv     *Server
	replica *replica
}

// Follower adds a server that learns of changes after lag.
func (s *Server) Follower(lag time.Duration) *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{srv: s, replica: newReplica(s, len(s.followers)+2, s.leader.tree.Clone())}
	f.replica.applied, f.replica.lag = s.zxid, max(lag, 0)
	s.followers = append(s.followers, f)
	return f
}

// Addr is where clients of any kind connect to the follower, see [Server.Addr]. To connect in memory, dial [Follower.MemAddr].
func (f *Follower) Addr() string { return f.srv.Client("").addrOf(f.replica) }

// MemAddr is the address of the follower for all of the server's dialers.
func (f *Follower) MemAddr() string {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	return f.replica.memAddr()
}

// SetLag changes how late the follower learns of later changes.
func (f *Follower) SetLag(lag time.Duration) {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.replica.lag = max(lag, 0)
}

// Freeze keeps the follower from learning of anything. What waits for it waits: its clients' own writes, and sync.
func (f *Follower) Freeze() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.srv.tell("follower frozen")
	f.replica.held = true
}

// Thaw undoes Freeze: the follower learns of everything at once.
func (f *Follower) Thaw() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.srv.tell("follower thawed")
	f.replica.held = false
	f.replica.catchUp()
}
