package zktest

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Code is an error as it stands on the wire. It is an error value: errors.Is(err, zktest.NoNode) works.
type Code = proto.Code

// The codes that the server sends, or can be made to.
const (
	OK                      = proto.OK
	RuntimeInconsistency    = proto.RuntimeInconsist
	ConnectionLoss          = proto.ConnectionLoss
	MarshallingError        = proto.Marshalling
	Unimplemented           = proto.Unimplemented
	OperationTimeout        = proto.OperationTimeout
	BadArguments            = proto.BadArguments
	NoNode                  = proto.NoNode
	NoAuth                  = proto.NoAuth
	BadVersion              = proto.BadVersion
	NoChildrenForEphemerals = proto.NoChildrenForEphem
	NodeExists              = proto.NodeExists
	NotEmpty                = proto.NotEmpty
	SessionExpired          = proto.SessionExpired
	InvalidACL              = proto.InvalidACL
	AuthFailed              = proto.AuthFailed
	SessionMoved            = proto.SessionMoved
	NotReadOnly             = proto.NotReadOnly
	NoWatcher               = proto.NoWatcher
	RequestTimeout          = proto.RequestTimeout
	ReconfigDisabled        = proto.ReconfigDisabled
	QuotaExceeded           = proto.QuotaExceeded
	Throttled               = proto.Throttled
)

// Entry is one thing that happened: a request, an event that was sent, or the beginning or end of a connection or session.
type Entry struct {
	Zxid    int64         // the last transaction, that of the request included
	At      time.Duration // since the server was made
	Client  string        // its name
	Session string        // s1 is the first
	What    string        // the request's name, "event", "connected", "disconnected", "expired"
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
func (t Trace) Canonical() string {
	numbers := map[string]string{}
	return guid.ReplaceAllStringFunc(t.String(), func(id string) string {
		if _, ok := numbers[id]; !ok {
			numbers[id] = fmt.Sprintf("<%d>", len(numbers)+1)
		}
		return numbers[id]
	})
}

// Tail is the last n entries.
func (t Trace) Tail(n int) Trace {
	cut := max(0, len(t.Entries)-n)
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

func (t *trace) add(e Entry) {
	if len(t.ring) < t.limit {
		t.ring = append(t.ring, e)
		return
	}
	t.ring[t.next] = e
	t.next = (t.next + 1) % t.limit
	t.lost++
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

func (s *Server) record(c *Client, session int64, e Entry) {
	e.Zxid, e.At, e.Client = s.zxid, s.clock.now().Sub(s.trace.began), c.String()
	if session != 0 {
		e.Session = s.sessionName(session)
	}
	s.trace.add(e)
}

var eventNames = map[int32]string{
	proto.EventCreated: "created", proto.EventDeleted: "deleted",
	proto.EventDataChanged: "data changed", proto.EventChildrenChanged: "children changed",
}

func (s *Server) traceEvent(c *conn, kind int32, path string) {
	s.record(c.client, c.session.id, Entry{What: "event", Path: path, Note: eventNames[kind]})
}

// traceRequest traces a request that was carried out or refused.
func (s *Server) traceRequest(c *conn, req *proto.Request, code Code, note string) {
	if req.Op == OpPing {
		return
	}
	s.record(c.client, c.session.id, Entry{What: req.Op.String(), Path: req.Path, Code: code, Note: note})
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
