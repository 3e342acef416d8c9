package condition

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Signal lets one waiter go on: the one that has waited longest of those that have no signal yet.
// If there is none, Signal does nothing. hold must be a valid hold of the mutex, of the client
// that the Condition was made with, and stays held: the waiter goes on once the lock is released.
// If the waiter leaves before it has the lock, because its process dies, its session is lost or
// its context ends, the next waiter that was waiting already gets the signal.
//
// Signal takes a list and, if there is a waiter, one transaction that checks the lock node. It
// repeats them while the session lasts, until ctx ends. A repetition does not signal twice. Signal
// fails
//
//   - with ErrOtherLock, or with the reason of hold.Err, without a request;
//   - when the hold is lost, with the reason;
//   - when ctx ends, and with what the servers refuse, such as zk.ErrNoAuth.
//
// framework.OutcomeOf reports whether the signal may have been given all the same: then it stays
// given. Java: Condition.signal.
func (c *Condition) Signal(ctx context.Context, hold *recipes.Hold) error {
	return c.send(ctx, hold, "signal", false)
}

// Broadcast lets all waiters go on, one after another in the order in which they came: each gets the
// lock when the one before has released it. It does nothing for a Wait that begins later. Otherwise
// it is like Signal. Java: Condition.signalAll.
func (c *Condition) Broadcast(ctx context.Context, hold *recipes.Hold) error {
	return c.send(ctx, hold, "broadcast", true)
}

func (c *Condition) send(ctx context.Context, hold *recipes.Hold, op string, all bool) error {
	s := sending{Condition: c, all: all, outcome: framework.NotApplied}
	own, err := c.held(ctx, hold)
	if err == nil {
		s.hold = own
		_, err = queue.RetryInSession(ctx, own.Session(), func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.attempt(ctx)
		})
		err = ctxerr.With(ctx, err)
	}
	if err != nil {
		return &framework.Error{Op: op, Path: c.path, Outcome: s.outcome, Err: err}
	}
	return nil
}

// newID returns what tells the nodes of two signals apart.
func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// sending is one call of Signal or Broadcast.
type sending struct {
	*Condition
	hold    *ownership.Hold
	all     bool
	made    signal // once a waiter is known that needs it
	outcome framework.Outcome
}

// attempt makes the signal and deletes useless ones. It may be repeated after a lost answer: the name
// of the node stays the same, and no waiter can have taken the signal before. A waiter needs the lock
// for that, and the transaction fails once the lock node is deleted.
func (s *sending) attempt(ctx context.Context) error {
	for {
		st, err := readState(ctx, s.hold.Session(), s.path)
		if err != nil {
			return err
		}
		ops, useless := s.ops(st)
		if len(ops)+len(useless) == 0 {
			return nil
		}
		err = tidily(ops, deletions(s.path, useless), func(ops []framework.Op) error {
			_, err := s.hold.Guard(ctx, ops...)
			return err
		})
		if framework.OutcomeOf(err) == framework.Unknown {
			s.outcome = framework.Unknown
		}
		switch {
		case ctxerr.Answered(ctx, err, zk.ErrNodeExists):
			return nil // made by an attempt whose answer was lost
		case ctxerr.Answered(ctx, err, zk.ErrNoNode):
			continue // a useless one was deleted meanwhile
		}
		return err
	}
}

// ops returns the operations of an attempt, and the signals that are useless after it; none: there is
// nothing to do.
func (s *sending) ops(st state) (ops []framework.Op, useless []string) {
	if s.made.name == "" {
		s.made, _ = st.signalFor(newID(), s.all)
	}
	switch {
	case s.made.name == "", len(st.waiters) == 0: // no waiter needs it, or all have left since
	case st.has(s.made.name):
		return nil, nil // made by an attempt whose answer was lost
	default:
		ops, st = append(ops, framework.CreateOp(s.path+"/"+s.made.name, nil)), st.with(s.made, s.all)
	}
	return ops, st.match().useless
}

// tidily sends ops together with the deletions of useless signals. If the servers refuse that, it
// sends ops alone: a useless signal does no harm.
func tidily(ops, deletions []framework.Op, send func([]framework.Op) error) error {
	err := send(append(slices.Clone(ops), deletions...))
	if len(deletions) > 0 && (errors.Is(err, zk.ErrNotEmpty) || errors.Is(err, zk.ErrNoAuth)) {
		return send(ops)
	}
	return err
}

// readState reads the directory of a condition. One that does not exist is empty.
func readState(ctx context.Context, s *framework.Session, path string) (state, error) {
	children, _, err := s.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return newState(children), err
}
