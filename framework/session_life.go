package framework

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/internal/ctxerr"
)

// open connects and presents the credentials. It waits for a server as long as ctx lasts.
func (s *session) open(ctx context.Context) error {
	if err := s.await(ctx, func() bool { return s.link }); err != nil {
		return err
	}
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

// retire takes a session that is over for us off the servers, so that its nodes are in nobody's way: with patience until there
// is a connection, for the servers may still keep it. Then it waits until nothing of the session runs any more.
func (s *session) retire() {
	s.tenants.Wait() // whoever relies on the session must know of its end before the servers do
	s.awaitLink()
	s.drain()
	s.conn.Close()
	s.core.cfg.log.Info("session retired", zap.Int64("session", s.id()))
}

// awaitLink waits until there is a connection, or never will be, or no longer matters: after its timeout the servers have ended the
// session themselves, and a client that is being closed is held up for one connect timeout at most.
func (s *session) awaitLink() {
	enough := time.NewTimer(s.timeout())
	defer enough.Stop()
	closing := s.core.ctx.Done()
	for {
		s.mu.Lock()
		link, changed := s.link, s.changed
		s.mu.Unlock()
		if link || s.conn.Over() {
			return
		}
		select {
		case <-changed:
		case <-closing:
			closing = nil
			enough.Reset(min(s.core.cfg.connectTimeout, s.timeout()))
		case <-enough.C:
			return
		}
	}
}

// drain waits for the calls of the driver. The driver must not be closed while it decodes an answer, for it races with itself
// then; calls that do not come back by themselves are brought back by killing the connection.
func (s *session) drain() {
	landed := make(chan struct{})
	go func() {
		s.inflight.Wait()
		close(landed)
	}()
	timer := time.NewTimer(drainPatience)
	defer timer.Stop()
	select {
	case <-landed:
	case <-timer.C:
		s.conn.Kill()
		<-landed
	}
}

const drainPatience = time.Second
