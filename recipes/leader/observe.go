package leader

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/participants"
	"github.com/docent-zk/docent/recipes/internal/pause"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// kinds are the kinds of candidates' nodes, of an Election and of a Latch.
var kinds = append(slices.Clone(electionRules.Conflicting), latchRules.Conflicting...)

// participants returns the candidates of one kind.
func (c *candidate) participants(ctx context.Context, rules queue.Rules) ([]recipes.Participant, error) {
	all, err := participants.List(ctx, c.lock.Queues[0], rules.Conflicting...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Participants returns the candidates, also those of Curator: the leader first, then the others in
// the order of the queue. It is empty if there are none, or no such path. The id of a candidate is
// the Data of its node, see WithID. The first one may not lead yet, because it has not noticed that
// it is first or waits as WithLockDelay says. It may lead no more, by its own clock. Participants
// can be called before, while and after Run runs, and if it never does. It fails when ctx ends, and
// like framework.Client.Children and Get. Curator: LeaderSelector.getParticipants.
func (e *Election) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := check.Call(ctx, "leader", "Election", e.candidate != nil); err != nil {
		return nil, err
	}
	return e.participants(ctx, electionRules)
}

// Participants returns the candidates as Election.Participants does, whether or not the Latch was
// started. Curator: LeaderLatch.getParticipants.
func (l *Latch) Participants(ctx context.Context) ([]recipes.Participant, error) {
	if err := check.Call(ctx, "leader", "Latch", l.made()); err != nil {
		return nil, err
	}
	return l.participants(ctx, latchRules)
}

// Observe returns a sequence of the leaders on path, of an Election or a Latch: the leader now, and
// a new value whenever it changes. The zero Participant means that there is none. Its Holds is
// false. Observe does not stand for election. It may skip short terms, and may be slightly stale.
// The id of a leader is the Data of its node.
//
//	for leads, err := range leader.Observe(ctx, client, "/service/leader") {
//
// An error means that the leader is not known any more. If no server can be reached, it comes when
// the session is lost and the client's retry policy is exhausted, by default after 15 to 20 seconds
// more. After an error of the connection the sequence continues, and yields the leader when it is
// known again. It ends after framework.ErrClosed, after other refusals of the servers, and after an
// error for invalid arguments. When ctx ends it ends without an error.
//
// It costs one watch on the leader's node, for any number of observers of one client. While there
// is no candidate the watch is on the path. A path without candidates costs 300 bytes and about one
// read in a minute, which verifies the watch, until the sequence ends: end ctx for paths that are
// not needed any more. To get only the current leader, break after the first value. Curator:
// getLeader, which has to be called again and again.
func Observe(ctx context.Context, c *framework.Client, path string) iter.Seq2[recipes.Participant, error] {
	return func(yield func(recipes.Participant, error) bool) {
		if ctx != nil && ctx.Err() != nil {
			return
		}
		if err := checkObserve(ctx, c, path); err != nil {
			yield(recipes.Participant{}, err)
			return
		}
		observe(ctx, queue.NewQueue(c, path, queue.Rules{Conflicting: kinds}, nil), yield)
	}
}

func checkObserve(ctx context.Context, c *framework.Client, path string) error {
	if err := check.Call(ctx, "leader", "", true); err != nil {
		return err
	}
	if err := check.Path(c, path); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return nil
}

func observe(ctx context.Context, q *queue.Queue, yield func(recipes.Participant, error) bool) {
	failures, known, last := 0, false, recipes.Participant{}
	for {
		first, watch, err := participants.Watch(ctx, q, kinds...)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failed := fmt.Errorf("observe %s: %w", q.Path(), err)
			if !yield(recipes.Participant{}, failed) || !isTransient(err) ||
				pause.For(ctx, nil, pause.After(failures)) != nil {
				return
			}
			failures, known = failures+1, false
			continue
		}
		if (!known || first.Node != last.Node || first.Token != last.Token) && !yield(first, nil) {
			return
		}
		failures, known, last = 0, true, first
		select {
		case <-watch.Fired():
		case <-ctx.Done():
			return
		}
	}
}
