package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/fence"
)

// witness is what the leaders act on. It stands for whatever must have one master only. A real one would do no more than to refuse, by their
// tokens, leaders who come too late; because this is a demonstration, it also looks for what cannot be while the election works.
type witness struct {
	mu       sync.Mutex
	fencing  fence.Register
	terms    []visit         // the first deed of each term, in order
	inside   map[int64]visit // the last deed of those who have not said that it is over, by token
	lost     map[int64]visit // those who found out that they do not lead any more
	late     map[int64]bool  // who was refused
	observed int64           // the token of whom those see lead who do not stand
	news     chan struct{}   // closed, and replaced, whenever something has happened
}

// visit is what a candidate says in each step.
type visit struct {
	Candidate int
	Token     int64
	Until     time.Time // how long the term is good for, from what the candidate knows
	Why       string    // it is over, if it is
}

func (v visit) String() string { return fmt.Sprintf("%s (token %d)", name(v.Candidate), v.Token) }

// answer is what the witness says.
type answer struct {
	Resign bool // please do
}

// The steps.
const (
	stepAct    = "act"
	stepResign = "resign" // I am about to
	stepLost   = "lost"   // I have found out that I do not lead any more
)

// The faults.
var (
	errTwoLeaders = errors.New("BROKEN ELECTION: two leaders at once")
	errTokenOrder = errors.New("BROKEN TOKEN: smaller than that of an earlier leader")
)

func newWitness() *witness {
	return &witness{inside: map[int64]visit{}, lost: map[int64]visit{}, late: map[int64]bool{}, news: make(chan struct{})}
}

// apply takes one step.
func (w *witness) apply(step string, v visit) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.tellNews()
	switch step {
	case stepAct:
		return w.act(v)
	case stepResign:
		delete(w.inside, v.Token)
	case stepLost:
		delete(w.inside, v.Token)
		w.lost[v.Token] = v
	default:
		return fmt.Errorf("no such step: %q", step)
	}
	return nil
}

func (w *witness) tellNews() {
	close(w.news)
	w.news = make(chan struct{})
}

// act accepts a deed. That somebody comes too late, fence.ErrStale, is no fault, unless it has reason to believe that it leads.
func (w *witness) act(v visit) error {
	if err := w.fencing.Accept(v.Token); err != nil {
		w.late[v.Token] = true
		if time.Now().Before(v.Until) {
			return fmt.Errorf("%w: %s: %v", errTokenOrder, v, err)
		}
		return err
	}
	if _, known := w.inside[v.Token]; !known {
		w.terms = append(w.terms, v)
	}
	for token, other := range w.inside {
		if token == v.Token && other.Candidate == v.Candidate {
			continue
		}
		if time.Now().Before(other.Until) {
			return fmt.Errorf("%w: %s and %s", errTwoLeaders, other, v)
		}
		delete(w.inside, token) // it was killed, or is paused
	}
	w.inside[v.Token] = v
	return nil
}

// observe takes note of what those see who do not stand.
func (w *witness) observe(token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.tellNews()
	w.observed = token
}

// await waits until cond, which is called with mu locked, is true.
func (w *witness) await(ctx context.Context, what string, cond func() bool) error {
	for {
		w.mu.Lock()
		done, news := cond(), w.news
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}

// next waits for a term after the one with the given token: somebody acts, and everybody sees who it is.
func (w *witness) next(ctx context.Context, after int64) (v visit, err error) {
	err = w.await(ctx, "somebody leads", func() bool {
		if len(w.terms) > 0 {
			v = w.terms[len(w.terms)-1]
		}
		return v.Token > after && v.Token == w.observed
	})
	return v, err
}

// hasLost waits until the leader of a term knows that it is over.
func (w *witness) hasLost(ctx context.Context, token int64) (v visit, err error) {
	late := false
	err = w.await(ctx, "the leader finds out that it does not lead any more", func() bool {
		v, late = w.lost[token], w.late[token]
		return late || v.Token != 0
	})
	if err == nil && late {
		err = fmt.Errorf("the leader with token %d has acted before it found out", token)
	}
	return v, err
}

// conclude is the terms that there were, if they were in order.
func (w *witness) conclude() (terms []visit, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, v := range w.terms[1:] {
		if v.Token <= w.terms[i].Token {
			return nil, fmt.Errorf("%w: %s after %s", errTokenOrder, v, w.terms[i])
		}
	}
	return w.terms, nil
}
