package framework

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/wire"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// The leader counts a session's timeout from the last sign of life that a follower told it of, which followers do twice a tick. A client
// knows that its follower was in touch with the leader when it gets an answer that only the leader can have given. It asks for one each
// sixth of the timeout, and relies on the session for two thirds of the timeout from the last request that was answered so: the
// last sign of life before that was a sixth and half a tick older at most, and a margin is left as long as the timeout is three
// ticks or more.
const (
	safeNumerator, safeDenominator = 2, 3
	beatsPerTimeout                = 6
)

// Session is one session with the servers, and the operations bound to it: they fail with ErrSessionLost once it is over and are
// never repeated in the next one. What is ephemeral belongs to a Session. Get one from Client.Session; safe for concurrent use.
type Session struct{ ops }

// ID is the session's id on the servers, 0 for a zero Session.
func (s *Session) ID() int64 {
	if s == nil || s.bound == nil {
		return 0
	}
	return s.bound.id()
}

// Timeout is the session timeout that the servers agreed to.
func (s *Session) Timeout() time.Duration {
	if s == nil || s.bound == nil {
		return 0
	}
	return s.bound.timeout()
}

// Done is closed when the session is over, for whatever reason. A process that was paused may learn it from Err before.
func (s *Session) Done() <-chan struct{} {
	if s == nil || s.bound == nil {
		return closedChannel
	}
	return s.bound.done
}

// Err is nil while the session lives, and then why it is over: it matches ErrSessionLost or ErrClosed. It compares clocks at the
// moment of asking: once nothing was heard of the leader for two thirds of the timeout, the session is over, whatever the sockets say.
// ErrZeroValue for a zero Session.
func (s *Session) Err() error {
	if s == nil || s.bound == nil {
		return ErrZeroValue
	}
	return s.bound.check()
}

// ValidUntil is how long the session can be relied on from what is known now: it moves forward with every answer of the leader.
func (s *Session) ValidUntil() time.Time {
	if s == nil || s.bound == nil {
		return time.Time{}
	}
	return s.bound.validUntil()
}

// Go runs fn on a goroutine, false if the session is over. fn must return soon after the session is over: it is waited for before the
// session is ended on the servers, where that is still to do, and by Close. It is for recipes.
func (s *Session) Go(fn func()) bool {
	return s != nil && s.bound != nil && s.bound.host(fn)
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// session is a Session without the view from which it is used.
type session struct {
	core     *core
	conn     *wire.Conn
	hub      *hub
	inflight sync.WaitGroup // calls of the driver; added to under mu while err is nil
	tenants  sync.WaitGroup // what relies on the session; likewise
	beating  atomic.Bool    // a sign of life is being waited for

	mu       sync.Mutex
	info     wire.Info
	link     bool          // the driver has a connection with this session
	admitted bool          // the credentials have been accepted, once
	changed  chan struct{} // closed, and replaced, whenever one of these changes
	err      error         // why it is over
	done     chan struct{} // closed when err is set
}

func newSession(c *core) *session {
	return &session{core: c, hub: newHub(), changed: make(chan struct{}), done: make(chan struct{})}
}

func (s *session) id() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.ID
}

func (s *session) timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.Timeout
}

// reason is why the session is over; nil while it is not known to be.
func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// event is called on the driver's goroutines.
func (s *session) event(conn *wire.Conn, e zk.Event) {
	if e.Type != zk.EventSession {
		s.hub.event(e)
		return
	}
	switch e.State {
	case zk.StateHasSession:
		s.linked(conn.Info())
	case zk.StateDisconnected:
		s.unlinked()
	case zk.StateExpired:
		s.end(fmt.Errorf("%w: the servers do not know it any more", ErrSessionLost))
	}
}

func (s *session) linked(info wire.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info, s.link = info, true
	s.touch()
	if s.admitted && s.err == nil {
		s.core.states.set(StateChange{State: Reconnected, Session: s.info.ID, At: time.Now()})
		s.hub.reconnected()
	}
}

func (s *session) unlinked() {
	if s.usable() {
		_ = s.check() // the driver may only have noticed now that nobody answers: then it is too late for Suspended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.link {
		return
	}
	s.link = false
	s.touch()
	if s.admitted && s.err == nil {
		s.core.states.set(StateChange{State: Suspended, Session: s.info.ID, At: time.Now()})
	}
}

// usable reports whether the session has ever been what admit makes it.
func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admitted
}

// admit makes the session usable, unless it is over already: then nobody will ever have heard of it.
func (s *session) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.admitted = true
	s.touch()
	s.core.states.set(StateChange{State: Connected, Session: s.info.ID, At: time.Now()})
	if !s.link {
		s.core.states.set(StateChange{State: Suspended, Session: s.info.ID, At: time.Now()})
	}
	return nil
}

// touch wakes whoever waits for a change. Call it with mu held.
func (s *session) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// end declares the session over. Only the first reason counts.
func (s *session) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.touch()
	if s.err != nil {
		return
	}
	s.err = reason
	close(s.done)
	s.hub.close()
	if s.admitted {
		s.core.states.set(StateChange{State: Lost, Session: s.info.ID, Cause: reason, At: time.Now()})
	}
}

// allowance is for how long the session can be relied on after a request that the leader has answered.
func (s *session) allowance() time.Duration {
	return s.timeout() / safeDenominator * safeNumerator
}

func (s *session) validUntil() time.Time {
	return s.conn.Proven().Time().Add(s.allowance())
}

// check ends the session if its time has run out, and returns why it is over.
func (s *session) check() error {
	if err := s.reason(); err != nil {
		return err
	}
	if silent, allowed := s.conn.Proven().Elapsed(), s.allowance(); silent >= allowed {
		s.end(fmt.Errorf("%w: nothing heard of the leader for %v, the limit is %v",
			ErrSessionLost, silent.Round(time.Millisecond), allowed))
	}
	return s.reason()
}

// ready waits until the session has a connection, for at most the connect timeout.
func (s *session) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return notApplied(ctxerr.Of(ctx))
	}
	if err := s.check(); err != nil {
		return notApplied(err)
	}
	timer := time.NewTimer(s.core.cfg.connectTimeout)
	defer timer.Stop()
	for {
		connected, changed, err := s.connected()
		switch {
		case err != nil:
			return notApplied(err)
		case connected:
			return nil
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

func (s *session) connected() (bool, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link && s.admitted, s.changed, s.err
}

// enter counts a call of the driver; the session's end waits for it.
func (s *session) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return notApplied(s.err)
	}
	s.inflight.Add(1)
	return nil
}

func (s *session) host(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.tenants.Go(fn)
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
func notConnected(conn *wire.Conn) error {
	if conn == nil {
		return ErrNotConnected
	}
	if trouble := conn.Trouble(); trouble != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, trouble)
	}
	return ErrNotConnected
}

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
	beat := time.NewTicker(max(s.timeout()/beatsPerTimeout, time.Millisecond))
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

// beat asks for a sign of life of the leader, unless one is being waited for, or there is no connection to ask on.
func (s *session) beat() {
	if connected, _, _ := s.connected(); !connected || !s.beating.CompareAndSwap(false, true) {
		return
	}
	s.host(func() {
		defer s.beating.Store(false)
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
