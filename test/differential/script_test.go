package differential

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// patience is how long a script waits for what must come. What has not come by then is in the transcript as missing.
const patience = 25 * time.Second

// script is one run of a scenario on one server.
type script struct {
	target   target
	scenario string
	masked   bool // do not tell zxids
	sortACLs bool // show ACLs sorted, for lists whose order the server leaves open
	base     int64
	began    time.Time

	mu        sync.Mutex // for scenarios with several goroutines
	lines     []string
	clients   []*client
	sessions  []*session
	passwords []string
	times     map[int64]int64 // when each zxid was, as far as stats have told
}

// session is one that the server told about.
type session struct {
	id       int64
	password []byte
	over     bool // no need to close it
}

func newScript(on target, scenario string) *script {
	return &script{target: on, scenario: scenario, began: time.Now(), times: map[int64]int64{}}
}

// root is the scenario's own node.
func (s *script) root() string { return "/" + s.scenario }

// path is a path below root. An empty name is the root itself.
func (s *script) path(name string) string {
	if name == "" {
		return s.root()
	}
	return s.root() + "/" + name
}

// prepare makes the root and reads the zxid from which the scenario's count, outside of the transcript.
func (s *script) prepare() {
	c := s.hidden()
	defer c.conn.Close()
	c.do(rawzk.Create(s.root(), []byte{}, rawzk.Open(), rawzk.Persistent))
	s.base = c.do(rawzk.CloseSession()).zxid
	c.end()
	s.lines, s.sessions, s.passwords = nil, nil, nil
}

// finish closes what is still open. Nothing of it is in the transcript.
func (s *script) finish() {
	for _, c := range s.clients {
		c.conn.Close()
	}
	for _, open := range s.sessions {
		if !open.over {
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
	conn.ReadAll(patience) // the session is closed when the connection is
}

// hidden is a connected client whose lines are not kept.
func (s *script) hidden() *client {
	c := s.connect("hidden")
	c.hidden = true
	return c
}

// logf adds a line of the scenario's own.
func (s *script) logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, strings.ReplaceAll(line, "\n", "\\n"))
}

// take hands out the lines since the last take, for those who compare while they go on.
func (s *script) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// giveUp ends the scenario with a reason, which will differ from the other server's transcript unless both fail alike.
func (s *script) giveUp(format string, args ...any) {
	s.logf("gave up on "+s.target.name()+": "+format, args...)
	runtime.Goexit()
}

// stop and start are those of the server.
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
