package zktest

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Entry is an entry of a trace: a request, an event that was sent, or the start or end of a
// connection or session.
type Entry struct {
	Zxid    int64         // the last transaction, including the request's own
	At      time.Duration // since the server was made
	Client  string        // its name, "-" without a name; empty if all clients are concerned
	Session string        // s1 is the first since the last Wipe
	What    string        // the request's name, "event", or what happened to a connection, a session or the server
	Path    string
	Code    Code
	Note    string        // the kind of the event, the created path if it is not Path, or what a rule did
	Timeout time.Duration // granted to a request's connection, or counted by the leader if the session expired
}

// String returns the entry as one line.
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

// Trace is a list of entries in order, without pings.
type Trace struct {
	Lost    int // number of earlier entries that were dropped
	Entries []Entry
}

// String returns a line for each entry.
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

// Canonical returns String with each random id in node names, as Curator and kazoo make them,
// replaced by a number. The ids are numbered in the order of their first appearance, so two runs
// that differ only in ids give equal texts.
func (t Trace) Canonical() string { return Canonical(t.String()) }

// Canonical replaces the random ids in a text, for example that of [Server.Tree], as
// [Trace.Canonical] does.
func Canonical(text string) string {
	numbers := map[string]string{}
	return guid.ReplaceAllStringFunc(text, func(id string) string {
		if _, ok := numbers[id]; !ok {
			numbers[id] = fmt.Sprintf("<%d>", len(numbers)+1)
		}
		return numbers[id]
	})
}

// Tail returns the last n entries.
func (t Trace) Tail(n int) Trace {
	cut := min(max(0, len(t.Entries)-n), len(t.Entries))
	return Trace{t.Lost + cut, t.Entries[cut:]}
}

// trace keeps the last entries in a ring. The server's mutex guards it.
type trace struct {
	limit int
	began time.Time
	ring  []Entry
	next  int // index of the oldest entry, once the ring is full
	lost  int
}

// add returns the index of the entry in the ring. It is valid until the entry is overwritten.
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

// Trace returns the last 10,000 entries since the server was made. Earlier entries are only
// counted.
func (s *Server) Trace() Trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.trace
	return Trace{t.lost, append(append([]Entry(nil), t.ring[t.next:]...), t.ring[:t.next]...)}
}

// note adds an entry that is neither a request nor an event. The caller holds s.mu, here and in the
// functions below.
func (s *Server) note(c *Client, session int64, what string) {
	s.record(c, session, Entry{What: what})
}

// traceTest adds what the test does to the server to the trace.
func (s *Server) traceTest(what string) { s.record(nil, 0, Entry{What: what, Note: "by the test"}) }

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

// traceRequest adds a request that is carried out or refused, and returns the index of the entry.
// It returns -1 for a ping, which is not traced.
func (s *Server) traceRequest(c *conn, req *proto.Request, code proto.Code, note string) (place int) {
	if req.Op == fault.OpPing {
		return -1
	}
	return s.record(c.client, c.session.id, Entry{
		What: req.Op.String(), Path: req.Path, Code: Code(code), Note: note, Timeout: c.timeout,
	})
}

// Requests returns the number of requests of each type that all clients have sent since the last
// [Server.ResetCounts]. A request is counted when the server reads it, even if a rule then drops or
// holds it. Opening a session is not a request.
func (s *Server) Requests() fault.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := fault.Counts{}
	for _, c := range s.clients {
		for o, n := range c.counts {
			sum[o] += n
		}
	}
	return sum
}

// ResetCounts sets the counts of requests of all clients to 0. The hits of rules stay.
func (s *Server) ResetCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		clear(c.counts)
	}
}
