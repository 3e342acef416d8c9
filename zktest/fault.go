package zktest

import (
	"fmt"
	"time"

	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/rule"
)

// Always as [Match.Times] lets a rule fire for every request that matches.
const Always = rule.Always

// Match selects requests. The zero Match selects the next one, of any kind and anybody's.
type Match struct {
	// Op is the type of the request; AnyOp, the zero value, stands for all, pings included.
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
// has, or has a new connection, for no server lets it come after later requests of its client.
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
type Rule = rule.Rule[Action]

// On adds a rule. It fires for the first m.Times requests that match, after m.Skip of them. Rules are asked in the order
// in which they were added; the first that fires decides, and the later ones do not see the request, unless the action
// is [Pass]. A negative number and a malformed pattern in m panic, as does a failure with no error.
func (s *Server) On(m Match, a Action) *Rule {
	if a.kind == fail && a.code == proto.OK {
		panic(fmt.Sprintf("zktest: match %v: fail without an error", m))
	}
	return s.rules.Add(m.internal(), a, a.kind == pass)
}

func (m Match) internal() rule.Match {
	return rule.Match{Op: m.Op, Path: m.Path, Client: m.Client, Skip: m.Skip, Times: m.Times}
}

// String is for messages.
func (m Match) String() string { return m.internal().String() }
