package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/fence"
)

// resource is what only the leader may use. A real resource would only refuse the requests of
// former leaders, by their tokens. This one also detects what cannot happen while the election
// works, because this is a demonstration.
type resource struct {
	mu       sync.Mutex
	fencing  fence.Register
	terms    []request         // the first request of each term, in order
	active   map[int64]request // by token: the last request of each leader that has not reported the end of its term
	lost     map[int64]request // by token: the report of each leader that has noticed the loss of its leadership
	refused  map[int64]bool    // by token: a request was refused
	observed int64             // the token of the leader that the observer sees
	changed  chan struct{}     // closed and replaced when one of the above changes
}

// request is what a candidate sends in each step.
type request struct {
	Candidate int
	Token     int64
	Until     time.Time // the deadline of the term, as far as the candidate knows
	Why       string    // the reason why the term has ended; "" if it has not
}

func (r request) String() string { return fmt.Sprintf("%s (token %d)", name(r.Candidate), r.Token) }

// answer is the answer to a request.
type answer struct {
	Resign bool // the leader is asked to resign
}

// The steps.
const (
	stepAct    = "act"
	stepResign = "resign" // the leader is about to resign
	stepLost   = "lost"   // the candidate has noticed that it does not lead any more
)

// The faults.
var (
	errTwoLeaders = errors.New("BROKEN ELECTION: two leaders at once")
	errTokenOrder = errors.New("BROKEN TOKEN: smaller than that of an earlier leader")
)

func newResource() *resource {
	return &resource{
		active: map[int64]request{}, lost: map[int64]request{}, refused: map[int64]bool{}, changed: make(chan struct{}),
	}
}

// apply takes one step.
func (r *resource) apply(step string, q request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.notifyLocked()
	switch step {
	case stepAct:
		return r.actLocked(q)
	case stepResign:
		delete(r.active, q.Token)
	case stepLost:
		delete(r.active, q.Token)
		r.lost[q.Token] = q
	default:
		return fmt.Errorf("no such step: %q", step)
	}
	return nil
}

func (r *resource) notifyLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// actLocked accepts the request of a leader, or refuses it with fence.ErrStale. A refusal is a
// fault only if the term of the refused leader has not reached its deadline.
func (r *resource) actLocked(q request) error {
	if err := r.fencing.Accept(q.Token); err != nil {
		r.refused[q.Token] = true
		if time.Now().Before(q.Until) {
			return fmt.Errorf("%w: %s: %v", errTokenOrder, q, err)
		}
		return err
	}
	if _, known := r.active[q.Token]; !known {
		r.terms = append(r.terms, q)
	}
	for token, other := range r.active {
		if token == q.Token && other.Candidate == q.Candidate {
			continue
		}
		if time.Now().Before(other.Until) {
			return fmt.Errorf("%w: %s and %s", errTwoLeaders, other, q)
		}
		delete(r.active, token) // its process was killed, or is paused
	}
	r.active[q.Token] = q
	return nil
}

// observe records the token of the leader that the observer sees.
func (r *resource) observe(token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.notifyLocked()
	r.observed = token
}

// wait waits until condLocked, which is called with mu locked, returns true.
func (r *resource) wait(ctx context.Context, what string, condLocked func() bool) error {
	for {
		r.mu.Lock()
		done, changed := condLocked(), r.changed
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}

// waitTerm waits for a term after the one with the given token, until its leader has used the
// resource and the observer sees the same leader.
func (r *resource) waitTerm(ctx context.Context, after int64) (q request, err error) {
	err = r.wait(ctx, "a candidate leads", func() bool {
		if len(r.terms) > 0 {
			q = r.terms[len(r.terms)-1]
		}
		return q.Token > after && q.Token == r.observed
	})
	return q, err
}

// waitLost waits until the leader of a term has noticed that the term has ended.
func (r *resource) waitLost(ctx context.Context, token int64) (q request, err error) {
	refused := false
	err = r.wait(ctx, "the leader finds out that it does not lead any more", func() bool {
		q, refused = r.lost[token], r.refused[token]
		return refused || q.Token != 0
	})
	if err == nil && refused {
		err = fmt.Errorf("the leader with token %d has acted before it found out", token)
	}
	return q, err
}

// check returns all terms, or an error if their tokens do not grow.
func (r *resource) check() (terms []request, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, q := range r.terms[1:] {
		if q.Token <= r.terms[i].Token {
			return nil, fmt.Errorf("%w: %s after %s", errTokenOrder, q, r.terms[i])
		}
	}
	return r.terms, nil
}
