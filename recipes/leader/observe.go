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
	ID     string // who it is: see WithID. recipes.RevokeMessage once somebody asks for the leadership: see Term.Revoked
	Leader bool   // it is first in line. It may not know yet, or not any more, or wait as WithLockDelay says
	recipes.Participant
}

// Leader is the participant who leads; the zero Leader is nobody.
type Leader = Participant

func participant(p recipes.Participant, first bool) Participant {
	return Participant{string(p.Data), first, p}
}

// line is a line of candidates of either kind.
func line(ctx context.Context, c *framework.Client, path string) (*queue.Queue, error) {
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

// Participants lists the candidates of an Election or a Latch on path, and those of Curator: the leader first, then those who would follow it. It
// is empty if there are none, or no such path. Curator: getParticipants.
func Participants(ctx context.Context, c *framework.Client, path string) ([]Participant, error) {
	q, err := line(ctx, c, path)
	if err != nil {
		return nil, err
	}
	all, err := q.Participants(ctx, kinds...)
	if err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	var candidates []Participant
	for i, p := range all {
		candidates = append(candidates, participant(p, i == 0))
	}
	return candidates, nil
}

// Observe reports who leads, now and whenever that changes, for those who do not stand: the zero Leader while nobody does. Of leaders that
// follow each other fast some may be left out. What is reported is what a server knew a moment ago.
//
//	for who, err := range leader.Observe(ctx, client, "/service/leader") {
//
// An error means that the leader is not known any more: if no server can be reached it comes when the session is lost and the client's
// retry policy has given up, by default after 15 to 20 seconds more. The sequence goes on after trouble with the connection, and
// reports the leader when it is known again; it ends after framework.ErrClosed, other refusals of the servers, and arguments that are
// wrong. When ctx ends it ends without an error. It costs a watch on the leader's node, however many observe through one client; while
// nobody stands, on the path. A path on which no candidate ever stands costs 300 bytes and one read each minute or so, by which the
// client makes sure of its watches, as long as the sequence goes on: end ctx for paths that are not needed any more. For who leads just now, break after the first. Curator: getLeader, which has to be called again and again.
func Observe(ctx context.Context, c *framework.Client, path string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if ctx != nil && ctx.Err() != nil {
			return
		}
		q, err := line(ctx, c, path)
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
			if !yield(Leader{}, fmt.Errorf("leader: %w", err)) || !passes(err) || pause(ctx, nil, wait) != nil {
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
