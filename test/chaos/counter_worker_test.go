package chaos

import (
	"context"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
)

// Each worker has a digit of a counter of its own, to which it adds one. So each sum shows the number of
// additions of each worker.
const (
	digitBits    = 15
	maxAdditions = 1<<digitBits - 1 // of a worker to one counter
)

// add adds to the worker's digit, until the round ends. Every fourth addition is given up after a while.
func (c *contender) add(path string) error {
	number, err := counter.NewAtomic(c.w.client, path)
	if err != nil {
		return err
	}
	for n := 0; n < maxAdditions && !c.ended(); n++ {
		ctx, cancel := c.waiting, context.CancelFunc(func() {})
		if c.random.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(c.waiting, below(c.random, 300*time.Millisecond))
		}
		t := turn{Kind: kindAdd, Lock: path, Called: now()}
		t.Token, err = number.Add(ctx, 1<<(digitBits*c.w.Number))
		cancel()
		t.To, t.Outcome = now(), framework.OutcomeOf(err)
		if err != nil {
			t.Lost = err.Error()
		}
		c.w.report(t)
		if t.Outcome != framework.Unknown { // otherwise an answer is missing
			c.check(err, path)
		}
		c.pause(below(c.random, 100*time.Millisecond))
	}
	return nil
}
