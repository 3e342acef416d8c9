package zktest

import (
	"fmt"
	"time"
)

// Follower is a further server of the same ensemble. Clients that use it read what the leader had a
// while ago: it learns of changes late. Their writes and their syncs go from it to the leader, in
// order, and are answered when it knows what came of them. A client that has seen more than it,
// from the leader say, is not let in. Its methods may be called from any goroutine.
//
// The leader carries out a write for the server only that the session belongs to: the one where its
// client has connected last. Else the write fails, and its connection ends. A session that comes
// back to a server belongs to it again, and then what still waits between that server and the
// leader is carried out, although its connection ended long ago.
//
// A session that is used at a follower is heard of by the leader when its client connects, and else
// when the follower reports it, each half tick.
//
// An ensemble may elect another leader, see [Server.FreezeLeader]. A Follower can come to lead
// then, and what concerns the way to the leader has no effect on it for as long as it does.
type Follower struct {
	srv     *Server
	replica *replica
}

// Follower adds a server that learns of changes after lag.
func (s *Server) Follower(lag time.Duration) *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{srv: s, replica: newReplica(s, len(s.replicas)+1, s.leader.tree.Clone())}
	f.replica.applied, f.replica.lag = s.leader.applied, max(lag, 0)
	s.followers, s.replicas = append(s.followers, f), append(s.replicas, f.replica)
	s.join(f.replica)
	s.silentFollows = s.voters() > len(s.replicas)
	s.networkChanged()
	return f
}

// Addr is where clients of any kind connect to the follower, see [Server.Addr]. To connect in
// memory, dial [Follower.MemAddr].
func (f *Follower) Addr() string { return f.srv.Client("").addrOf(f.replica) }

// MemAddr is the address of the follower for all of the server's dialers.
func (f *Follower) MemAddr() string {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	return f.replica.memAddr()
}

// do does something to the follower that others may wait for.
func (f *Follower) do(what string, change func(s *Server, r *replica)) {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.srv.tell(f.replica.name() + " " + what)
	change(f.srv, f.replica)
}

// SetLag changes how late the follower learns of later changes.
func (f *Follower) SetLag(lag time.Duration) {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.replica.lag = max(lag, 0)
}

// Freeze keeps the follower from learning of anything. What waits for it waits: its clients' own
// writes, and sync.
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

// HoldRequests makes what the follower's clients ask of the leader wait in the follower: writes,
// syncs, new sessions and the ends of sessions. Sessions that come back do not wait, reads wait for
// the writes before them on their connection, and the follower's reports go on. What waits is lost
// when the follower loses its leader, see [Follower.CutLeader] and [Follower.Restart].
func (f *Follower) HoldRequests() {
	f.do("holds requests", func(_ *Server, r *replica) { r.holds = true })
}

// ReleaseRequests undoes HoldRequests: what waits arrives at the leader, in order.
func (f *Follower) ReleaseRequests() {
	f.do("releases requests", func(_ *Server, r *replica) {
		r.holds = false
		if r.role == follows {
			r.flush()
		}
	})
}

// Waiting is how many requests, and sessions that come back, wait on their way from the follower to the
// leader.
func (f *Follower) Waiting() int {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	if f.replica.role != follows {
		return 0
	}
	return len(f.replica.link.requests) + len(f.replica.link.renewals)
}

// CutLeader cuts the network between the follower and the leader, as a broken cable does. What they
// send each other waits: requests, sessions that come back, changes, reports. After syncLimit ticks
// ([WithConfig]) both give up: the follower ends its clients' connections, loses what waits, and
// serves nobody until it is restored. A leader that has lost the majority of its followers steps
// down, and others elect another; see [Server.IsolateLeader].
func (f *Follower) CutLeader() { f.cut("cut from the leader", true, true) }

// CutToLeader is CutLeader for what the follower sends.
func (f *Follower) CutToLeader() { f.cut("cut to the leader", true, false) }

// CutFromLeader is CutLeader for what the leader sends.
func (f *Follower) CutFromLeader() { f.cut("cut from what the leader sends", false, true) }

func (f *Follower) cut(what string, to, from bool) {
	f.do(what, func(s *Server, r *replica) {
		if r == s.leader {
			return
		}
		if to {
			s.cut(r.number, s.leader.number)
		}
		if from {
			s.cut(s.leader.number, r.number)
		}
		s.networkChanged()
	})
}

// Restore undoes all cuts of the follower: what still waits arrives, and one that had given up
// follows again.
func (f *Follower) Restore() {
	f.do("restored", func(s *Server, r *replica) {
		s.restore(r)
		s.networkChanged()
	})
}

// Restart ends the connections of the follower's clients, loses what waits for the leader, and
// follows it again at once. A server that leads steps down.
func (f *Follower) Restart() {
	f.do("restarted", func(s *Server, r *replica) {
		if s.life == nil {
			return
		}
		if r.role == leads || r.role == staleLeader {
			s.stepDown(r)
			return
		}
		if r.role == follows {
			s.lose(r)
		}
		if s.leader.role == leads && s.connected(s.leader.number, r.number) {
			s.join(r)
		}
		s.checkQuorum()
	})
}

// SetSessionTimeouts is [Server.SetSessionTimeouts] for this server only.
func (f *Follower) SetSessionTimeouts(least, most time.Duration) {
	checkTimeouts(least, most)
	f.do(fmt.Sprintf("session timeouts: %v to %v", least, most), func(_ *Server, r *replica) { r.bounds = &bounds{least, most} })
}

// String names the server as traces do.
func (f *Follower) String() string { return f.replica.name() }
