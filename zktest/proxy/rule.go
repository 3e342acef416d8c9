package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/zktest/internal/rule"
)

// Always as [Match.Times] lets a rule fire for every request that matches.
const Always = rule.Always

// Match selects requests. The zero Match selects the next one, of any kind.
type Match struct {
	// Op is the type of the request; AnyOp, the zero value, stands for all, pings included.
	Op Op
	// Path is compared with the path that the request names, that of the first part for a multi. With one of * ? [ in it
	// it is a pattern of [path.Match] for the whole path, in which * stays within one level; else the path must begin
	// with it. Requests that name no path match only if Path is empty. A client with a chroot sends full paths.
	Path string
	// Skip is how many matching requests pass before the rule fires.
	Skip int
	// Times is how often the rule fires; 0 means once.
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

// String is for messages.
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

// Pass lets the request go on: the rule only counts, and [Rule.Wait] waits for it. Rules that were added later still see it.
func Pass() Action { return Action{} }

// DropBefore closes the connection in place of passing the request on: the server never sees it, nor anything behind it.
func DropBefore() Action { return Action{kind: dropBefore} }

// DropAfter passes the request on, and when the server's reply is there swallows it and closes the connection: the
// request has been carried out, or refused, and the client cannot tell. Requests behind it may reach the server too.
func DropAfter() Action { return Action{kind: dropAfter} }

// Delay passes the request on after d. Everything behind it on its connection waits too.
func Delay(d time.Duration) Action { return Action{kind: hold, delay: max(d, 0)} }

// Hold keeps the request, and everything behind it on its connection, until [Rule.Release] or [Rule.Remove].
func Hold() Action { return Action{kind: hold, delay: -1} }

// Reset ends the client's connection with a TCP reset at once. The server sees neither the request nor a reset, but an
// ordinary end.
func Reset() Action { return Action{kind: reset} }

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

// Release lets go what the rule delays or holds, in order. From then on it is like Pass.
// Other actions have nothing to let go.
func (r *Rule) Release() { r.r.Release() }

// Remove takes the rule away and lets go what it delays or holds. A reply that it has marked to be dropped still is.
func (r *Rule) Remove() { r.r.Remove() }

// On adds a rule. It fires for the first m.Times requests that match, after m.Skip of them. Rules are asked in the order
// in which they were added; the first that fires decides, and the later ones do not see the request, unless the action
// is [Pass]. A negative number and a malformed pattern in m panic.
func (p *Proxy) On(m Match, a Action) *Rule {
	return &Rule{p.rules.Add(m.internal(), a, a.kind == pass)}
}

// drops says of a rule, nil for none, whether the reply is to be dropped.
func drops(r *rule.Rule[Action]) bool { return r != nil && r.Action().kind == dropAfter }
