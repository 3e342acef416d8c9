package framework

import (
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/listen"
)

// State is what a client knows of its connection. Curator: ConnectionState.
type State int

const (
	// Connecting is the state until there has been a session. It is never reported as a change.
	Connecting State = iota
	// Connected is the first session of the client, reported once.
	Connected
	// Suspended means that the connection is gone and the session may still live. Holds stay valid until their deadline, unless the client's
	// loss policy is Strict.
	Suspended
	// Reconnected means that there is a connection again: with the same session after Suspended, with a new one after Lost
	// and AuthFailed.
	Reconnected
	// Lost means that the session is over, and with it every ephemeral node, watch and hold. Each session ends in exactly
	// one Lost, also when the client is closed.
	Lost
	// AuthFailed means that the servers refuse a credential of WithAuth: there is no session, and operations fail with ErrAuthFailed.
	// The client tries again, after a second to five, and goes on with Reconnected, or Connected, when the credential is accepted.
	AuthFailed
	// ReadOnly is reserved for connections to servers without a quorum.
	ReadOnly
	// Closed is the end of the client.
	Closed
)

var stateNames = [...]string{"connecting", "connected", "suspended", "reconnected", "lost", "authentication failed", "read-only", "closed"}

// String returns the state in lower case.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("state %d", int(s))
	}
	return stateNames[s]
}

// IsConnected reports whether operations can be expected to reach a server.
func (s State) IsConnected() bool { return s == Connected || s == Reconnected || s == ReadOnly }

// StateChange is one change of a client's State.
type StateChange struct {
	State   State
	Session int64     // the session concerned; 0 with AuthFailed and Closed
	Cause   error     // with Lost and AuthFailed: why; otherwise nil
	At      time.Time // when the client noticed
}

// states keeps the current state and its listeners.
type states struct {
	mu      sync.Mutex
	current State
	ever    bool // there has been a session
	listen.Listeners[StateChange]
}

// set changes the state and tells the listeners. No listener is waited for.
func (s *states) set(c StateChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.State == Connected {
		if s.ever {
			c.State = Reconnected
		}
		s.ever = true
	}
	if c.State == s.current {
		return
	}
	s.current = c.State
	s.Tell(c)
}

func (s *states) get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// finish reports Closed, then waits for the listeners, at most until the time out.
func (s *states) finish(timeout time.Duration) {
	s.set(StateChange{State: Closed, At: time.Now()})
	s.Close(timeout)
}
