package zktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest/internal/rule"
)

// Always as [Match.Times] makes a rule fire for every matching request.
const Always = rule.Always

// Match selects requests. The zero Match selects the next request of any type from any client. A
// multi is one request; its parts are not requests.
type Match struct {
	// Op is the type of the request. AnyOp, the zero value, stands for all types, pings included,
	// except OpConnect. OpConnect is the handshake of a connection: DropAfter opens the session
	// without an answer, and Fail answers that the session has expired.
	Op Op
	// Path is compared with the path that the request names, or with the path of the first part of
	// a multi. If it contains one of * ? [ it is a pattern of [path.Match] for the whole path, in
	// which * stays within one level. Otherwise the request's path must begin with it. Requests
	// without a path match only if Path is empty. A client with a chroot sends full paths.
	Path string
	// Client is the name of the client. The empty name stands for any client.
	Client string
	// Skip is the number of matching requests that pass before the rule fires.
	Skip int
	// Times is the number of times that the rule fires; 0 means once.
	Times int
}

// Action is what a rule does with a request.
type Action struct {
	kind  actionKind
	delay time.Duration
	code  Code
	bytes int
}

// String returns a description for messages.
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

// Pass lets the request continue. The rule only counts, and [Rule.Wait] waits for it. Rules that
// were added later still see the request.
func Pass() Action { return Action{} }

// DropBefore closes the connection instead of carrying the request out. Requests behind it on the
// connection are lost too.
func DropBefore() Action { return Action{kind: dropBefore} }

// DropAfter carries the request out and closes the connection instead of answering, so the client
// cannot tell whether it was carried out.
func DropAfter() Action { return Action{kind: dropAfter} }

// Delay carries the request out after d, by package time. Everything behind it on its connection
// waits too. Like a request in the real server's pipeline, it is carried out even if its connection
// has ended in the meantime. It is not carried out if its session has ended or has a new
// connection, or if the server was stopped. One server does not carry out a request after later
// ones of its client. For requests that may come after later ones, use [Follower.HoldRequests].
func Delay(d time.Duration) Action { return Action{kind: hold, delay: max(d, 0)} }

// Hold keeps the request, and everything behind it on its connection, until [Rule.Release] or
// [Rule.Remove]. Otherwise it is like [Delay].
func Hold() Action { return Action{kind: hold, delay: -1} }

// Reset ends the connection with a TCP reset instead of carrying the request out.
func Reset() Action { return Action{kind: resetBefore} }

// Fail answers with an error instead of carrying the request out. The connection stays open.
func Fail(code Code) Action { return Action{kind: fail, code: code} }

// Truncate carries the request out, sends the first n bytes of the answer with its length, and
// closes the connection.
func Truncate(n int) Action { return Action{kind: truncate, bytes: max(n, 0)} }

// Rule is an action for the requests of a [Match]. Its methods may be called from any goroutine.
type Rule struct{ r *rule.Rule[Action] }

// String returns what the rule matches and what it does.
func (r *Rule) String() string { return fmt.Sprintf("%v: %v", r.r.Match(), r.r.Action()) }

// Hits returns how often the rule has fired. It counts a request on arrival, before the action is
// carried out.
func (r *Rule) Hits() int { return r.r.Hits() }

// Wait waits until the rule has fired at least once. It returns an error if ctx ends before, or if
// the rule is removed. The action may still be in progress when Wait returns: a held request is
// held, and one with a reply to be dropped may not have been answered yet.
func (r *Rule) Wait(ctx context.Context) error { return r.r.Wait(ctx, 1) }

// WaitHits waits until the rule has fired at least hits times, see [Rule.Wait].
func (r *Rule) WaitHits(ctx context.Context, hits int) error { return r.r.Wait(ctx, hits) }

// Release lets the delayed or held requests continue, in order. After that the rule acts like
// [Pass]. Release has no effect on other actions.
func (r *Rule) Release() { r.r.Release() }

// Remove removes the rule and lets the delayed or held requests continue. A reply that is already
// marked to be dropped is still dropped.
func (r *Rule) Remove() { r.r.Remove() }

// On adds a rule. It fires for the first m.Times matching requests after m.Skip of them. Rules are
// tried in the order in which they were added. The first that fires decides, and later rules do not
// see the request unless the action is [Pass]. On panics if the rule can never fire. Such rules
// have a negative number, a malformed pattern, a path without a leading /, or a path with a type
// that has none. Others have a type that clients do not send, or a failure without an error.
func (s *Server) On(m Match, a Action) *Rule {
	m.check()
	if a.kind == fail && a.code == OK {
		panic(fmt.Sprintf("zktest: match %v: fail without an error", m))
	}
	return &Rule{s.rules.Add(m.internal(), a, a.kind == pass)}
}

// ResetFaults removes all rules and undoes all switches of all clients, for tests that share a
// server. Followers, a pause and stopped servers stay as they are.
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

// check panics on a mistake in the test's source.
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

// String returns a description for messages.
func (m Match) String() string { return m.internal().String() }
