package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/hooks"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/internal/signal"
)

// The connection sends a heartbeat each sixth of the session timeout. The client relies on the
// session for two thirds of the timeout from what conn.Conn.Contact returns. The ZooKeeper leader
// counts the timeout from at most a sixth before that. So a margin of a sixth is left.
//
// The two thirds are shortened by the timeout divided by deadlineCut. So they do not end at the
// instant at which an answer is overdue, and the order of the two is fixed.
const deadlineCut = 1000

// Session is one session with the servers, and the operations bound to it. When it has ended they
// fail with ErrSessionLost; they are never repeated in another session. Ephemeral nodes belong to a
// Session. Client.Session returns it. It is safe for concurrent use.
type Session struct{ ops }

// ID returns the id of the session on the servers, or 0 for a zero Session.
func (s *Session) ID() int64 {
	if s.bound == nil {
		return 0
	}
	return s.bound.id()
}

// Timeout returns the shortest session timeout that a server has granted this session. A server grants
// one on each connection. The servers may go back to a shorter one, so a longer one counts in the next
// session only.
func (s *Session) Timeout() time.Duration {
	if s.bound == nil {
		return 0
	}
	return s.bound.timeout()
}

// Done returns a channel that is closed when the session has ended, for any reason. After a pause
// of the process Err may report the end earlier.
func (s *Session) Done() <-chan struct{} {
	if s.bound == nil {
		return signal.Closed
	}
	return s.bound.done
}

// Err returns nil while the session lives. Then it returns the reason of its end, which matches
// ErrSessionLost or ErrClosed. It compares clocks when it is called: the session ends once nothing
// was heard of the ZooKeeper leader for two thirds of the timeout (see WithLossDeadline), whatever
// the state of the connection. It returns ErrZeroValue for a zero Session.
func (s *Session) Err() error {
	if s.bound == nil {
		return ErrZeroValue
	}
	return s.bound.check()
}

// ValidUntil returns the local time at which the session ends unless the ZooKeeper leader answers
// again. Each answer of the leader makes it later, and each suspension of the machine makes it
// earlier. It has no meaning once the session has ended.
func (s *Session) ValidUntil() time.Time {
	if s.bound == nil {
		return time.Time{}
	}
	return s.bound.validUntil()
}

// session is a Session without its view.
type session struct {
	core       *core
	conn       *conn.Conn
	watches    *watchTable
	closed     chan struct{}  // closed when no request of it can be applied any more
	inflight   sync.WaitGroup // pending requests; added to under mu while err is nil
	background sync.WaitGroup // goroutines that rely on the session; likewise
	late       late
	locals     sync.Map            // see bridge.Session.Locals
	random     func(n int64) int64 // of the goroutine of verifyWatches

	mu         sync.Mutex
	info       conn.Info
	link       bool                           // there is a connection, and its server accepted the credentials
	waiting    int                            // how many requests wait for the next connection
	admitted   bool                           // admit has been called
	connCtx    context.Context                // ends with the connection and with the session
	cancelConn func()                         // ends connCtx
	current    *lifetime                      // of a hold that begins now
	onEnd      map[hooks.EndListener]struct{} // notified when the lifetime ends
	changed    chan struct{}                  // closed and replaced when one of these changes
	err        error                          // why the session has ended
	done       chan struct{}                  // closed when err is set
}

func newSession(c *core) *session {
	s := &session{
		core: c, watches: newWatchTable(),
		closed: make(chan struct{}), changed: make(chan struct{}), done: make(chan struct{}),
	}
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

// longestTimeout returns for how long the servers may keep the session.
func (s *session) longestTimeout() time.Duration { return s.conn.Info().Longest }

// reason returns why the session has ended, or nil if it is not known to have ended.
func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// handler has the methods that the connection of a session calls.
type handler struct{ *session }

// Event implements conn.Handler.
func (h handler) Event(e zk.Event, zxid int64) {
	h.watches.event(e)
	h.core.watchers.event(h.session, e, zxid)
}

// Quorum implements conn.Handler. A heartbeat must be a transaction if the client has
// WithQuorumHeartbeat and a hold depends on the session.
func (h handler) Quorum() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.core.cfg.quorum && len(h.onEnd) > 0
}

// Established implements conn.Handler. It ends a session whose timeout is below the minimum of a server: the
// reports of servers may take longer than its holds could last.
func (h handler) Established(info conn.Info) {
	h.mu.Lock()
	before := h.info
	h.info = info
	if before.ID == 0 {
		h.notifyLocked()
	}
	h.mu.Unlock()
	if info.Timeout < before.Timeout {
		h.core.cfg.log.Warn("a server grants a shorter session timeout than before", logfield.Session(info.ID),
			zap.Duration("before", before.Timeout), zap.Duration("granted", info.Timeout))
	}
	if info.Longest > max(h.core.cfg.sessionTimeout, info.Timeout) {
		h.end(fmt.Errorf("%w: its timeout of %v is below the minimum of a server, which is %v", ErrSessionLost,
			info.Timeout, info.Longest))
	}
}

// Connected implements conn.Handler. On a connection after the first, the watches are set again
// before any other request.
func (h handler) Connected() {
	if !h.isAdmitted() {
		h.conn.Admit(h.persistentRequests()...)
		h.linked()
		return
	}
	if h.reason() != nil {
		h.conn.KeepAlive() // the servers must not end the session while something relies on it
		return
	}
	h.watches.reconnecting()
	h.conn.Admit(h.rewatchRequests()...)
	if h.linked() {
		h.late.reconnected(h.session)
	}
}

// linked registers a connection, and reports whether it continues a session that was already in
// use.
func (s *session) linked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLinkLocked(true)
	if s.err != nil || !s.admitted {
		return false
	}
	s.core.states.set(StateChange{State: Reconnected, Session: s.info.ID})
	s.watches.reconnected()
	return true
}

// Disconnected implements conn.Handler.
func (h handler) Disconnected() {
	h.late.disconnected()
	if h.isAdmitted() {
		_ = h.check() // after a long silence the state is Lost, not Suspended
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.link {
		return
	}
	h.setLinkLocked(false)
	if h.admitted && h.err == nil {
		h.core.states.set(StateChange{State: Suspended, Session: h.info.ID})
	}
}

// Ended implements conn.Handler.
func (h handler) Ended(reason error) {
	if errors.Is(reason, zk.ErrAuthFailed) {
		h.end(errtext.Because(ErrSessionLost, ErrAuthFailed))
		return
	}
	h.end(errExpired)
}

// renewLocked begins the lifetime of the holds of a new connection.
func (s *session) renewLocked() {
	s.connCtx, s.cancelConn = context.WithCancel(context.Background())
	s.current = &lifetime{session: s}
	if s.core.cfg.loss == Strict {
		s.current.connection = s.connCtx
	}
}

// setLinkLocked must be called only with a new value.
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

// notifyEndLocked starts a goroutine of the session. It calls all listeners, and then fns and the cleanups
// that the listeners returned. The client waits for their reports, and not the session.
func (s *session) notifyEndLocked(fns []*func()) {
	listeners := s.onEnd
	s.onEnd = nil
	if len(listeners)+len(fns) == 0 {
		return
	}
	s.background.Go(func() {
		var reports []*func()
		for l := range listeners {
			cleanUp, report := l.LifetimeEnded()
			fns, reports = append(fns, &cleanUp), append(reports, &report)
		}
		report := func() { s.core.reports.Go(func() { callAll(reports) }) }
		callAll(append(fns, &report))
	})
}

// isAdmitted reports whether admit was called.
func (s *session) isAdmitted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admitted
}

// admit puts the session into use, unless it has already ended. In that case its end is not
// reported as a change of state.
func (s *session) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.admitted = true
	s.notifyLocked()
	s.core.states.set(StateChange{State: Connected, Session: s.info.ID})
	if !s.link {
		s.core.states.set(StateChange{State: Suspended, Session: s.info.ID})
	}
	return nil
}

// notifyLocked wakes the goroutines that wait for a change.
func (s *session) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// end ends the session. Only the first reason counts.
func (s *session) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notifyLocked()
	if s.err != nil {
		return
	}
	s.err = reason
	s.notifyEndLocked(s.watches.close()) // before close waits for the background goroutines
	close(s.done)
	s.cancelConn()
	if s.admitted {
		s.core.states.set(StateChange{State: Lost, Session: s.info.ID, Cause: reason})
	}
}

// deadlineAfter returns for how long the client relies on a session with the given timeout.
func (s *session) deadlineAfter(timeout time.Duration) time.Duration {
	return time.Duration(float64(timeout)*s.core.cfg.deadline) - timeout/deadlineCut
}

// deadline returns the time from which the deadline of the session is counted, and the time between the
// two. Suspensions count in both.
func (s *session) deadline() (since conn.Stamp, allowed time.Duration) {
	proven, claimed := s.conn.Contact()
	now := conn.Now()
	since, allowed = proven.At, s.deadlineAfter(proven.Timeout)
	for _, c := range claimed {
		part := s.deadlineAfter(c.Timeout)
		if part-now.Since(c.At) < allowed-now.Since(since) {
			since, allowed = c.At, part
		}
	}
	return since, allowed
}

// validUntil returns the deadline. A time.Time does not count suspensions, so those since the time
// from which the deadline is counted make it earlier.
func (s *session) validUntil() time.Time {
	since, allowed := s.deadline()
	return since.Time().Add(allowed - since.SuspendedSince())
}

// check ends the session if its deadline has passed, and returns why the session has ended, or nil.
func (s *session) check() error {
	if err := s.reason(); err != nil {
		return err
	}
	since, allowed := s.deadline()
	if silent := since.Elapsed(); silent >= allowed {
		s.end(fmt.Errorf("%w: nothing heard of the ZooKeeper leader for %v, the limit is %v",
			ErrSessionLost, silent.Round(time.Millisecond), allowed))
	}
	return s.reason()
}
