package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/docent-zk/docent/fence"
)

// resource is what the locks protect. It does not defend itself: it counts who is inside, and takes a note of each who comes when he must
// not. That includes whoever comes while somebody is inside who has lost his hold, and does not know it yet because he was paused.
type resource struct {
	room int // for so many at once who share it

	mu         sync.Mutex
	inside     int
	alone      int            // those inside who are to be alone
	newest     fence.Register // of the tokens of those who were to be alone
	uses, peak int
	violations []error
}

// The violations.
var (
	errNotAlone = errors.New("somebody who is to be alone is not")
	errCrowded  = errors.New("too many inside")
)

// use has somebody work inside, alone or together with others. The token is that of the lock that has let him in.
func (r *resource) use(alone bool, token int64, work func() error) error {
	r.enter(alone, token)
	defer r.leave(alone)
	return work()
}

func (r *resource) enter(alone bool, token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(alone, token); err != nil {
		r.violations = append(r.violations, err)
	}
	r.inside++
	if alone {
		r.alone++
	}
	r.uses++
	r.peak = max(r.peak, r.inside)
}

// admit is what must be so when somebody enters, and is so if the lock does what it is there for.
func (r *resource) admit(alone bool, token int64) error {
	switch last := r.newest.Last(); {
	case r.alone > 0 || alone && r.inside > 0:
		return errNotAlone
	case r.inside >= r.room:
		return fmt.Errorf("%w: room for %d", errCrowded, r.room)
	case alone:
		return r.newest.Accept(token)
	case token < last:
		return fmt.Errorf("%w: %d after %d", fence.ErrStale, token, last)
	}
	return nil
}

func (r *resource) leave(alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
	if alone {
		r.alone--
	}
}
