package framework

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/internal/hooks"
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

// lifetime implements bridge.Lifetime.
type lifetime struct {
	session    *session        // nil: the lifetime has ended
	connection context.Context // ends with the connection; nil: only the session bounds it
}

// Lifetime implements bridge.Session.
func (b sessionBridge) Lifetime() hooks.Lifetime {
	if b.s == nil || b.s.bound == nil {
		return &lifetime{}
	}
	return b.s.bound.lifetime()
}

// Notify implements bridge.Lifetime.
func (f *lifetime) Notify(l hooks.EndListener) bool {
	if f.session == nil {
		return false
	}
	s := f.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || f.connection != nil && f.connection.Err() != nil {
		return false
	}
	if s.onEnd == nil {
		s.onEnd = map[hooks.EndListener]struct{}{}
	}
	s.onEnd[l] = struct{}{}
	s.conn.RelyOnQuorum(s.core.cfg.quorum)
	return true
}

// Stop implements bridge.Lifetime.
func (f *lifetime) Stop(l hooks.EndListener) {
	if f.session != nil {
		f.session.mu.Lock()
		defer f.session.mu.Unlock()
		delete(f.session.onEnd, l)
	}
}

// Done implements bridge.Lifetime.
func (f *lifetime) Done() <-chan struct{} {
	switch {
	case f.session == nil:
		return closedChannel
	case f.connection == nil:
		return f.session.done
	}
	return f.connection.Done()
}

// Bound implements bridge.Lifetime.
func (f *lifetime) Bound(ctx context.Context) (bound context.Context, stop func()) {
	if f.connection == nil {
		return ctx, func() {}
	}
	bound, end := context.WithCancel(ctx)
	detach := context.AfterFunc(f.connection, end)
	return bound, func() { detach(); end() }
}

// Err implements bridge.Lifetime.
func (f *lifetime) Err() error {
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

// lifetime is that of a hold that begins now.
func (s *session) lifetime() *lifetime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}
