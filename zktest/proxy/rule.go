package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/zktest/internal/rule"
)

// Always as [Match.Times] makes a rule fire for every matching request.
const Always = rule.Always

// Match selects requests. The zero Match selects the next request of any type.
type Match struct {
	// Op is the type of the request. AnyOp, the zero value, stands for all types, pings included.
	Op Op
	// Path is compared with the path that the request names, or with the path of the first part of
	// a multi. If it contains one of * ? [ it is a pattern of [path.Match] for the whole path, in
	// which * stays within one level. Otherwise the request's path must begin with it. Requests
	// without a path match only if Path is empty. A client with a chroot sends full paths.
	Path string
	// Skip is the number of matching requests that pass before the rule fires.
	Skip int
	// Times is the number of times that the rule fires; 0 means once.
	Times int
}

func (m Match) internal() rule.Match {
	return rule.Match{Op: m.Op, Path: m.Path, Skip: m.Skip, Times: m.Times}
}

// Action is what a rule does with a request.
type Action struct {
	kind  kind
	delay time.Duration
}

// String returns a description for messages.
func (a Action) String() string {
	name := [...]string{"pass", "drop before", "drop after", "hold", "reset"}[a.kind]
	if a.kind == hold && a.delay >= 0 {
		return fmt.Sprintf("delay by %v", a.delay)
	}
	return name
}

type kind int

const (
	pass kind = iota
	dropBefore
	dropAfter
	hold
	reset
)

// Pass lets the request continue. The rule only counts, and [Rule.Wait] waits for it. Rules that
// were added later still see the request.
func Pass() Action { return Action{} }

// DropBefore closes the connection instead of passing the request on. The server sees neither the
// request nor anything behind it.
func DropBefore() Action { return Action{kind: dropBefore} }

// DropAfter passes the request on. When the server's reply arrives, it discards the reply and
// closes the connection. The request has been carried out or refused, and the client cannot tell
// which. Requests behind it may reach the server too.
func DropAfter() Action { return Action{kind: dropAfter} }

// Delay passes the request on after d. Everything behind it on its connection waits too.
func Delay(d time.Duration) Action { return Action{kind: hold, delay: max(d, 0)} }

// Hold keeps the request, and everything behind it on its connection, until [Rule.Release] or
// [Rule.Remove].
func Hold() Action { return Action{kind: hold, delay: -1} }

// Reset ends the client's connection at once with a TCP reset. The server does not see the request,
// and sees an ordinary end instead of a reset.
func Reset() Action { return Action{kind: reset} }

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
// see the request unless the action is [Pass]. On panics if m has a negative number or a malformed
// pattern.
func (p *Proxy) On(m Match, a Action) *Rule {
	return &Rule{p.rules.Add(m.internal(), a, a.kind == pass)}
}

// drops reports whether a rule, or nil, drops the reply.
func drops(r *rule.Rule[Action]) bool { return r != nil && r.Action().kind == dropAfter }
