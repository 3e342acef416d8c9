package framework

import (
	"fmt"
	"sync"
	"time"
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

// listener delivers changes to one function, in order, on a goroutine of its own.
type listener struct {
	fn   func(StateChange)
	box  *mailbox[StateChange]
	stop chan struct{} // closed by the stop function: nothing more is delivered
	done chan struct{} // closed by run
}

func (l *listener) run() {
	defer close(l.done)
	for {
		select {
		case <-l.stop:
			return
		case <-l.box.signal:
		}
		changes, open := l.box.take()
		for _, c := range changes {
			if l.stopped() {
				return
			}
			l.fn(c)
		}
		if !open {
			return
		}
	}
}

func (l *listener) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// states keeps the current state and its listeners.
type states struct {
	mu        sync.Mutex
	current   State
	ever      bool // there has been a session
	listeners map[*listener]struct{}
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
	for l := range s.listeners {
		l.box.put(c)
	}
}

func (s *states) get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// listen adds fn; after the last change nothing is added any more.
func (s *states) listen(fn func(StateChange)) (stop func()) {
	l := &listener{fn: fn, box: newMailbox[StateChange](), stop: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == Closed {
		return func() {}
	}
	if s.listeners == nil {
		s.listeners = map[*listener]struct{}{}
	}
	s.listeners[l] = struct{}{}
	go l.run()
	return sync.OnceFunc(func() { s.remove(l) })
}

func (s *states) remove(l *listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	close(l.stop)
}

// finish reports Closed, then waits for the listeners to be done with all they were told, at most until the time out: a
// listener may itself be waiting for the client to close.
func (s *states) finish(timeout time.Duration) {
	s.set(StateChange{State: Closed, At: time.Now()})
	s.mu.Lock()
	all := make([]*listener, 0, len(s.listeners))
	for l := range s.listeners {
		l.box.close()
		all = append(all, l)
	}
	s.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for _, l := range all {
		select {
		case <-l.done:
		case <-l.stop: // stopped: its owner gave it up
		case <-timer.C:
			return
		}
	}
}
