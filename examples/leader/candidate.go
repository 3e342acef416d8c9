package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/examples/internal/crew"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

// job is what a candidate is told when it starts.
type job struct {
	Number  int
	Connect string // of ZooKeeper
	Path    string // of the election
	Session time.Duration
	Witness string // its URL
}

// name is what others see.
func name(number int) string { return fmt.Sprintf("candidate %d", number) }

// candidacy is the life of a candidate.
func candidacy(ctx context.Context, j job) (err error) {
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	// Everybody who names the same path stands for the same office.
	election, err := leader.New(client, j.Path, leader.WithID(name(j.Number)))
	if err != nil {
		return err
	}
	c := candidate{j.Number, crew.NewRemote[visit, answer]("witness", j.Witness)}
	return election.Run(ctx, c.lead) // again and again, until ctx ends
}

type candidate struct {
	number  int
	witness crew.Remote[visit, answer]
}

// pace is how long a leader rests between two things that it does.
const pace = 100 * time.Millisecond

// lead is called when we are elected. To return is to resign. It acts until it is asked to resign, or has lost the leadership.
func (c candidate) lead(ctx context.Context, t *leader.Term) error {
	for leads(ctx, t) {
		a, err := c.tell(ctx, t, stepAct)
		switch {
		case err == nil && a.Resign:
			// The witness is told before we resign, for there may be another leader before lead has returned to Run.
			_, err := c.tell(ctx, t, stepResign)
			return err
		case err != nil && leads(ctx, t):
			return err // for a reason of its own
		}
		rest(ctx)
	}
	if errors.Is(context.Cause(ctx), crew.ErrFarewell) {
		return nil
	}
	// Somebody else may lead already. What is left to do must not need the leadership, and not its context either.
	_, err := c.tell(context.WithoutCancel(ctx), t, stepLost)
	return err
}

// leads is asked before each deed. The context ends with the leadership too, but by a timer, which may go off a moment later in a process
// that has been paused; the term compares clocks when it is asked, and so knows at once. The context also ends for other reasons.
func leads(ctx context.Context, t *leader.Term) bool { return t.Err() == nil && ctx.Err() == nil }

// tell sends the token along, because nobody can know for sure that it was not paused right after it had asked if it leads.
func (c candidate) tell(ctx context.Context, t *leader.Term, step string) (answer, error) {
	v := visit{Candidate: c.number, Token: t.Token(), Until: t.ValidUntil()}
	if why := cmp.Or(t.Err(), context.Cause(ctx)); why != nil {
		v.Why = why.Error()
	}
	return c.witness.Do(ctx, step, v)
}

func rest(ctx context.Context) {
	select {
	case <-time.After(pace):
	case <-ctx.Done():
	}
}
