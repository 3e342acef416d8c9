package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/docent-zk/docent/fence"
)

// resource is what the locks protect. It refuses no access. It counts the accesses and records each
// one that must not be inside. That includes an access that begins while another one, which was
// paused, does not yet know that it has lost its hold.
type resource struct {
	room int // how many accesses may be inside at the same time

	mu         sync.Mutex
	inside     int
	alone      int            // the exclusive accesses inside
	newest     fence.Register // of the tokens of exclusive accesses
	uses, peak int
	violations []error
}

// The violations.
var (
	errNotAlone = errors.New("an exclusive access is not alone")
	errCrowded  = errors.New("too many inside")
)

// use calls work inside, exclusively if alone is true. The token is that of the hold.
func (r *resource) use(alone bool, token int64, work func() error) error {
	r.enter(alone, token)
	defer r.leave(alone)
	return work()
}

func (r *resource) enter(alone bool, token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkLocked(alone, token); err != nil {
		r.violations = append(r.violations, err)
	}
	r.inside++
	if alone {
		r.alone++
	}
	r.uses++
	r.peak = max(r.peak, r.inside)
}

// checkLocked returns an error if an access must not enter. It returns none while the lock works.
func (r *resource) checkLocked(alone bool, token int64) error {
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
