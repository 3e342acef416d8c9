// Package rule selects requests for actions.
package rule

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/docent-zk/docent/zktest/op"
)

// Always as Match.Times makes a rule fire for every matching request.
const Always = math.MaxInt

// Match selects requests; see the packages that offer it.
type Match struct {
	Op     op.Op
	Path   string
	Client string
	Skip   int
	Times  int
}

// String returns a description for messages.
func (m Match) String() string {
	s := strings.TrimSpace(m.Op.String() + " " + m.Path)
	if m.Client != "" {
		s += " of " + m.Client
	}
	return s
}

// check panics on a mistake in the test's source.
func (m Match) check(pkg string) {
	if m.Skip < 0 || m.Times < 0 {
		panic(fmt.Sprintf("%s: match %v: negative skip %d or times %d", pkg, m, m.Skip, m.Times))
	}
	if _, err := path.Match(m.Path, ""); m.isPattern() && err != nil {
		panic(fmt.Sprintf("%s: match %v: %v", pkg, m, err))
	}
}

func (m Match) isPattern() bool { return strings.ContainsAny(m.Path, "*?[") }

// Request has the properties by which a Match selects.
type Request struct {
	Op     op.Op
	Path   string
	Client string
}

func (m Match) selects(req Request) bool {
	switch {
	case m.Op != op.Any && m.Op != req.Op, m.Op == op.Any && req.Op == op.Connect,
		m.Client != "" && m.Client != req.Client:
		return false
	case m.Path == "":
		return true
	case req.Path == "":
		return false
	case m.isPattern():
		ok, _ := path.Match(m.Path, req.Path) // check has checked the pattern
		return ok
	}
	return strings.HasPrefix(req.Path, m.Path)
}

// Set is a list of rules in the order in which they were added. The zero Set, with the name of the
// package for messages, is ready to use.
type Set[A any] struct {
	Package string

	mu    sync.Mutex
	rules []*Rule[A]
}

// Rule is an action of type A for the requests of a Match. Its methods may be called from any
// goroutine.
type Rule[A any] struct {
	set    *Set[A]
	match  Match
	action A
	passes bool

	news     chan struct{} // closed and replaced at each hit; guarded by set.mu
	released chan struct{} // closed by release
	release  func()

	seen, hits int // guarded by set.mu, as are the fields below
	removed    bool
}

// Add adds a rule. A rule that passes only counts.
func (s *Set[A]) Add(m Match, action A, passes bool) *Rule[A] {
	m.check(s.Package)
	if m.Times == 0 {
		m.Times = 1
	}
	r := &Rule[A]{
		set: s, match: m, action: action, passes: passes,
		news: make(chan struct{}), released: make(chan struct{}),
	}
	r.release = sync.OnceFunc(func() { close(r.released) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, r)
	return r
}

// Meet counts a request and returns the rule that decides about it, or nil.
func (s *Set[A]) Meet(req Request) *Rule[A] {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.fires(req) && !r.passes && !r.isReleased() {
			return r
		}
	}
	return nil
}

// fires counts the request and reports whether the rule fires. The caller holds set.mu.
func (r *Rule[A]) fires(req Request) bool {
	if !r.match.selects(req) {
		return false
	}
	r.seen++
	if r.seen <= r.match.Skip || r.seen-r.match.Skip > r.match.Times {
		return false
	}
	r.hits++
	close(r.news)
	r.news = make(chan struct{})
	return true
}

// Action returns the action.
func (r *Rule[A]) Action() A { return r.action }

func (r *Rule[A]) isReleased() bool {
	select {
	case <-r.released:
		return true
	default:
		return false
	}
}

// Released returns a channel that is closed by Release and Remove.
func (r *Rule[A]) Released() <-chan struct{} { return r.released }

// Hits returns how often the rule has fired. It counts a request on arrival, before the action is
// carried out.
func (r *Rule[A]) Hits() int {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	return r.hits
}

// Wait waits until the rule has fired at least so many times. It returns an error if ctx ends
// before, or if the rule is removed.
func (r *Rule[A]) Wait(ctx context.Context, hits int) error {
	for {
		r.set.mu.Lock()
		have, news, removed := r.hits, r.news, r.removed
		r.set.mu.Unlock()
		switch {
		case have >= hits:
			return nil
		case removed:
			return fmt.Errorf("%s: wait for %v: the rule was removed after %d of %d hits",
				r.set.Package, r.match, have, hits)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("%s: wait for %v: %w after %d of %d hits",
				r.set.Package, r.match, context.Cause(ctx), have, hits)
		}
	}
}

// Match returns what the rule matches.
func (r *Rule[A]) Match() Match { return r.match }

// Release lets the delayed or held requests continue, in order. After that the rule acts like Pass.
// Release has no effect on other actions.
func (r *Rule[A]) Release() { r.release() }

// Remove removes the rule and lets the delayed or held requests continue. A reply that is already
// marked to be dropped is still dropped.
func (r *Rule[A]) Remove() {
	r.set.mu.Lock()
	r.set.rules = slices.DeleteFunc(r.set.rules, func(other *Rule[A]) bool { return other == r })
	if !r.removed {
		r.removed = true
		close(r.news)
		r.news = make(chan struct{})
	}
	r.set.mu.Unlock()
	r.release()
}

// All returns the rules, in the order in which they were added.
func (s *Set[A]) All() []*Rule[A] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rules)
}
