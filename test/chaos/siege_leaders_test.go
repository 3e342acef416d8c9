package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

// standElection leads for a while each time that the worker is elected. When the round ends it waits
// until the worker has been elected once more, unless the round gives up what was begun.
func (b *round) standElection() error {
	election, err := leader.New(b.w.client, siegeElection)
	if err != nil {
		return err
	}
	standing, leave := context.WithCancel(b.waiting)
	defer leave()
	return election.Run(standing, func(ctx context.Context, term *leader.Term) error {
		if b.ended() {
			defer leave()
		}
		b.w.report(b.hold(ctx, term, kindTerm, siegeElection)[0])
		return nil
	})
}

// standLatch does the same with a latch of its own, and resigns. Some latches are closed while they
// lead.
func (b *round) standLatch() error {
	for last := false; !last && b.waiting.Err() == nil; {
		latch, err := leader.NewLatch(b.w.client, siegeLatch)
		if err != nil {
			return err
		}
		err = latch.Start(b.waiting)
		for stays := true; err == nil && stays; {
			var term *leader.Term
			if term, err = latch.Await(b.waiting); err != nil {
				break
			}
			last = b.ended()
			b.w.report(b.hold(b.waiting, term, kindLatch, siegeLatch)[0])
			if stays = !last && rand.N(4) > 0; stays {
				b.checkRelease(term.Resign(), siegeLatch)
				b.pause(rand.N(40 * time.Millisecond))
			}
		}
		b.checkRelease(latch.Close(), siegeLatch)
		if !isExpected(err, leader.ErrLatchClosed) {
			return err
		}
	}
	return nil
}

// leadOnce wins an election and then one of latches.
func leadOnce(ctx context.Context, c *framework.Client) error {
	election, err1 := leader.New(c, siegeElection)
	latch, err2 := leader.NewLatch(c, siegeLatch)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	led := false
	standing, leave := context.WithCancel(ctx)
	defer leave()
	err := election.Run(standing, func(context.Context, *leader.Term) error {
		led = true
		leave()
		return nil
	})
	if !led {
		return err
	}
	err = latch.Start(ctx)
	if err == nil {
		_, err = latch.Await(ctx)
	}
	_ = latch.Close() // what is left is found later
	return err
}
