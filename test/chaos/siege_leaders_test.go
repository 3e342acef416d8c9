package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/docent-zk/docent/recipes/leader"
)

// standElection leads for a while each time that the worker is elected, until the round ends.
func (b *round) standElection() error {
	election, err := leader.New(b.w.client, siegeElection)
	if err != nil {
		return err
	}
	return election.Run(b.leading, func(ctx context.Context, term *leader.Term) error {
		b.w.report(b.hold(ctx, term, kindTerm, siegeElection)[0])
		return nil
	})
}

// standLatch does the same with a latch of its own, and resigns. Some latches are closed while they
// lead.
func (b *round) standLatch() error {
	for !b.ended() {
		latch, err := leader.NewLatch(b.w.client, siegeLatch)
		if err != nil {
			return err
		}
		err = latch.Start(b.leading)
		for stays := true; err == nil && stays; {
			var term *leader.Term
			if term, err = latch.Await(b.leading); err != nil {
				break
			}
			b.w.report(b.hold(b.leading, term, kindLatch, siegeLatch)[0])
			if stays = rand.N(4) > 0; stays {
				_ = term.Resign() // what cannot be deleted at once is deleted in the background
				b.pause(rand.N(40 * time.Millisecond))
			}
		}
		_ = latch.Close()
		if !isExpected(err, leader.ErrLatchClosed) {
			return err
		}
	}
	return nil
}
