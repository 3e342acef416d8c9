package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/errtext"
)

// ready waits until the session has a connection, for at most the connect timeout.
func (s *session) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return notApplied(ctxerr.Of(ctx))
	}
	if err := s.check(); err != nil {
		return notApplied(err)
	}
	var timer *time.Timer // set when there is a reason to wait
	delay := time.Duration(0)
	for {
		connected, changed, err := s.connected()
		switch {
		case err != nil:
			return notApplied(err)
		case connected:
			time.Sleep(delay)
			return nil
		case timer == nil:
			delay = s.stagger()
			timer = time.NewTimer(s.core.cfg.connectTimeout)
			defer timer.Stop()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return notApplied(fmt.Errorf("%w: %w", ctxerr.Of(ctx), notConnected(s.conn)))
		case <-timer.C:
			return transient(NotApplied, notConnected(s.conn))
		}
	}
}

// connected reports whether there is a connection, and returns a channel that is closed when that
// changes. When a connection ends, pending requests fail before this changes.
func (s *session) connected() (bool, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link && s.admitted && s.conn.Admitted(), s.changed, s.err
}

// stagger returns how long to wait once there is a connection. Waiting requests continue about in
// the order in which they came, and not all at the same instant, so that simulations repeat.
func (s *session) stagger() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	return time.Duration(s.waiting) * time.Microsecond
}

// beginRequest counts a request. The end of the session waits for it.
func (s *session) beginRequest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return notApplied(s.err)
	}
	s.inflight.Add(1)
	return nil
}

// spawn calls fn in a goroutine that the end of the session waits for. It reports false if the
// session has ended.
func (s *session) spawn(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.background.Go(fn)
	return true
}

// explain adds the reason to the error of a request that failed because the session ended.
func (s *session) explain(err error) error {
	reason := s.reason()
	if reason == nil || !IsTransient(err) {
		return err
	}
	return &attemptError{outcome: OutcomeOf(err), err: errtext.Because(reason, err)}
}

// notConnected returns ErrNotConnected, with the last error of each server if there is one.
func notConnected(conn *conn.Conn) error {
	if conn == nil {
		return ErrNotConnected
	}
	if cause := conn.Failures(); cause != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, cause)
	}
	return ErrNotConnected
}
