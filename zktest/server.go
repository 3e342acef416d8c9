package zktest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/gate"
	"github.com/docent-zk/docent/zktest/internal/memnet"
	"github.com/docent-zk/docent/zktest/internal/tree"
)

// TB is the part of a test that [Start] needs. *testing.T, *testing.B and *testing.F implement it.
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
	started time.Time  // by clock; all deadlines are whole ticks later

	switching turn // held while the server starts or stops

	rules fault.Rules

	mu        sync.Mutex // guards everything below and what is marked elsewhere; no code waits while holding it
	clock     clock
	life      *lifetime // nil while stopped
	closed    bool
	clients   []*Client
	leader    *replica  // or the last one, while there is none
	led       time.Time // when it began to lead
	first     *Follower
	followers []*Follower // without first
	replicas  []*replica  // all, by number
	cuts      map[way]bool
	proposals []func() // wait for the leader to have a quorum
	electing  bool     // an alarm for an election is set

	silentFollows bool // the silent voter follows the leader, see voters
	silentOut     bool // the silent voter does not reach the leader now
	silentOutages int
	state
	conns    int // number of connections so far
	readOnly bool
	reaping  bool // an alarm for reap is set
	trace    trace
	joined   chan struct{} // closed and replaced when a client has connected
	onCommit func(zxid int64, changes []Change)
}

// state is what a stopped server keeps.
type state struct {
	zxid        int64      // of the last transaction
	tree        *tree.Tree // after that transaction
	epoch       int64      // number of elections so far
	sessions    map[int64]*session
	firstID     int64
	nextSession int64
}

// lifetime is the state of a running server, from start to stop.
type lifetime struct {
	done     chan struct{}  // closed when the server stops
	running  sync.WaitGroup // all goroutines that Stop waits for
	conns    map[*conn]struct{}
	since    time.Time
	counters map[*replica]*counters // for the four-letter words
}

// Start returns a running server that is closed when the test ends. If the test has failed, the end
// of the server's [Trace] is logged. If the server cannot be started, the test fails at once.
func Start(t TB, opts ...Option) *Server {
	t.Helper()
	s, err := New(opts...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil // in case Fatalf of a TB returns
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Logf("what happened on the server, the last %d entries:\n%v%s",
				traceTail, s.Trace().Tail(traceTail), s.idleRules())
		}
	})
	return s
}

// traceTail is the number of trace entries that a failed test shows.
const traceTail = 50

// idleRules lists the rules that never fired. They often explain a failure, or a success without
// meaning.
func (s *Server) idleRules() string {
	text := ""
	for _, r := range s.rules.All() {
		if r.Hits() == 0 {
			text += fmt.Sprintf("this rule has never fired: %v\n", r)
		}
	}
	return text
}

// New returns a running server for programs and for TestMain. It runs until [Server.Close]. A
// server made in a bubble of testing/synctest serves only clients in that bubble. A server made
// outside serves no clients in bubbles.
func New(opts ...Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, paused: gate.New(), joined: make(chan struct{}), switching: newTurn()}
	s.leader = newReplica(s, 1, s.newTree())
	s.first, s.replicas, s.cuts = &Follower{s, s.leader}, []*replica{s.leader}, map[way]bool{}
	s.clock.wake, s.clock.seeded = make(chan struct{}, 1), cfg.seed != nil
	s.started = s.clock.now()
	s.trace.limit, s.trace.began = cfg.traceLimit, s.started
	s.forget()
	s.Client("")
	if err := s.Start(); err != nil {
		return nil, err
	}
	s.trace.ring = nil // the trace begins with the first client
	if cfg.listen != "" {
		if err := s.listen(cfg.listen); err != nil {
			s.Close()
			return nil, fmt.Errorf("zktest: %w", err)
		}
	}
	return s, nil
}

// forget resets the state to that of a new server. The caller holds s.mu, except New.
func (s *Server) forget() {
	next := s.nextSession // session ids are unique, whatever the clock says
	s.state = state{sessions: map[int64]*session{}}
	for _, r := range s.replicas {
		r.reset(s.newTree())
	}
	s.tree = s.leader.tree
	s.leader.trail()
	s.firstID = max(next, serverID<<56|s.clock.now().UnixMilli()<<24>>8&(1<<56-1))
	s.nextSession = s.firstID
}

// doors returns the listening sockets of all clients. The caller holds s.mu.
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
