package zktest

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Entry is one thing that happened: a request, an event that was sent, or the beginning or end of a connection or session.
type Entry struct {
	Zxid    int64         // the last transaction, that of the request included
	At      time.Duration // since the server was made
	Client  string        // its name, "-" for those without; empty for what concerns all
	Session string        // s1 is the first, since the last Wipe
	What    string        // the request's name, "event", or what happened to a connection, a session, the server
	Path    string
	Code    Code
	Note    string // the kind of the event, what was created instead of Path, or what a rule did
}

// String is one line.
func (e Entry) String() string {
	line := fmt.Sprintf("%12.6fs %5d %-8s %-4s %s", e.At.Seconds(), e.Zxid, e.Client, e.Session, e.What)
	for _, part := range []string{e.Path, e.Note} {
		if part != "" {
			line += " " + part
		}
	}
	if e.Code != OK {
		line += ": " + e.Code.String()
	}
	return line
}

// Trace is what happened, in order. Pings are left out.
type Trace struct {
	Lost    int // how many entries before the first there is no memory of
	Entries []Entry
}

// String is a line for each entry.
func (t Trace) String() string {
	var b strings.Builder
	if t.Lost > 0 {
		fmt.Fprintf(&b, "(%d earlier entries are gone)\n", t.Lost)
	}
	for _, e := range t.Entries {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

var guid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}`)

// Canonical is String with the random ids in node names, as Curator and kazoo make them, replaced by their number in the order of their
// appearance: two runs that differ in nothing else have equal ones.
func (t Trace) Canonical() string { return Canonical(t.String()) }

// Canonical replaces the random ids in a text, that of [Server.Tree] say, as [Trace.Canonical] does.
func Canonical(text string) string {
	numbers := map[string]string{}
	return guid.ReplaceAllStringFunc(text, func(id string) string {
		if _, ok := numbers[id]; !ok {
			numbers[id] = fmt.Sprintf("<%d>", len(numbers)+1)
		}
		return numbers[id]
	})
}

// Tail is the last n entries.
func (t Trace) Tail(n int) Trace {
	cut := min(max(0, len(t.Entries)-n), len(t.Entries))
	return Trace{t.Lost + cut, t.Entries[cut:]}
}

// trace is the last entries, in a ring. It is guarded by the server's mutex.
type trace struct {
	limit int
	began time.Time
	ring  []Entry
	next  int // where the oldest entry is, once the ring is full
	lost  int
}

// add returns where the entry is, until it is forgotten.
func (t *trace) add(e Entry) (place int) {
	if len(t.ring) < t.limit {
		t.ring = append(t.ring, e)
		return len(t.ring) - 1
	}
	place = t.next
	t.ring[place] = e
	t.next = (t.next + 1) % t.limit
	t.lost++
	return place
}

// Trace returns what happened since the server was made, or the last 10,000 entries of it; what is before is counted.
func (s *Server) Trace() Trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.trace
	return Trace{t.lost, append(append([]Entry(nil), t.ring[t.next:]...), t.ring[:t.next]...)}
}

// note traces what is neither a request nor an event. It needs s.mu, as all that follow.
func (s *Server) note(c *Client, session int64, what string) {
	s.record(c, session, Entry{What: what})
}

// tell traces what the test does to the server.
func (s *Server) tell(what string) { s.record(nil, 0, Entry{What: what, Note: "by the test"}) }

func (s *Server) record(c *Client, session int64, e Entry) (place int) {
	e.Zxid, e.At = s.zxid, s.clock.now().Sub(s.trace.began)
	if c != nil {
		e.Client = c.String()
	}
	if session != 0 {
		e.Session = s.sessionName(session)
	}
	return s.trace.add(e)
}

var eventNames = map[int32]string{
	proto.EventCreated: "created", proto.EventDeleted: "deleted",
	proto.EventDataChanged: "data changed", proto.EventChildrenChanged: "children changed",
}

func (s *Server) traceEvent(c *conn, kind int32, path string) {
	s.record(c.client, c.session.id, Entry{What: "event", Path: path, Note: eventNames[kind]})
}

// traceRequest traces a request that is carried out or refused, and says where. Pings are not traced: -1.
func (s *Server) traceRequest(c *conn, req *proto.Request, code proto.Code, note string) (place int) {
	if req.Op == OpPing {
		return -1
	}
	return s.record(c.client, c.session.id, Entry{What: req.Op.String(), Path: req.Path, Code: Code(code), Note: note})
}

// Requests counts what all clients have sent since the last [Server.ResetCounts], by type. A request counts when the server reads it, so
// one that a rule drops or holds counts. Opening a session is no request.
func (s *Server) Requests() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := Counts{}
	for _, c := range s.clients {
		for o, n := range c.counts {
			sum[o] += n
		}
	}
	return sum
}

// ResetCounts begins to count requests anew, for all clients. The hits of rules stay.
func (s *Server) ResetCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		clear(c.counts)
	}
}
