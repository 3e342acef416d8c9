package framework

import (
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/listen"
)

// State is the state of a client's connection. Curator: ConnectionState.
type State int

const (
	// Connecting is the state before the first session. It is never reported as a change.
	Connecting State = iota
	// Connected means that the client has its first session. It is reported once.
	Connected
	// Suspended means that the connection was lost, and the session may still live. Holds stay
	// valid until their deadline, or end at once under the Strict policy.
	Suspended
	// Reconnected means that there is a connection again: after Suspended with the same session,
	// after Lost and AuthFailed with a new one.
	Reconnected
	// Lost means that the session has ended, and with it every ephemeral node, watch and hold. Each
	// session ends with exactly one Lost, also when the client is closed.
	Lost
	// AuthFailed means that the servers refuse a credential of WithAuth. There is no session, and
	// operations fail with ErrAuthFailed. The client tries again after one to five seconds. When
	// the servers accept the credential, the state is Reconnected, or Connected if there was no
	// session before.
	AuthFailed
	// Closed means that Close was called.
	Closed
)

var stateNames = [...]string{
	"connecting", "connected", "suspended", "reconnected", "lost", "authentication failed", "closed",
}

// String returns the state in lower case.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("state %d", int(s))
	}
	return stateNames[s]
}

// IsConnected reports whether the client has a connection and a session.
func (s State) IsConnected() bool { return s == Connected || s == Reconnected }

// StateChange is one change of a client's State.
type StateChange struct {
	State   State
	Session int64     // the id of the session; 0 with AuthFailed and Closed
	Cause   error     // with Lost and AuthFailed: the reason; otherwise nil
	At      time.Time // when the client noticed
}

// states holds the current state and its listeners.
type states struct {
	mu      sync.Mutex
	current State
	ever    bool // the client has had a session
	log     func(StateChange)
	listen.Listeners[StateChange]
}

// set changes the state, notes the time and notifies the listeners. It does not wait for them. The time is read
// under the lock: a goroutine that takes the time, and then still reads the former state, has no later time.
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
	s.current, c.At = c.State, time.Now()
	s.log(c)
	s.Tell(c)
}

func (s *states) get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// close reports Closed, then waits for the listeners, for at most timeout.
func (s *states) close(timeout time.Duration) {
	s.set(StateChange{State: Closed})
	s.Close(timeout)
}
