package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/hooks"
)

// The connection sends a heartbeat each sixth of the session timeout, and the client relies on the session for two thirds of the timeout
// from what conn.Conn.Contact says. The ZooKeeper leader counts the timeout from a sixth before that or later, which leaves a margin of a
// sixth.
//
// The two thirds are cut short by a thousandth of the timeout, so that they do not end at the moment at which an answer is overdue, and it is
// not up to chance what comes first.
const deadlineCut = 1000

// Session is one session with the servers, and the operations bound to it. When it has ended they
// fail with ErrSessionLost; they are never repeated in another session. Ephemeral nodes belong to a
// Session. Client.Session returns it. It is safe for concurrent use.
type Session struct{ ops }

// ID returns the id of the session on the servers, or 0 for a zero Session.
func (s *Session) ID() int64 {
	if s == nil || s.bound == nil {
		return 0
	}
	return s.bound.id()
}

// Timeout returns the session timeout that the servers granted.
func (s *Session) Timeout() time.Duration {
	if s == nil || s.bound == nil {
		return 0
	}
	return s.bound.timeout()
}

// Done returns a channel that is closed when the session has ended, for any reason. After a pause
// of the process Err may report the end earlier.
func (s *Session) Done() <-chan struct{} {
	if s == nil || s.bound == nil {
		return closedChannel
	}
	return s.bound.done
}

// Err returns nil while the session lives. Then it returns the reason of its end, which matches
// ErrSessionLost or ErrClosed. It compares clocks when it is called: the session ends once nothing
// was heard of the ZooKeeper leader for two thirds of the timeout (see WithLossDeadline), whatever
// the state of the connection. It returns ErrZeroValue for a zero Session.
func (s *Session) Err() error {
	if s == nil || s.bound == nil {
		return ErrZeroValue
	}
	return s.bound.check()
}

// ValidUntil returns the local time at which the session ends unless the ZooKeeper leader answers
// again. Each answer of the leader makes it later. It has no meaning once the session has ended.
func (s *Session) ValidUntil() time.Time {
	if s == nil || s.bound == nil {
		return time.Time{}
	}
	return s.bound.validUntil()
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// session is a Session without the view from which it is used.
type session struct {
	core       *core
	conn       *conn.Conn
	watches    *watchTable
	closed     chan struct{}  // closed when nothing more comes of it, on the servers either
	inflight   sync.WaitGroup // requests; added to under mu while err is nil
	background sync.WaitGroup // what relies on the session; likewise
	late       late
	random     func(n int64) int64 // of the goroutine that looks after the watches

	mu         sync.Mutex
	info       conn.Info
	link       bool                           // there is a connection, whose server has accepted the credentials
	waiting    int                            // how many wait for the next one
	admitted   bool                           // admit has been called
	connCtx    context.Context                // has ended while there is no connection, or the session has ended
	cancelConn func()                         // ends connCtx
	current    *lifetime                      // of a hold that begins now
	onEnd      map[hooks.EndListener]struct{} // to be told that the lifetime has ended
	changed    chan struct{}                  // closed, and replaced, whenever one of these changes
	err        error                          // why it is over
	done       chan struct{}                  // closed when err is set
}

func newSession(c *core) *session {
	s := &session{core: c, watches: newWatchTable(), closed: make(chan struct{}), changed: make(chan struct{}), done: make(chan struct{})}
	s.renewLocked()
	s.cancelConn()
	return s
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

// handler is what the connection of a session calls.
type handler struct{ *session }

// Event implements conn.Handler.
func (h handler) Event(e zk.Event) { h.watches.event(e) }

// Quorum implements conn.Handler: it takes a transaction to prove that the session can be relied on, if the client wants that and something
// depends on the session.
func (h handler) Quorum() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.core.cfg.quorum && len(h.onEnd) > 0
}

// Established implements conn.Handler.
func (h handler) Established(info conn.Info) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.info.ID == 0 {
		h.info = info
		h.notifyLocked()
	}
}

// Connected implements conn.Handler. On a connection that is not the first the watches are set again before anything else is asked.
func (h handler) Connected() {
	if !h.isAdmitted() {
		h.conn.Admit()
		h.linked()
		return
	}
	if h.reason() != nil {
		return // nothing is asked any more but to end the session
	}
	h.watches.reconnecting()
	h.conn.Admit(h.rewatchRequests()...)
	if h.linked() {
		h.late.reconnected(h.session)
	}
}

// linked notes that there is a connection, and reports whether it goes on with a session that others know of.
func (s *session) linked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = s.conn.Info()
	s.setLinkLocked(true)
	if s.err != nil || !s.admitted {
		return false
	}
	s.core.states.set(StateChange{State: Reconnected, Session: s.info.ID, At: time.Now()})
	s.watches.reconnected()
	return true
}

// Disconnected implements conn.Handler.
func (h handler) Disconnected() {
	if h.isAdmitted() {
		_ = h.check() // the server may have been silent for long: then it is too late for Suspended
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.link {
		return
	}
	h.setLinkLocked(false)
	if h.admitted && h.err == nil {
		h.core.states.set(StateChange{State: Suspended, Session: h.info.ID, At: time.Now()})
	}
}

// Ended implements conn.Handler.
func (h handler) Ended(reason error) {
	if errors.Is(reason, zk.ErrAuthFailed) {
		h.end(fmt.Errorf("%w: %w", ErrSessionLost, ErrAuthFailed))
		return
	}
	h.end(errExpired)
}

// renewLocked begins the lifetime of the holds of another connection.
func (s *session) renewLocked() {
	s.connCtx, s.cancelConn = context.WithCancel(context.Background())
	s.current = &lifetime{session: s}
	if s.core.cfg.loss == Strict {
		s.current.connection = s.connCtx
	}
}

// setLink is called with mu held, and only when it changes something.
func (s *session) setLinkLocked(link bool) {
	s.link, s.waiting = link, 0
	if link && s.err == nil {
		s.renewLocked()
	} else {
		s.cancelConn()
		if s.core.cfg.loss == Strict {
			s.notifyEndLocked(nil)
		}
	}
	s.notifyLocked()
}

// tell calls all listeners, then fns and what the listeners returned, in a goroutine of the session. It is called with mu held.
func (s *session) notifyEndLocked(fns []func()) {
	told := s.onEnd
	s.onEnd = nil
	if len(told)+len(fns) == 0 {
		return
	}
	s.background.Go(func() {
		for d := range told {
			if then := d.LifetimeEnded(); then != nil {
				fns = append(fns, then)
			}
		}
		callAll(fns)
	})
}

// usable reports whether admit has been called.
func (s *session) isAdmitted() bool {
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
	s.notifyLocked()
	s.core.states.set(StateChange{State: Connected, Session: s.info.ID, At: time.Now()})
	if !s.link {
		s.core.states.set(StateChange{State: Suspended, Session: s.info.ID, At: time.Now()})
	}
	return nil
}

// touch wakes whoever waits for a change. Call it with mu held.
func (s *session) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// end declares the session over. Only the first reason counts.
func (s *session) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notifyLocked()
	if s.err != nil {
		return
	}
	s.err = reason
	s.notifyEndLocked(s.watches.close()) // before anybody waits for the tenants
	close(s.done)
	s.cancelConn()
	if s.admitted {
		s.core.states.set(StateChange{State: Lost, Session: s.info.ID, Cause: reason, At: time.Now()})
	}
}

// allowance is for how long a session with the given timeout can be relied on.
func (s *session) deadlineAfter(timeout time.Duration) time.Duration {
	return time.Duration(float64(timeout)*s.core.cfg.deadline) - timeout/deadlineCut
}

// deadline is until when the session can be relied on, and since when and for how long that is.
func (s *session) deadline() (until time.Time, since conn.Stamp, allowed time.Duration) {
	proven, claimed := s.conn.Contact()
	since, allowed = proven.At, s.deadlineAfter(proven.Timeout)
	until = since.Time().Add(allowed)
	if claimed.At.IsZero() {
		return until, since, allowed
	}
	if other := claimed.At.Time().Add(s.deadlineAfter(claimed.Timeout)); other.Before(until) {
		return other, claimed.At, s.deadlineAfter(claimed.Timeout)
	}
	return until, since, allowed
}

func (s *session) validUntil() time.Time {
	until, _, _ := s.deadline()
	return until
}

// check ends the session if its time has run out, and returns why it is over.
func (s *session) check() error {
	if err := s.reason(); err != nil {
		return err
	}
	_, since, allowed := s.deadline()
	if silent := since.Elapsed(); silent >= allowed {
		s.end(fmt.Errorf("%w: nothing heard of the ZooKeeper leader for %v, the limit is %v",
			ErrSessionLost, silent.Round(time.Millisecond), allowed))
	}
	return s.reason()
}
