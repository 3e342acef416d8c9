package zktest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/zktest/internal/gate"
	"github.com/docent-zk/docent/zktest/internal/memnet"
	"github.com/docent-zk/docent/zktest/internal/rule"
)

// TB is what [Start] needs of a test. *testing.T, *testing.B and *testing.F have it.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Server is a ZooKeeper server in this process. Its methods may be called from any goroutine.
type Server struct {
	cfg     config
	paused  *gate.Gate // closed while the server is paused
	started time.Time  // of the clock; all deadlines are whole ticks after it

	switching sync.Mutex // held by those who start and stop

	rules rule.Set[Action]

	mu        sync.Mutex // guards all below, and what says so elsewhere; nothing is awaited under it
	clock     clock
	life      *lifetime // nil while stopped
	closed    bool
	clients   []*Client
	leader    *replica
	followers []*Follower
	state
	conns    int // that there have been
	readOnly bool
	reaping  bool // there is an alarm for it
	trace    trace
	joined   chan struct{} // closed and replaced when a client has connected
}

// state is what a stopped server keeps.
type state struct {
	zxid        int64 // of the last transaction
	sessions    map[int64]*session
	firstID     int64
	nextSession int64
}

// lifetime is what a running server has.
type lifetime struct {
	done     chan struct{}  // closed when the server stops
	running  sync.WaitGroup // everything that must have ended before it is stopped
	conns    map[*conn]struct{}
	since    time.Time
	counters map[*replica]*counters // for the four-letter words
}

// Start returns a running server that is closed when the test ends; if the test failed, the end of the server's [Trace] goes to its log.
// If the server cannot be started the test fails at once.
func Start(t TB, opts ...Option) *Server {
	t.Helper()
	s, err := New(opts...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil // for a TB whose Fatalf returns
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Logf("what happened on the server, the last %d entries:\n%v%s", traceTail, s.Trace().Tail(traceTail), s.idleRules())
		}
	})
	return s
}

// traceTail is how much of the trace a failed test shows.
const traceTail = 50

// idleRules are the rules that never fired: often the reason of a failure, or of a success that means nothing.
func (s *Server) idleRules() string {
	text := ""
	for _, r := range s.rules.All() {
		if r.Hits() == 0 {
			text += fmt.Sprintf("this rule has never fired: %v\n", &Rule{r})
		}
	}
	return text
}

// New returns a running server for programs, and for TestMain. It runs until [Server.Close]. A server made in a bubble of testing/synctest
// is for the clients of that bubble, and one made outside of any is for none.
func New(opts ...Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, paused: gate.New(), rules: rule.Set[Action]{Package: "zktest"}, joined: make(chan struct{})}
	s.leader = newReplica(s, 1, s.newTree())
	s.clock.wake, s.clock.seeded = make(chan struct{}, 1), cfg.seed != nil
	s.started = s.clock.now()
	s.trace.limit, s.trace.began = cfg.traceLimit, s.started
	s.forget()
	s.Client("")
	if err := s.Start(); err != nil {
		return nil, err
	}
	s.trace.ring = nil // what happens begins with the first client
	if cfg.listen != "" {
		if err := s.listen(cfg.listen); err != nil {
			s.Close()
			return nil, fmt.Errorf("zktest: %w", err)
		}
	}
	return s, nil
}

// forget makes the state that of a new server. It needs s.mu, but for New.
func (s *Server) forget() {
	next := s.nextSession // no id is given twice, whatever the clock says
	s.state = state{sessions: map[int64]*session{}}
	s.leader.reset(s.newTree())
	for _, f := range s.followers {
		f.replica.reset(s.newTree())
	}
	s.firstID = max(next, serverID<<56|s.clock.now().UnixMilli()<<24>>8&(1<<56-1))
	s.nextSession = s.firstID
}

// Start starts a server that was stopped, with the nodes and sessions that it had and on the port that it had. Each session has its whole
// timeout again; watches and credentials belong to connections and are gone, as are requests that were delayed or held. Followers that
// are not frozen know everything. A pause and being read-only stay. Starting a server that runs does nothing.
func (s *Server) Start() error {
	s.switching.Lock()
	defer s.switching.Unlock()
	l := &lifetime{done: make(chan struct{}), conns: map[*conn]struct{}{}, counters: map[*replica]*counters{}}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("zktest: start: the server was closed")
	}
	if s.life != nil {
		s.mu.Unlock()
		return nil
	}
	l.since = s.clock.now()
	s.life = l
	s.tell("started")
	s.setAlarms()
	doors := s.doors()
	l.running.Go(func() { s.keepTime(l) })
	s.mu.Unlock()
	for _, d := range doors {
		if err := d.open(); err != nil {
			s.stop()
			return fmt.Errorf("zktest: start: %w", err)
		}
	}
	return nil
}

// setAlarms begins to wait for all that comes with time. It needs s.mu.
func (s *Server) setAlarms() {
	s.clock.alarms, s.reaping = nil, false
	for _, sess := range s.sessions {
		sess.alarm = time.Time{}
	}
	s.hearAll()
	for _, f := range s.followers {
		f.replica.catchUp()
	}
	s.reapLater()
}

// hearAll gives all sessions their whole timeout. It needs s.mu.
func (s *Server) hearAll() {
	now := s.clock.now()
	for _, id := range s.sessionIDs() {
		s.sessions[id].heard = now
		s.watchOver(s.sessions[id])
	}
}

// Stop ends all connections and the listening sockets, and waits for all that the server runs. Its state stays: [Server.Start]
// goes on with it, and until then the methods that look at it and change it work. Clients see the connections end and new ones refused,
// whatever [Client.Cut] and the like say.
func (s *Server) Stop() {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.stop()
}

// stop needs s.switching.
func (s *Server) stop() {
	s.mu.Lock()
	l := s.life
	if l == nil {
		s.mu.Unlock()
		return
	}
	s.tell("stopped")
	s.life, s.clock.alarms = nil, nil // no time passes while a server is stopped
	for _, c := range sortedConns(l.conns) {
		c.end(dropAll)
	}
	doors := s.doors()
	close(l.done)
	s.mu.Unlock()
	for _, d := range doors {
		d.close()
	}
	l.running.Wait()
}

// Close stops the server for good. Its state can still be looked at and changed, to no effect on anybody.
func (s *Server) Close() {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, d := range s.doors() {
		d.remove()
	}
}

// Restart is Stop and Start.
func (s *Server) Restart() error {
	s.Stop()
	return s.Start()
}

// Wipe makes a stopped server and its followers forget everything, sessions and transaction ids included, as if their disks had been
// emptied. Clients that have seen more than they know are not let in. Wiping a server that runs is an error.
func (s *Server) Wipe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil {
		return fmt.Errorf("zktest: wipe: the server is running")
	}
	s.tell("wiped")
	s.forget()
	return nil
}

// ResumeOrder says what a server does first when it goes on after a pause.
type ResumeOrder int

// The orders. With the real server it is a matter of luck.
const (
	ExpireFirst   ResumeOrder = iota // sessions whose time has passed expire, even if they have sent something
	RequestsFirst                    // sessions with a connection have been heard of
)

// Pause makes the server do nothing, as if its process had been stopped: connections stay and are accepted, and what clients send waits.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("paused")
	s.paused.Set(false)
}

// Resume lets a paused server go on.
func (s *Server) Resume(first ResumeOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("resumed")
	now := s.clock.now()
	if first == RequestsFirst {
		for _, sess := range s.sessions {
			if sess.conn != nil {
				sess.heard = now
			}
		}
	}
	s.clock.run(now)
	s.paused.Set(true)
	select {
	case s.clock.wake <- struct{}{}:
	default:
	}
}

// SetReadOnly on makes the server one that has lost its quorum: it ends all connections of clients that do not know of such servers, lets
// no more of them in, and refuses to change nodes; no session expires. Off gives all sessions their whole timeout again.
func (s *Server) SetReadOnly(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(fmt.Sprintf("read-only: %v", on))
	s.readOnly = on
	if !on {
		s.hearAll()
	}
	if !on || s.life == nil {
		return
	}
	for _, c := range sortedConns(s.life.conns) {
		if !c.readOnly {
			c.end(flushAll)
		}
	}
}

// doors are all ways in from outside of this process. It needs s.mu.
func (s *Server) doors() []*door {
	var all []*door
	for _, c := range s.clients {
		all = append(all, c.doors...)
	}
	return all
}

func sortedConns(set map[*conn]struct{}) []*conn {
	all := make([]*conn, 0, len(set))
	for c := range set {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *conn) int { return a.number - b.number })
	return all
}

// memory is a connection within this process.
type memory = memnet.Conn
