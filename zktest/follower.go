package zktest

import (
	"fmt"
	"time"
)

// Follower is a further server of the same ensemble. It learns of changes late, so its clients read
// an older state than the leader's. It passes their writes and syncs to the leader in order, and
// answers them when it knows the result. It refuses a client that has seen a later transaction than
// the follower, for example from the leader. The methods of Follower may be called from any
// goroutine.
//
// The leader carries out a write only if it comes from the server to which the session belongs: the
// server to which its client has connected last. Otherwise the write fails, and its connection
// ends. A session that connects to an earlier server again belongs to it again. Then what still
// waits between that server and the leader is carried out, although its connection ended long ago.
//
// A server finds the transactions of its clients' requests by session and number (xid), and looks
// only at the first request that waits. A session that uses a number on two connections may get the
// answer to another request.
//
// The leader hears of a session that uses a follower when its client connects. After that it hears
// of the session from the follower's reports, each half tick.
//
// An ensemble may elect another leader, see [Server.FreezeLeader]. A Follower can then become the
// leader. While it leads, the methods for its way to the leader have no effect. A leader can apply its
// own transactions late too, see [Follower.Freeze].
type Follower struct {
	srv     *Server
	replica *replica
}

// Follower adds a server that learns of changes after lag.
func (s *Server) Follower(lag time.Duration) *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{srv: s, replica: newReplica(s, len(s.replicas)+1, s.tree.Clone())}
	f.replica.applied, f.replica.lag = s.zxid, max(lag, 0)
	s.followers, s.replicas = append(s.followers, f), append(s.replicas, f.replica)
	s.join(f.replica)
	s.silentFollows = s.voters() > len(s.replicas)
	s.networkChanged()
	return f
}

// Addr returns the address of the follower for clients of any kind, see [Server.Addr]. To connect
// in memory, dial [Follower.MemAddr].
func (f *Follower) Addr() string { return f.srv.Client("").addrOf(f.replica) }

// MemAddr returns the address of the follower for all of the server's dialers.
func (f *Follower) MemAddr() string {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	return f.replica.memAddr()
}

// do records what in the trace and calls change with the server's mutex held.
func (f *Follower) do(what string, change func(s *Server, r *replica)) {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.srv.traceTest(f.replica.name() + " " + what)
	change(f.srv, f.replica)
}

// SetLag sets how late the server learns of later changes, see [Follower.Freeze].
func (f *Follower) SetLag(lag time.Duration) {
	f.do(fmt.Sprintf("lags by %v", lag), func(_ *Server, r *replica) {
		r.lag = max(lag, 0)
		r.trail()
	})
}

// Freeze stops the server from learning of changes. What depends on them waits: its clients' own
// writes, and the syncs of a follower. The leader decides on changes as before, and followers show
// them. It does not show them to its own clients. It answers their syncs nevertheless, as a real
// leader does that has not yet applied what its followers have applied. It allows writes by the ACLs of
// before, as a real leader does.
func (f *Follower) Freeze() {
	f.do("learns of nothing", func(_ *Server, r *replica) {
		r.held = true
		r.trail()
	})
}

// Thaw undoes Freeze: the server learns of all changes at once.
func (f *Follower) Thaw() {
	f.do("learns of all changes", func(_ *Server, r *replica) {
		r.held = false
		r.catchUp()
	})
}

// HoldRequests makes requests for the leader wait in the follower: writes, syncs, new sessions and
// the ends of sessions. Sessions that come back do not wait. Reads wait for the writes before them
// on their connection. The follower's reports go on. What waits is lost when the follower loses its
// leader, see [Follower.CutLeader] and [Follower.Restart].
func (f *Follower) HoldRequests() {
	f.do("holds requests", func(_ *Server, r *replica) { r.holds = true })
}

// ReleaseRequests undoes HoldRequests: waiting requests arrive at the leader, in order.
func (f *Follower) ReleaseRequests() {
	f.do("releases requests", func(_ *Server, r *replica) {
		r.holds = false
		if r.role == following {
			r.flush()
		}
	})
}

// Waiting returns the number of requests and returning sessions that wait on their way from the
// follower to the leader.
func (f *Follower) Waiting() int {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	if f.replica.role != following {
		return 0
	}
	return len(f.replica.link.requests) + len(f.replica.link.renewals)
}

// CutLeader cuts the network between the follower and the leader, as a broken cable does. What they
// send each other waits: requests, returning sessions, changes, reports. After syncLimit ticks
// ([WithConfig]) both give up: the follower ends its clients' connections, loses what waits, and
// serves no client until it is restored. A leader that has lost the majority of its followers steps
// down, and the others elect a leader; see [Server.IsolateLeader].
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

// Restore undoes all cuts of the follower. What still waits arrives. A follower that had given up
// follows again.
func (f *Follower) Restore() {
	f.do("restored", func(s *Server, r *replica) {
		s.restore(r)
		s.networkChanged()
	})
}

// Restart ends the connections of the follower's clients, loses what waits for the leader, and
// makes the follower follow again at once. A server that leads steps down.
func (f *Follower) Restart() {
	f.do("restarted", func(s *Server, r *replica) {
		if s.life == nil {
			return
		}
		if r.role == leading || r.role == staleLeader {
			s.stepDown(r)
			return
		}
		if r.role == following {
			s.lose(r)
		}
		if s.leader.role == leading && s.connected(s.leader.number, r.number) {
			s.join(r)
		}
		s.checkQuorum()
	})
}

// SetSessionTimeouts is [Server.SetSessionTimeouts] for this server only.
func (f *Follower) SetSessionTimeouts(least, most time.Duration) {
	checkTimeouts(least, most)
	f.do(fmt.Sprintf("session timeouts: %v to %v", least, most), func(_ *Server, r *replica) {
		r.bounds = &bounds{least, most}
	})
}

// String returns the server's name as it stands in traces.
func (f *Follower) String() string { return f.replica.name() }
