package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework/internal/wire"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
)

// open connects and presents the credentials. It waits for a server as long as ctx lasts; from then on a session that does not become
// usable while it can be relied on is given up.
func (s *session) open(ctx context.Context) error {
	if err := s.await(ctx, func() bool { return s.link }); err != nil {
		return err
	}
	deadline := time.AfterFunc(s.allowance(s.conn.Info().Timeout), func() { s.end(fmt.Errorf("%w: it did not become usable in time", ErrSessionLost)) })
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

// glance is how often the deadline is compared with the clocks at least. A machine that was suspended has timers that know nothing of it.
const glance = time.Second

// supervise keeps the session going and watches its deadline until it is over. The timer only makes prompt what check finds out.
func (s *session) supervise(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		changed := s.changed // perhaps to a connection with another timeout
		s.mu.Unlock()
		timer.Reset(s.beat())
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

// beat makes a heartbeat if it is time for one, also while the answer to another is being waited for, and returns how long there is
// nothing to do.
func (s *session) beat() time.Duration {
	rest := min(time.Until(s.validUntil()), glance)
	if connected, _, _ := s.connected(); connected {
		due := s.untilBeat()
		if due <= 0 {
			s.conn.Ask(s.heartbeat(s.conn), func(wire.Reply) {}) // whatever comes of it, the shim sees the answer
			due = s.beatInterval()
		}
		rest = min(rest, due)
	}
	return max(rest, time.Millisecond)
}

// untilBeat is the time until the next heartbeat.
func (s *session) untilBeat() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beatInterval() - s.beaten.Elapsed()
}

// beatInterval is the time between two heartbeats.
func (s *session) beatInterval() time.Duration {
	timeout := s.conn.Info().Timeout
	interval := timeout/beatsPerTimeout - timeout/offBeat
	if !s.conn.Even() {
		interval /= 4
	}
	return max(interval, time.Millisecond)
}

// heartbeat is a request that only the leader can answer: a sync; or a transaction that changes nothing, if the connection does not count
// without it, or the client wants that and something depends on the session. What is read on the connection behind the answer is as new
// as the answer.
func (s *session) heartbeat(conn *wire.Conn) wire.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beaten = wire.Now()
	quorum := s.core.cfg.quorum && len(s.standing) > 0
	conn.RelyOnQuorum(quorum)
	if quorum || conn.Claimed() {
		return wire.Check("/")
	}
	return wire.Sync("/")
}

// retire takes a session that is over for us off the servers, however long they cannot be reached: they may keep it, and its nodes are in the
// way of other clients until they have counted another timeout. Then it waits until nothing of the session runs any more.
func (s *session) retire() {
	s.tenants.Wait() // what relies on the session must know of its end before the servers do
	ctx, cancel := s.whileWorthwhile()
	defer cancel()
	for tried, ended := -1, false; !ended; {
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
	s.late.ended(s)
	if id := s.id(); id != 0 {
		s.core.cfg.log.Info("session retired", logfield.Session(id))
	}
}

// whileWorthwhile ends when it is in vain to try to end the session on the servers. Once another session has been made the servers have been
// there for a timeout a timeout later, and have ended this one themselves. When the client is closed it ends a connect timeout later, or at
// once if the session has been over for longer than its timeout.
func (s *session) whileWorthwhile() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.core.grace)
	over := wire.Now()
	stop := context.AfterFunc(s.core.ctx, func() {
		if over.Elapsed() >= s.timeout() {
			cancel()
		}
	})
	timeout := s.timeout()
	forget := s.core.whenReplaced(func() { time.AfterFunc(timeout, cancel) })
	return ctx, func() { forget(); stop(); cancel() }
}

// awaitLink waits for a connection of the session later than the given one, and returns its number; false if there will be none, or none in time.
func (s *session) awaitLink(ctx context.Context, after int) (number int, ok bool) {
	for {
		s.mu.Lock()
		link, number, changed, none := s.link, s.links, s.changed, s.info.ID == 0
		s.mu.Unlock()
		switch {
		case none || s.conn.Over() || ctx.Err() != nil:
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
