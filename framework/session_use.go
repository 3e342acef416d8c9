package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// ready waits until the session has a connection, for at most the connect timeout.
func (s *session) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return notApplied(ctxerr.Of(ctx))
	}
	if err := s.check(); err != nil {
		return notApplied(err)
	}
	var timer *time.Timer // once there is something to wait for
	turn := time.Duration(0)
	for {
		connected, changed, err := s.connected()
		switch {
		case err != nil:
			return notApplied(err)
		case connected:
			time.Sleep(turn)
			return nil
		case timer == nil:
			turn = s.stagger()
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

// connected says whether there is a connection, and what is closed when that changes. The requests that were under way fail before the
// session hears of the end of a connection.
func (s *session) connected() (bool, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link && s.admitted && s.conn.Admitted(), s.changed, s.err
}

// takeTurn says how long to hold back once there is a connection: those who wait for it go on about in the order in which they
// came, and not all at the same instant, so that simulations repeat themselves.
func (s *session) stagger() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	return time.Duration(s.waiting) * time.Microsecond
}

// enter counts a request; the session's end waits for it.
func (s *session) beginRequest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return notApplied(s.err)
	}
	s.inflight.Add(1)
	return nil
}

func (s *session) spawn(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.background.Go(fn)
	return true
}

// explain says of a trouble with the connection that it is the session's end, if it is.
func (s *session) explain(err error) error {
	reason := s.reason()
	if reason == nil || !IsTransient(err) {
		return err
	}
	return &attemptError{outcome: OutcomeOf(err), err: fmt.Errorf("%w: %w", reason, err)}
}

// notConnected says that there is no connection, and what went wrong with each server if anything did.
func notConnected(conn *conn.Conn) error {
	if conn == nil {
		return ErrNotConnected
	}
	if trouble := conn.Trouble(); trouble != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, trouble)
	}
	return ErrNotConnected
}
