package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
)

// open waits for a server that admits the session, as long as ctx lasts. A session whose credentials are not accepted while it can be
// relied on is given up.
func (s *session) open(ctx context.Context) error {
	if err := s.await(ctx, func() bool { return s.info.ID != 0 }); err != nil {
		return err
	}
	deadline := time.AfterFunc(s.deadlineAfter(s.timeout()), func() { s.end(fmt.Errorf("%w: it did not become usable in time", ErrSessionLost)) })
	defer deadline.Stop()
	if err := s.await(ctx, func() bool { return s.link }); err != nil {
		return err
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

// checkInterval is how often the deadline is compared with the clocks at least. A machine that was suspended has timers that know nothing of it.
const checkInterval = time.Second

// supervise watches the deadline of the session until it is over. The timer only makes prompt what check finds out.
func (s *session) supervise(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		changed := s.changed // perhaps to a connection with another timeout
		s.mu.Unlock()
		timer.Reset(max(min(time.Until(s.validUntil()), checkInterval), time.Millisecond))
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			s.end(ErrClosed)
		case <-changed:
		case <-timer.C:
			_ = s.check()
		}
	}
}

// retire takes a session that is over for us off the servers, however long they cannot be reached: they may keep it, and its nodes are in the
// way of other clients until they have counted another timeout. Then it waits until nothing of the session runs any more.
func (s *session) close() {
	s.background.Wait() // what relies on the session must know of its end before the servers do
	ctx, cancel := s.closeContext()
	defer cancel()
	if !s.conn.EndSession(ctx) {
		s.conn.Kill() // requests would wait for answers
	}
	s.inflight.Wait()
	s.conn.Close()
	s.core.forget(s.conn)
	close(s.closed)
	s.late.ended(s)
	if id := s.id(); id != 0 {
		s.core.cfg.log.Info("session retired", logfield.Session(id))
	}
}

// whileWorthwhile ends when it is in vain to try to end the session on the servers. Once another session has been made the servers have been
// there for a timeout a timeout later, and have ended this one themselves. When the client is closed it ends a connect timeout later, or at
// once if the session has been over for longer than its timeout.
func (s *session) closeContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.core.grace)
	over := conn.Now()
	stop := context.AfterFunc(s.core.ctx, func() {
		if over.Elapsed() >= s.timeout() {
			cancel()
		}
	})
	timeout := s.timeout()
	forget := s.core.whenReplaced(func() { time.AfterFunc(timeout, cancel) })
	return ctx, func() { forget(); stop(); cancel() }
}
