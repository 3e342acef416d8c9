package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-zk/docent/zktest/internal/effect"
)

// Request has the properties by which a [Match] selects.
type Request struct {
	Op     Op
	Path   string
	Client string
}

// Rules is a list of rules in the order in which they were added. The zero Rules is ready to use.
// Its methods may be called from any goroutine.
type Rules struct {
	mu    sync.Mutex
	rules []*Rule
}

// Add adds a rule. It panics if the rule can never fire: if m has a negative number, a malformed
// pattern, a path without a leading / or with a type that has none, or a type that clients do not
// send, or if a is [Fail] without an error.
func (s *Rules) Add(m Match, a Action) *Rule {
	if err := m.validate(); err != nil {
		panic(fmt.Sprintf("fault: match %v: %v", m, err))
	}
	if a.effect.Kind == effect.Fail && a.effect.Code == 0 {
		panic(fmt.Sprintf("fault: match %v: fail without an error", m))
	}
	if m.Times == 0 {
		m.Times = 1
	}
	r := &Rule{list: s, match: m, action: a, news: make(chan struct{}), released: make(chan struct{})}
	r.release = sync.OnceFunc(func() { close(r.released) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, r)
	return r
}

// Meet counts a request and returns the rule that decides about it, or nil.
func (s *Rules) Meet(req Request) *Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.firesLocked(req) && r.action.effect.Kind != effect.Pass && !r.isReleased() {
			return r
		}
	}
	return nil
}

// All returns the rules, in the order in which they were added.
func (s *Rules) All() []*Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rules)
}

// Rule is an action for the requests of a [Match]. Its methods may be called from any goroutine.
type Rule struct {
	list   *Rules
	match  Match
	action Action

	news     chan struct{} // closed and replaced at each hit; guarded by list.mu
	released chan struct{} // closed by release
	release  func()

	seen, hits int // guarded by list.mu, as is removed
	removed    bool
}

// String returns what the rule matches and what it does.
func (r *Rule) String() string { return fmt.Sprintf("%v: %v", r.match, r.action) }

// Action returns what the rule does. It returns [Pass] if r is nil.
func (r *Rule) Action() Action {
	if r == nil {
		return Pass()
	}
	return r.action
}

// Hits returns how often the rule has fired. It counts a request on arrival, before the action is
// carried out.
func (r *Rule) Hits() int {
	r.list.mu.Lock()
	defer r.list.mu.Unlock()
	return r.hits
}

// Wait waits until the rule has fired at least once. It returns an error if ctx ends before, or if
// the rule is removed. The action may still be in progress when Wait returns: a held request is
// held, and one with a reply to be dropped may not have been answered yet.
func (r *Rule) Wait(ctx context.Context) error { return r.WaitHits(ctx, 1) }

// WaitHits waits until the rule has fired at least hits times, see [Rule.Wait].
func (r *Rule) WaitHits(ctx context.Context, hits int) error {
	for {
		r.list.mu.Lock()
		have, news, removed := r.hits, r.news, r.removed
		r.list.mu.Unlock()
		switch {
		case have >= hits:
			return nil
		case removed:
			return fmt.Errorf("fault: wait for %v: the rule was removed after %d of %d hits",
				r.match, have, hits)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("fault: wait for %v: %w after %d of %d hits",
				r.match, context.Cause(ctx), have, hits)
		}
	}
}

// Release lets the delayed or held requests continue, in order. After that the rule acts like
// [Pass]. Release has no effect on other actions.
func (r *Rule) Release() { r.release() }

// Released returns a channel that is closed by Release and Remove.
func (r *Rule) Released() <-chan struct{} { return r.released }

// Remove removes the rule and lets the delayed or held requests continue. A reply that is already
// marked to be dropped is still dropped.
func (r *Rule) Remove() {
	r.list.mu.Lock()
	r.list.rules = slices.DeleteFunc(r.list.rules, func(other *Rule) bool { return other == r })
	if !r.removed {
		r.removed = true
		r.announceLocked()
	}
	r.list.mu.Unlock()
	r.release()
}

// firesLocked counts the request and reports whether the rule fires.
func (r *Rule) firesLocked(req Request) bool {
	if !r.match.selects(req) {
		return false
	}
	r.seen++
	if r.seen <= r.match.Skip || r.seen-r.match.Skip > r.match.Times {
		return false
	}
	r.hits++
	r.announceLocked()
	return true
}

// announceLocked wakes the calls of WaitHits.
func (r *Rule) announceLocked() {
	close(r.news)
	r.news = make(chan struct{})
}

func (r *Rule) isReleased() bool {
	select {
	case <-r.released:
		return true
	default:
		return false
	}
}
