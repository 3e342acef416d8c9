package proxy

import (
	"context"
	"fmt"
	"math"
	"path"
	"strings"
	"sync"
	"time"
)

// Always as [Match.Times] lets a rule fire for every request that matches.
const Always = math.MaxInt

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

// String is for messages.
func (m Match) String() string {
	return strings.TrimSpace(m.Op.String() + " " + m.Path)
}

// check panics on what is a mistake in the test's own text.
func (m Match) check() {
	if m.Skip < 0 || m.Times < 0 {
		panic(fmt.Sprintf("proxy: match %v: negative skip %d or times %d", m, m.Skip, m.Times))
	}
	if _, err := path.Match(m.Path, ""); m.isPattern() && err != nil {
		panic(fmt.Sprintf("proxy: match %v: %v", m, err))
	}
}

func (m Match) isPattern() bool { return strings.ContainsAny(m.Path, "*?[") }

func (m Match) selects(req request) bool {
	switch {
	case m.Op != AnyOp && m.Op != req.op:
		return false
	case m.Path == "":
		return true
	case req.path == "":
		return false
	case m.isPattern():
		ok, _ := path.Match(m.Path, req.path) // checked by check
		return ok
	}
	return strings.HasPrefix(req.path, m.Path)
}

// Action is what a rule does with a request.
type Action struct {
	kind  kind
	delay time.Duration
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
type Rule struct {
	p      *Proxy
	match  Match
	action Action

	hit      chan struct{} // closed at the first hit
	released chan struct{} // closed by release
	release  func()

	seen, hits int // guarded by p.mu
}

// On adds a rule. It fires for the first m.Times requests that match, after m.Skip of them. Rules are asked in the order
// in which they were added; the first that fires decides, and the later ones do not see the request, unless the action
// is [Pass]. A negative number and a malformed pattern in m panic.
func (p *Proxy) On(m Match, a Action) *Rule {
	m.check()
	if m.Times == 0 {
		m.Times = 1
	}
	r := &Rule{p: p, match: m, action: a, hit: make(chan struct{}), released: make(chan struct{})}
	r.release = sync.OnceFunc(func() { close(r.released) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// fires counts the request. It needs p.mu.
func (r *Rule) fires(req request) bool {
	if !r.match.selects(req) {
		return false
	}
	r.seen++
	if r.seen <= r.match.Skip || r.seen-r.match.Skip > r.match.Times {
		return false
	}
	r.hits++
	if r.hits == 1 {
		close(r.hit)
	}
	return true
}

// Hits is how often the rule has fired. It counts a request as it comes, when the action is yet to be carried out.
func (r *Rule) Hits() int {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return r.hits
}

// Wait waits until the rule has fired at least once, or ctx ends. The action may still be under way: a request held is
// held, one to be dropped after its reply may not have been answered yet.
func (r *Rule) Wait(ctx context.Context) error {
	select {
	case <-r.hit:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("proxy: wait for %v: %w", r.match, ctx.Err())
	}
}

// Release lets go what the rule delays or holds, in order. From then on it lets all requests pass, and still counts them.
// Other actions have nothing to let go.
func (r *Rule) Release() { r.release() }

// Remove takes the rule away and lets go what it delays or holds. A reply that it has marked to be dropped still is.
func (r *Rule) Remove() {
	r.p.removeRule(r)
	r.release()
}

// drops says of a rule, nil for none, whether the reply is to be dropped.
func (r *Rule) drops() bool { return r != nil && r.action.kind == dropAfter }
