package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// settles checks that each node of the queue belongs to a holder or a waiter, soon after the client
// can reach the servers again.
func (c *p04Cell) settles(ctx context.Context) error {
	if err := c.client.WaitConnected(ctx); err != nil {
		return err
	}
	return p04Until(ctx, p04Soon, func(ctx context.Context) error {
		if !c.waits() {
			return c.owned(ctx, 0)
		}
		s, err := c.client.Session(ctx)
		if err != nil {
			return err
		}
		return c.owned(ctx, s.ID())
	})
}

func (c *p04Cell) waits() bool {
	if !c.stays() || c.releases() {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// owned checks that the queue has no nodes but those of the holder and of the given session. Either
// of them may be absent.
func (c *p04Cell) owned(ctx context.Context, session int64) error {
	queue, err := c.queue.Participants(ctx)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	rest := queue
	if c.holder != nil {
		if len(rest) == 0 || rest[0].Node != c.holder.Path() {
			return fmt.Errorf("the holder is not first in the queue: %+v", queue)
		}
		rest = rest[1:]
	}
	if session != 0 {
		if len(rest) == 0 || rest[0].Session != session {
			return fmt.Errorf("the waiter of session %#x is not next in the queue: %+v", session, queue)
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("nodes without an owner: %+v", rest)
	}
	return nil
}

func (c *p04Cell) inQueue(ctx context.Context, n int) error {
	return p04Until(ctx, testzk.Patience, func(ctx context.Context) error {
		queue, err := c.queue.Participants(ctx)
		if err == nil && len(queue) != n {
			err = fmt.Errorf("want %d nodes in the queue: %+v", n, queue)
		}
		return err
	})
}

// passesOn checks that the lock passes from the holder to the client under test, if it waits, and
// then to a new waiter.
func (c *p04Cell) passesOn(ctx context.Context) error {
	if c.holder != nil {
		if err := c.holder.Release(); err != nil {
			return err
		}
		c.holder = nil
	}
	if c.stays() {
		<-c.done
	}
	if err := c.ended(); err != nil {
		return err
	}
	return c.admitsWaiter(ctx)
}

// admitsWaiter checks that a new waiter gets the lock soon.
func (c *p04Cell) admitsWaiter(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		waiter, err := c.queue.Acquire(ctx)
		if err == nil {
			err = waiter.Release()
		}
		result <- err
	}()
	var outcome error
	late := p04Until(ctx, p04Soon, func(ctx context.Context) error {
		select {
		case outcome = <-result:
			return nil
		default:
			queue, err := c.queue.Participants(ctx)
			return errors.Join(fmt.Errorf("the new waiter still waits: %+v", queue), err)
		}
	})
	return errors.Join(late, outcome)
}

// ended checks how the client's call ended, and releases the lock if it was granted.
func (c *p04Cell) ended() error {
	want := map[bool]error{true: context.Canceled, false: context.DeadlineExceeded}[c.cancels]
	switch {
	case !c.stays():
		if !errors.Is(c.err, want) {
			return fmt.Errorf("Acquire returned %v, want %v", c.err, want)
		}
	case c.releases():
		if c.err != nil && !errors.Is(c.err, recipes.ErrReleasePending) {
			return fmt.Errorf("release: %w", c.err)
		}
	case c.err != nil:
		return fmt.Errorf("the waiter: %w", c.err)
	default:
		err := c.hold.Release()
		if errors.Is(err, framework.ErrSessionLost) {
			return errP04Missed
		}
		return err
	}
	return nil
}

// p04Until repeats a check until it finds nothing wrong. Each call counts for at most a twentieth
// of a second. A call that takes longer shows that the machine does not let the process run.
func p04Until(ctx context.Context, within time.Duration, wrong func(context.Context) error) error {
	const pause, most = 5 * time.Millisecond, 50 * time.Millisecond
	for spent := time.Duration(0); ; {
		began := time.Now()
		err := wrong(ctx)
		if err == nil {
			return nil
		}
		if spent >= within || ctx.Err() != nil {
			return fmt.Errorf("not within %v: %w", within, err)
		}
		time.Sleep(pause)
		spent += min(time.Since(began), most)
	}
}
