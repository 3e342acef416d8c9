package framework

import "fmt"

// LossPolicy says what a suspended connection means for holds. Curator: ConnectionStateErrorPolicy.
type LossPolicy int

const (
	// UntilDeadline keeps holds through outages for as long as the servers cannot give what is held to somebody else: until the
	// session's deadline. Curator: SessionConnectionStateErrorPolicy.
	UntilDeadline LossPolicy = iota
	// Strict ends holds with ErrSuspended as soon as the connection is suspended, though the session may live on; their nodes are deleted as
	// soon as they can be. It is for those who would rather stop too often than work on without being able to ask. It is no
	// safer than UntilDeadline: a connection that nobody has noticed to be dead is not suspended. Waiters keep their places. Curator:
	// StandardConnectionStateErrorPolicy, which there concerns leaders only.
	Strict
)

// String returns the name of the constant.
func (p LossPolicy) String() string {
	switch p {
	case UntilDeadline:
		return "UntilDeadline"
	case Strict:
		return "Strict"
	}
	return fmt.Sprintf("LossPolicy(%d)", int(p))
}

// Footing is what a hold stands on: a session and, where the client's policy is Strict, one connection of it. It is for recipes.
type Footing struct {
	session *session
	gone    <-chan struct{}
}

// Footing is what a hold that begins now stands on. It is for recipes.
func (s *Session) Footing() Footing {
	if s == nil || s.bound == nil {
		return Footing{}
	}
	return Footing{s.bound, s.bound.footing()}
}

// Gone is closed when the hold is over. A process that was paused may learn it from Err before.
func (f Footing) Gone() <-chan struct{} {
	if f.session == nil {
		return closedChannel
	}
	return f.gone
}

// Err is nil while the hold can be relied on, and then why not: like Session.Err, and ErrSuspended.
func (f Footing) Err() error {
	if f.session == nil {
		return ErrZeroValue
	}
	if err := f.session.check(); err != nil {
		return err
	}
	select {
	case <-f.gone:
		if err := f.session.reason(); err != nil {
			return err // it has just ended
		}
		return fmt.Errorf("%w, and the client's loss policy is %v", ErrSuspended, f.session.core.cfg.loss)
	default:
		return nil
	}
}

// footing is closed when what begins now is over.
func (s *session) footing() <-chan struct{} {
	if s.core.cfg.loss == UntilDeadline {
		return s.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ground
}
