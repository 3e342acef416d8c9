package framework

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/internal/ctxerr"
)

// open connects and presents the credentials. It waits for a server as long as ctx lasts; from then on a session that does not become
// usable while it can be relied on is given up.
func (s *session) open(ctx context.Context) error {
	if err := s.await(ctx, func() bool { return s.link }); err != nil {
		return err
	}
	deadline := time.AfterFunc(s.allowance(), func() { s.end(fmt.Errorf("%w: it did not become usable in time", ErrSessionLost)) })
	defer deadline.Stop()
	for _, a := range s.core.cfg.auth {
		if err := s.present(ctx, a); err != nil {
			return err
		}
	}
	return s.admit()
}

// await waits until cond, which is called with mu held, or the session's end, or that of ctx.
func (s *session) await(ctx context.Context, cond func() bool) error {
	for {
		s.mu.Lock()
		met, err, changed := cond(), s.err, s.changed
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case met:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// present gives the server a credential. From then on the driver presents it at each reconnect.
func (s *session) present(ctx context.Context, a credential) error {
	for {
		if err := s.await(ctx, func() bool { return s.link }); err != nil {
			return err
		}
		if err := s.enter(); err != nil {
			return err
		}
		result := make(chan error, 1)
		go func() {
			defer s.inflight.Done()
			result <- s.conn.Driver().AddAuth(a.scheme, a.value)
		}()
		select {
		case err := <-result:
			if err == nil {
				return nil
			}
			if err = driverError(err); !IsTransient(err) {
				return err
			}
			linger(100*time.Millisecond, ctx.Done(), s.done) // the server did not want it just now
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		case <-s.done:
			return s.reason()
		}
	}
}

// supervise keeps the session going and watches its deadline until it is over. The timer only makes prompt what check finds out.
func (s *session) supervise(ctx context.Context) {
	timer := time.NewTimer(time.Until(s.validUntil()))
	defer timer.Stop()
	beat := time.NewTicker(s.beatInterval())
	defer beat.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			s.end(ErrClosed)
		case <-beat.C:
			s.beat()
		case <-timer.C:
			if s.check() == nil {
				timer.Reset(max(time.Until(s.validUntil()), time.Millisecond))
			}
		}
	}
}

// beat asks for a sign of life of the leader, also while another is being waited for, but not while there is no connection to ask on.
func (s *session) beat() {
	if connected, _, _ := s.connected(); !connected {
		return
	}
	s.host(func() {
		_ = s.sync(s.core.ctx, "/") // whatever comes of it, the shim sees the answer
	})
}

// retire takes a session that is over for us off the servers, so that its nodes are in nobody's way: the servers may still keep it. Then
// it waits until nothing of the session runs any more.
func (s *session) retire() {
	s.tenants.Wait()                                              // whoever relies on the session must know of its end before the servers do
	ctx, cancel := context.WithTimeout(s.core.grace, s.timeout()) // then the servers have ended it themselves
	defer cancel()
	ended := false
	for tried := -1; !ended; {
		link, ok := s.awaitLink(ctx, tried)
		if !ok {
			s.conn.Kill() // requests would wait for answers
			break
		}
		tried, ended = link, s.conn.EndSession(ctx)
	}
	s.inflight.Wait()
	s.conn.Close()
	s.core.disconnected(s.conn)
	close(s.retired)
	if id := s.id(); id != 0 {
		s.core.cfg.log.Info("session retired", zap.Int64("session", id))
	}
}

// awaitLink waits for a connection later than the given one, and returns its number; false if there will be none in time.
func (s *session) awaitLink(ctx context.Context, after int) (number int, ok bool) {
	for {
		s.mu.Lock()
		link, number, changed := s.link, s.links, s.changed
		s.mu.Unlock()
		switch {
		case s.conn.Over() || ctx.Err() != nil:
			return 0, false
		case link && number > after:
			return number, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
