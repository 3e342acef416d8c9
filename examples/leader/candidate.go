package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

// job is what a candidate gets from its parent when it starts.
type job struct {
	Number   int
	Connect  string // of ZooKeeper
	Path     string // of the election
	Session  time.Duration
	Resource string // its URL
}

// name returns the ID of a candidate in the election.
func name(number int) string { return fmt.Sprintf("candidate %d", number) }

// runCandidate takes part in the election until ctx ends.
func runCandidate(ctx context.Context, j job) (err error) {
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	// All candidates that name the same path take part in the same election.
	election, err := leader.New(client, j.Path, leader.WithID(name(j.Number)))
	if err != nil {
		return err
	}
	c := candidate{j.Number, child.NewRemote[request, answer]("resource", j.Resource)}
	return election.Run(ctx, c.lead) // enters the election again after each term, until ctx ends
}

type candidate struct {
	number   int
	resource child.Remote[request, answer]
}

// pace is the pause of a leader between two requests.
const pace = 100 * time.Millisecond

// lead is called when this candidate is elected. It resigns by returning. It uses the resource
// until it is asked to resign, or until it has lost the leadership.
func (c candidate) lead(ctx context.Context, t *leader.Term) error {
	for leads(ctx, t) {
		a, err := c.send(ctx, t, stepAct)
		switch {
		case err == nil && a.Resign:
			// The resource must know before lead returns, for another leader may be elected before
			// Run has resumed.
			_, err := c.send(ctx, t, stepResign)
			return err
		case err != nil && leads(ctx, t):
			return err // not because of the leadership
		}
		rest(ctx)
	}
	if errors.Is(context.Cause(ctx), child.ErrStopped) {
		return nil
	}
	// Another candidate may lead already. What remains to be done must need neither the leadership
	// nor its context.
	_, err := c.send(context.WithoutCancel(ctx), t, stepLost)
	return err
}

// leads reports whether this candidate still leads. It is called before each request.
//
// The context ends with the leadership, too, but by a timer. In a process that was paused, the
// timer may fire a moment late. The term compares clocks in each call of Err, and so reports the
// end at once. The context also ends for other reasons.
func leads(ctx context.Context, t *leader.Term) bool { return t.Err() == nil && ctx.Err() == nil }

// send sends a request with the token. The check of the leadership is not enough: the process may
// be paused right after it.
func (c candidate) send(ctx context.Context, t *leader.Term, step string) (answer, error) {
	r := request{Candidate: c.number, Token: t.Token(), Until: t.ValidUntil()}
	if why := cmp.Or(t.Err(), context.Cause(ctx)); why != nil {
		r.Why = why.Error()
	}
	return c.resource.Do(ctx, step, r)
}

func rest(ctx context.Context) {
	select {
	case <-time.After(pace):
	case <-ctx.Done():
	}
}
