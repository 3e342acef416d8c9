package zktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest/internal/rule"
)

// Always as [Match.Times] lets a rule fire for every request that matches.
const Always = rule.Always

// Match selects requests. The zero Match selects the next one, of any kind and anybody's. A multi is one request; its parts are none.
type Match struct {
	// Op is the type of the request; AnyOp, the zero value, stands for all, pings included. OpConnect, for which AnyOp does
	// not stand, is the handshake of a connection: DropAfter opens the session and does not tell, Fail says that the session
	// has expired.
	Op Op
	// Path is compared with the path that the request names, that of the first part for a multi. With one of * ? [ in it
	// it is a pattern of [path.Match] for the whole path, in which * stays within one level; else the path must begin
	// with it. Requests that name no path match only if Path is empty. A client with a chroot sends full paths.
	Path string
	// Client is the name of the client; empty is any.
	Client string
	// Skip is how many matching requests pass before the rule fires.
	Skip int
	// Times is how often the rule fires; 0 means once.
	Times int
}

// Action is what a rule does with a request.
type Action struct {
	kind  actionKind
	delay time.Duration
	code  Code
	bytes int
}

// String is for messages.
func (a Action) String() string {
	name := [...]string{"pass", "drop before", "drop after", "hold", "reset", "fail", "truncate"}[a.kind]
	switch {
	case a.kind == hold && a.delay >= 0:
		return fmt.Sprintf("delay by %v", a.delay)
	case a.kind == fail:
		return fmt.Sprintf("fail: %v", a.code)
	case a.kind == truncate:
		return fmt.Sprintf("truncate at %d bytes", a.bytes)
	}
	return name
}

type actionKind int

const (
	pass actionKind = iota
	dropBefore
	dropAfter
	hold
	resetBefore
	fail
	truncate
)

// Pass lets the request go on: the rule only counts, and [Rule.Wait] waits for it. Rules that were added later still see it.
func Pass() Action { return Action{} }

// DropBefore closes the connection in place of carrying the request out; what is behind it is lost too.
func DropBefore() Action { return Action{kind: dropBefore} }

// DropAfter carries the request out and closes the connection in place of answering: the client cannot tell.
func DropAfter() Action { return Action{kind: dropAfter} }

// Delay carries the request out after d, by package time. Everything behind it on its connection waits too. A request that was delayed is
// carried out even if its connection has ended in the meantime, as one that the real server has in its pipeline; but not if its session
// has, or has had a new connection, for one server does not let it come after later requests of its client; nor if the server was stopped.
// [Follower.HoldRequests] is for those that may.
func Delay(d time.Duration) Action { return Action{kind: hold, delay: max(d, 0)} }

// Hold keeps the request, and everything behind it on its connection, until [Rule.Release] or [Rule.Remove], and is like [Delay] else.
func Hold() Action { return Action{kind: hold, delay: -1} }

// Reset ends the connection with a TCP reset in place of carrying the request out.
func Reset() Action { return Action{kind: resetBefore} }

// Fail answers with an error in place of carrying the request out. The connection goes on.
func Fail(code Code) Action { return Action{kind: fail, code: code} }

// Truncate carries the request out, sends the first n bytes of the answer, its length included, and closes the connection.
func Truncate(n int) Action { return Action{kind: truncate, bytes: max(n, 0)} }

// Rule is an action waiting for its requests. Its methods may be called from any goroutine.
type Rule struct{ r *rule.Rule[Action] }

// String says what the rule waits for and what it does.
func (r *Rule) String() string { return fmt.Sprintf("%v: %v", r.r.Match(), r.r.Action()) }

// Hits is how often the rule has fired. It counts a request as it comes, when the action is yet to be carried out.
func (r *Rule) Hits() int { return r.r.Hits() }

// Wait waits until the rule has fired at least once. It is an error if ctx ends before, or if the rule is removed. The action may still
// be under way: a request held is held, one to be dropped after its reply may not have been answered yet.
func (r *Rule) Wait(ctx context.Context) error { return r.r.Wait(ctx, 1) }

// WaitHits is Wait for so many times.
func (r *Rule) WaitHits(ctx context.Context, hits int) error { return r.r.Wait(ctx, hits) }

// Release lets go what the rule delays or holds, in order. From then on it is like [Pass].
// Other actions have nothing to let go.
func (r *Rule) Release() { r.r.Release() }

// Remove takes the rule away and lets go what it delays or holds. A reply that it has marked to be dropped still is.
func (r *Rule) Remove() { r.r.Remove() }

// On adds a rule. It fires for the first m.Times requests that match, after m.Skip of them. Rules are asked in the order
// in which they were added; the first that fires decides, and the later ones do not see the request, unless the action
// is [Pass]. What can never fire panics: a negative number, a malformed pattern, a path without a leading /, a path with a type
// that has none, a type that clients do not send, a failure with no error.
func (s *Server) On(m Match, a Action) *Rule {
	m.check()
	if a.kind == fail && a.code == OK {
		panic(fmt.Sprintf("zktest: match %v: fail without an error", m))
	}
	return &Rule{s.rules.Add(m.internal(), a, a.kind == pass)}
}

// ResetFaults removes all rules and undoes all switches of all clients: for tests that share a server. Followers, a pause and what was
// stopped stay as they are.
func (s *Server) ResetFaults() {
	for _, r := range s.rules.All() {
		r.Remove()
	}
	s.mu.Lock()
	clients := slices.Clone(s.clients)
	s.mu.Unlock()
	for _, c := range clients {
		c.Heal()
		c.Thaw()
		c.ReleaseEvents()
		c.Blackhole(false)
		c.Refuse(false)
	}
}

// check panics on what is a mistake in the test's own text.
func (m Match) check() {
	switch {
	case m.Path != "" && !strings.HasPrefix(m.Path, "/"):
		panic(fmt.Sprintf("zktest: match %v: want a path with a leading /", m))
	case m.Op != AnyOp && m.Op != OpConnect && kinds[m.Op] == nil, m.Op == OpCheck:
		panic(fmt.Sprintf("zktest: match %v: clients send no such request", m))
	case m.Path != "" && m.Op != AnyOp && !m.Op.PathFirst() && m.Op != OpMulti && m.Op != OpMultiRead:
		panic(fmt.Sprintf("zktest: match %v: such requests have no path", m))
	}
}

func (m Match) internal() rule.Match {
	return rule.Match{Op: m.Op, Path: m.Path, Client: m.Client, Skip: m.Skip, Times: m.Times}
}

// String is for messages.
func (m Match) String() string { return m.internal().String() }
