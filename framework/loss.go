package framework

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/internal/hooks"
	"github.com/docent-zk/docent/internal/signal"
)

// LossPolicy determines what a suspended connection means for holds. Curator:
// ConnectionStateErrorPolicy.
type LossPolicy int

const (
	// UntilDeadline keeps holds through outages until the deadline of the session. Before it the
	// servers cannot let another client have the lock. Curator: SessionConnectionStateErrorPolicy.
	UntilDeadline LossPolicy = iota
	// Strict ends holds with ErrSuspended as soon as the connection is suspended, even if the
	// session survives. Their nodes are deleted as soon as possible. Waiters keep their positions
	// in the queue. Strict is for programs that prefer to stop too often to working without a
	// connection. It is no safer than UntilDeadline: a dead connection counts as suspended only
	// once the client has noticed. Curator: StandardConnectionStateErrorPolicy, which there applies
	// to leaders only.
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
func (l *lifetime) Notify(listener hooks.EndListener) bool {
	if l.session == nil {
		return false
	}
	s := l.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || l.connection != nil && l.connection.Err() != nil {
		return false
	}
	if s.onEnd == nil {
		s.onEnd = map[hooks.EndListener]struct{}{}
	}
	s.onEnd[listener] = struct{}{}
	s.conn.RelyOnQuorum(s.core.cfg.quorum)
	return true
}

// Stop implements bridge.Lifetime.
func (l *lifetime) Stop(listener hooks.EndListener) {
	if l.session != nil {
		l.session.mu.Lock()
		defer l.session.mu.Unlock()
		delete(l.session.onEnd, listener)
	}
}

// Notifies implements bridge.Lifetime.
func (l *lifetime) Notifies(match func(hooks.EndListener) bool) bool {
	if l.session == nil {
		return false
	}
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	for listener := range l.session.onEnd {
		if match(listener) {
			return true
		}
	}
	return false
}

// Done implements bridge.Lifetime.
func (l *lifetime) Done() <-chan struct{} {
	switch {
	case l.session == nil:
		return signal.Closed
	case l.connection == nil:
		return l.session.done
	}
	return l.connection.Done()
}

// Bound implements bridge.Lifetime.
func (l *lifetime) Bound(ctx context.Context) (bound context.Context, stop func()) {
	if l.connection == nil {
		return ctx, func() {}
	}
	bound, end := context.WithCancel(ctx)
	detach := context.AfterFunc(l.connection, end)
	return bound, func() { detach(); end() }
}

// Err implements bridge.Lifetime.
func (l *lifetime) Err() error {
	if l.session == nil {
		return ErrZeroValue
	}
	if err := l.session.check(); err != nil || l.connection == nil || l.connection.Err() == nil {
		return err
	}
	if err := l.session.reason(); err != nil {
		return err // the session has just ended, and its reason says more
	}
	return fmt.Errorf("%w, and the client's loss policy is %v", ErrSuspended, l.session.core.cfg.loss)
}

// lifetime returns the lifetime of a hold that begins now.
func (s *session) lifetime() *lifetime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}
