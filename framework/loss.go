package framework

import (
	"context"
	"fmt"
)

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
	session    *session
	connection context.Context // ends with the connection; nil: the session is enough
}

// Footing is what a hold that begins now stands on. It is for recipes.
func (s *Session) Footing() Footing {
	if s == nil || s.bound == nil {
		return Footing{}
	}
	return Footing{s.bound, s.bound.footing()}
}

// Dependent is who stands on a Footing.
type Dependent interface {
	// Gone is called once the footing is, on a goroutine that the end of the session waits for. It must not wait for anything: others are
	// told after it. What it returns, unless that is nil, is called on the same goroutine when all have been told, and may take a while.
	Gone() (then func())
}

// Stand has d told when the hold is over, false if it is: then nobody tells. Call Leave when d does not care any more.
func (f Footing) Stand(d Dependent) bool {
	if f.session == nil {
		return false
	}
	s := f.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || f.connection != nil && f.connection.Err() != nil {
		return false
	}
	if s.standing == nil {
		s.standing = map[Dependent]struct{}{}
	}
	s.standing[d] = struct{}{}
	s.conn.RelyOnQuorum(s.core.cfg.quorum)
	return true
}

// Leave undoes Stand. Gone may be on its way.
func (f Footing) Leave(d Dependent) {
	if f.session != nil {
		f.session.mu.Lock()
		defer f.session.mu.Unlock()
		delete(f.session.standing, d)
	}
}

// Gone is closed when the hold is over. A process that was paused may learn it from Err before.
func (f Footing) Gone() <-chan struct{} {
	switch {
	case f.session == nil:
		return closedChannel
	case f.connection == nil:
		return f.session.done
	}
	return f.connection.Done()
}

// Bound is ctx, ended no later than the hold, for what is only asked on its behalf: an operation of the session ends with the session, but
// would wait for the next connection. Call stop when ctx is not used any more.
func (f Footing) Bound(ctx context.Context) (bound context.Context, stop func()) {
	if f.connection == nil {
		return ctx, func() {}
	}
	bound, end := context.WithCancel(ctx)
	detach := context.AfterFunc(f.connection, end)
	return bound, func() { detach(); end() }
}

// Err is nil while the hold can be relied on, and then why not: like Session.Err, and ErrSuspended.
func (f Footing) Err() error {
	if f.session == nil {
		return ErrZeroValue
	}
	if err := f.session.check(); err != nil || f.connection == nil || f.connection.Err() == nil {
		return err
	}
	if err := f.session.reason(); err != nil {
		return err // it has just ended
	}
	return fmt.Errorf("%w, and the client's loss policy is %v", ErrSuspended, f.session.core.cfg.loss)
}

// footing ends when what begins now is over; nil for the session.
func (s *session) footing() context.Context {
	if s.core.cfg.loss == UntilDeadline {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ground
}
