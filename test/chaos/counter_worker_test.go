package chaos

import (
	"context"
	"math/rand/v2"
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
func (b *round) add(path string) error {
	number, err := counter.NewAtomic(b.w.client, path)
	if err != nil {
		return err
	}
	for n := 0; n < maxAdditions && !b.ended(); n++ {
		ctx, cancel := b.waiting, context.CancelFunc(func() {})
		if rand.N(4) == 0 {
			ctx, cancel = context.WithTimeout(b.waiting, rand.N(300*time.Millisecond))
		}
		t := turn{Kind: kindAdd, Lock: path, Called: now()}
		t.Token, err = number.Add(ctx, 1<<(digitBits*b.w.Number))
		cancel()
		t.To, t.Outcome = now(), framework.OutcomeOf(err)
		if err != nil {
			t.Lost = err.Error()
		}
		b.w.report(t)
		if t.Outcome != framework.Unknown { // otherwise an answer is missing
			b.check(err, path)
		}
		b.pause(rand.N(100 * time.Millisecond))
	}
	return nil
}
