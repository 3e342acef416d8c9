package main

import (
	"context"
	"errors"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

const electionPath = "/tour/election"

// candidate leads until resign is closed, once.
type candidate struct {
	*leader.Election
	leads  chan int64 // the token of the term
	resign chan struct{}
}

func newCandidate(client *framework.Client, id string) (*candidate, error) {
	once := leader.WithRequeue(func(error) bool { return false })
	e, err := leader.New(client, electionPath, leader.WithID(id), once)
	return &candidate{e, make(chan int64, 1), make(chan struct{})}, err
}

// run stands for election. The function that it gives to Run works for the time of one term.
func (c *candidate) run(ctx context.Context) (struct{}, error) {
	return struct{}{}, c.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		c.leads <- term.Token()
		select {
		case <-c.resign:
			return nil
		case <-ctx.Done(): // the term is lost, or the program ends
			return context.Cause(ctx)
		}
	})
}

// showLeader has Ann lead, resign, and Bob lead after her.
func showLeader(ctx context.Context, t *tour) error {
	ann, err := newCandidate(t.ann, "ann")
	if err != nil {
		return err
	}
	bob, err := newCandidate(t.bob, "bob")
	if err != nil {
		return err
	}
	annRuns := start(t, func() (struct{}, error) { return ann.run(ctx) })
	first, err := t.leads(ctx, "Ann", ann)
	if err != nil {
		return err
	}
	bobRuns := start(t, func() (struct{}, error) { return bob.run(ctx) })
	if err := waitQueue(ctx, bob, 2); err != nil {
		return err
	}
	t.call("Bob", "election.Run(ctx, lead)", "waits")
	if err := t.observe(ctx); err != nil {
		return err
	}
	close(ann.resign)
	if _, err := annRuns.result(); err != nil {
		return err
	}
	t.call("Ann", "lead returns", "resigned")
	second, err := t.leads(ctx, "Bob", bob)
	if err != nil {
		return err
	}
	t.call("Bob", "term.Token()", "larger than Ann's: %t", second > first)
	close(bob.resign)
	_, err = bobRuns.result()
	return err
}

// leads waits until a candidate leads.
func (t *tour) leads(ctx context.Context, client string, c *candidate) (token int64, err error) {
	select {
	case token = <-c.leads:
		t.call(client, "election.Run(ctx, lead)", "leads, token %d", token)
		return token, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// observe prints the leader.
func (t *tour) observe(ctx context.Context) error {
	for now, err := range leader.Observe(ctx, t.bob, electionPath) {
		if err != nil {
			return err
		}
		t.call("Bob", "range leader.Observe(ctx, client, path)", "%s leads", now.Data)
		return nil
	}
	return errors.Join(errors.New("no leader was observed"), ctx.Err())
}
