package chaos

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// standElection leads for a while each time that the worker is elected. When the round ends it waits
// until the worker has been elected once more, unless the round gives up what was begun.
func (c *contender) standElection() error {
	election, err := leader.New(c.w.client, siegeElection)
	if err != nil {
		return err
	}
	standing, leave := context.WithCancel(c.waiting)
	defer leave()
	return election.Run(standing, func(ctx context.Context, term *leader.Term) error {
		if c.ended() {
			defer leave()
		}
		c.w.report(c.hold(ctx, term, kindTerm, siegeElection)[0])
		return nil
	})
}

// standLatch does the same with a latch of its own, and resigns. Some latches are closed while they
// lead.
func (c *contender) standLatch() error {
	for last := false; !last && c.waiting.Err() == nil; {
		latch, err := leader.NewLatch(c.w.client, siegeLatch)
		if err != nil {
			return err
		}
		err = latch.Start(c.waiting)
		for stays := true; err == nil && stays; {
			var term *leader.Term
			if term, err = latch.Await(c.waiting); err != nil {
				break
			}
			last = c.ended()
			c.w.report(c.hold(c.waiting, term, kindLatch, siegeLatch)[0])
			if stays = !last && c.random.IntN(4) > 0; stays {
				c.checkRelease(term.Resign(), siegeLatch)
				c.pause(below(c.random, 40*time.Millisecond))
			}
		}
		c.checkRelease(latch.Close(), siegeLatch)
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

func TestRoundEndsWhenItsCandidatesAreElectedOnceMore(t *testing.T) {
	server := zktest.Start(t)
	other := testzk.Connected(t, server.Addr())
	resign := elect(t, other)
	for _, order := range []string{orderCancel, orderDrain} {
		t.Run(order, func(t *testing.T) {
			var mu sync.Mutex
			var kinds []string
			report := func(r turn) {
				mu.Lock()
				defer mu.Unlock()
				if r.Kind != kindAdd {
					kinds = append(kinds, r.Kind)
				}
			}
			w := &worker{client: testzk.Connected(t, server.Addr()), report: report, random: randomOf(1)}
			b := startRound(testzk.Context(t), w, nil, "/counter")
			testzk.Eventually(t, func() bool {
				return len(candidates(t, other, siegeElection)) == 2 && len(candidates(t, other, siegeLatch)) == 2
			}, "the worker does not stand for election")
			finished := make(chan struct{})
			go func() {
				b.finish(order == orderCancel)
				close(finished)
			}()
			if order == orderDrain {
				testzk.Eventually(t, b.ended, "the round does not end")
				require.Len(t, candidates(t, other, siegeElection), 2, "the worker has left the election")
				resign()
			}
			<-finished
			mu.Lock()
			defer mu.Unlock()
			if order == orderDrain {
				require.ElementsMatch(t, []string{kindTerm, kindLatch}, kinds)
			} else {
				require.Empty(t, kinds)
			}
		})
	}
}

// elect has a client lead the election and that of latches, until the returned function is called.
func elect(t *testing.T, c *framework.Client) (resign func()) {
	election, err := leader.New(c, siegeElection)
	require.NoError(t, err)
	latch, err := leader.NewLatch(c, siegeLatch)
	require.NoError(t, err)
	require.NoError(t, latch.Start(testzk.Context(t)))
	_, err = latch.Await(testzk.Context(t))
	require.NoError(t, err)
	standing, leave := context.WithCancel(testzk.Context(t))
	led, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		_ = election.Run(standing, func(ctx context.Context, _ *leader.Term) error {
			close(led)
			<-ctx.Done()
			return nil
		})
	}()
	<-led
	return func() {
		leave()
		<-left
		require.NoError(t, latch.Close())
	}
}

func candidates(t *testing.T, c *framework.Client, path string) []string {
	t.Helper()
	names, _, err := c.Children(testzk.Context(t), path)
	require.NoError(t, err)
	return names
}
