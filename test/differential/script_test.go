package differential

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// patience is how long a script waits for what must arrive. What has not arrived by then is in the
// transcript as missing.
const patience = 25 * time.Second

// script is one run of a scenario on one server.
type script struct {
	target   target
	scenario string
	masked   bool // zxids are not shown
	sortACLs bool // ACLs are shown sorted, for lists without a defined order
	base     int64
	began    time.Time

	mu        sync.Mutex // for scenarios with several goroutines
	lines     []string
	clients   []*client
	sessions  []*session
	passwords []string
	times     map[int64]int64 // the time of each zxid in a Stat
	over      chan struct{}   // closed by finish
	measuring sync.WaitGroup
}

// session is a session in an answer of the server.
type session struct {
	id       int64
	password []byte
	closed   bool // need not be closed
}

func newScript(on target, scenario string) *script {
	return &script{
		target: on, scenario: scenario, began: time.Now(), times: map[int64]int64{}, over: make(chan struct{}),
	}
}

// root returns the scenario's own node.
func (s *script) root() string { return "/" + s.scenario }

// path returns a path below root. An empty name is the root itself.
func (s *script) path(name string) string {
	if name == "" {
		return s.root()
	}
	return s.root() + "/" + name
}

// prepare creates the root and reads the zxid from which those of the scenario count. It is not in
// the transcript.
func (s *script) prepare() {
	c := s.hidden()
	defer c.conn.Close()
	c.do(rawzk.Create(s.root(), []byte{}, rawzk.Open(), rawzk.Persistent))
	s.base = c.do(rawzk.CloseSession()).zxid
	c.end()
	s.lines, s.sessions, s.passwords = nil, nil, nil
}

// finish closes all connections and sessions that are still open. It is not in the transcript.
func (s *script) finish() {
	close(s.over)
	s.measuring.Wait()
	for _, c := range s.clients {
		c.conn.Close()
	}
	for _, open := range s.sessions {
		if !open.closed {
			s.closeBehind(open)
		}
	}
}

func (s *script) closeBehind(open *session) {
	conn, err := s.target.dial()
	if err != nil {
		return
	}
	defer conn.Close()
	hello := rawzk.Connect{Timeout: 10000, Session: open.id, Password: open.password}
	if conn.SendFrame(hello.Encode()) != nil || conn.Send(1, rawzk.CloseSession()) != nil {
		return
	}
	conn.ReadAll(patience) // the session is closed once the connection has ended
}

// hidden returns a connected client whose lines are not kept.
func (s *script) hidden() *client {
	c := s.open("hidden")
	c.hidden = true
	c.hello(newSession(time.Minute))
	return c
}

// logf adds a line of the scenario's own.
func (s *script) logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, strings.ReplaceAll(line, "\n", "\\n"))
}

// take returns the lines since the last take, for tests that compare step by step.
func (s *script) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// giveUp ends the scenario with a reason, which differs from the other server's transcript unless
// both fail in the same way.
func (s *script) giveUp(format string, args ...any) {
	s.logf("gave up on "+s.target.name()+": "+format, args...)
	runtime.Goexit()
}

// stop and start stop and start the server.
func (s *script) stop() {
	if err := s.target.stop(); err != nil {
		s.giveUp("stop: %v", err)
	}
	s.logf("server stopped")
}

func (s *script) start() {
	if err := s.target.start(); err != nil {
		s.giveUp("start: %v", err)
	}
	s.logf("server started")
}
