package leader

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Participant is a candidate. Curator: Participant.
type Participant struct {
	// ID identifies the candidate: see WithID. It is recipes.RevokeMessage once a client asks for
	// the leadership: see Term.Revoked.
	ID string
	// Leader means that the candidate is first in the queue. It may not lead yet, because it has
	// not noticed that or waits as WithLockDelay says. Its own client may have ended its term
	// already.
	Leader bool
	recipes.Participant
}

// Leader is the participant that leads. The zero Leader means that there is none.
type Leader = Participant

func participant(p recipes.Participant, first bool) Participant {
	return Participant{string(p.Data), first, p}
}

// candidates returns the queue of the candidates of either kind.
func candidates(ctx context.Context, c *framework.Client, path string) (*queue.Queue, error) {
	err := queue.CheckCall(ctx, "leader", "", true)
	if err == nil {
		if err = queue.CheckPath(c, path); err != nil {
			err = fmt.Errorf("leader: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return queue.NewQueue(c, path, queue.Rules{}, nil), nil
}

var kinds = append(slices.Clone(electionRules.Conflicting), latchRules.Conflicting...)

// Participants returns the candidates of an Election or a Latch on path, also those of Curator: the
// leader first, then the others in the order of the queue. It is empty if there are none, or no
// such path. Curator: getParticipants.
func Participants(ctx context.Context, c *framework.Client, path string) ([]Participant, error) {
	q, err := candidates(ctx, c, path)
	if err != nil {
		return nil, err
	}
	all, err := q.Participants(ctx, kinds...)
	if err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	var participants []Participant
	for i, p := range all {
		participants = append(participants, participant(p, i == 0))
	}
	return participants, nil
}

// Observe returns a sequence of the leaders on path: the leader now, and a new value whenever it
// changes. The zero Leader means that there is none. Observe does not stand for election. It may
// skip short terms, and may be slightly stale.
//
//	for l, err := range leader.Observe(ctx, client, "/service/leader") {
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
func Observe(ctx context.Context, c *framework.Client, path string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if ctx != nil && ctx.Err() != nil {
			return
		}
		q, err := candidates(ctx, c, path)
		if err != nil {
			yield(Leader{}, err)
			return
		}
		observe(ctx, q, yield)
	}
}

func observe(ctx context.Context, q *queue.Queue, yield func(Leader, error) bool) {
	wait, known, last := firstPause, false, Leader{}
	for {
		first, watch, err := q.Watch(ctx, kinds...)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !yield(Leader{}, fmt.Errorf("leader: %w", err)) || !isTransient(err) || pause(ctx, nil, wait) != nil {
				return
			}
			known, wait = false, min(2*wait, lastPause)
			continue
		}
		now := participant(first, first.Node != "")
		if (!known || now.Node != last.Node || now.Token != last.Token) && !yield(now, nil) {
			return
		}
		wait, known, last = firstPause, true, now
		select {
		case <-watch.Fired():
		case <-ctx.Done():
			return
		}
	}
}
