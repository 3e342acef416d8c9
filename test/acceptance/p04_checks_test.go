package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// settles checks that everybody in line holds or waits, soon after the victim can reach the servers again.
func (c *p04Cell) settles(ctx context.Context) error {
	if err := c.victim.WaitConnected(ctx); err != nil {
		return err
	}
	return p04Until(ctx, p04Soon, func(ctx context.Context) error {
		if !c.waits() {
			return c.owned(ctx, 0)
		}
		s, err := c.victim.Session(ctx)
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

// owned checks that nobody is in line but the holder, if there is one, and the session's only node, if one is given.
func (c *p04Cell) owned(ctx context.Context, session int64) error {
	line, err := c.line.Participants(ctx)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	rest := line
	if c.holder != nil {
		if len(rest) == 0 || rest[0].Node != c.holder.Path() {
			return fmt.Errorf("the holder is not first in line: %+v", line)
		}
		rest = rest[1:]
	}
	if session != 0 {
		if len(rest) == 0 || rest[0].Session != session {
			return fmt.Errorf("the waiter of session %#x is not next in line: %+v", session, line)
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("nodes that nobody owns: %+v", rest)
	}
	return nil
}

func (c *p04Cell) inLine(ctx context.Context, n int) error {
	return p04Until(ctx, testzk.Patience, func(ctx context.Context) error {
		line, err := c.line.Participants(ctx)
		if err == nil && len(line) != n {
			err = fmt.Errorf("want %d in line: %+v", n, line)
		}
		return err
	})
}

// goesOn checks that the lock passes from the holder to the victim, if it waits, and on to a newcomer.
func (c *p04Cell) goesOn(ctx context.Context) error {
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
	return c.welcomes(ctx)
}

// welcomes checks that a newcomer gets the lock soon.
func (c *p04Cell) welcomes(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		newcomer, err := c.line.Acquire(ctx)
		if err == nil {
			err = newcomer.Release()
		}
		result <- err
	}()
	err := errors.New("the newcomer still waits")
	late := p04Until(ctx, p04Soon, func(context.Context) error {
		select {
		case err = <-result:
			return nil
		default:
			return err
		}
	})
	return errors.Join(late, err)
}

// ended checks how the victim's call has ended, and gives the lock back if it got it.
func (c *p04Cell) ended() error {
	want := map[bool]error{true: context.Canceled, false: context.DeadlineExceeded}[c.cancels]
	switch {
	case !c.stays():
		if !errors.Is(c.err, want) {
			return fmt.Errorf("the victim's Acquire returned %v, want %v", c.err, want)
		}
	case c.releases():
		if c.err != nil && !errors.Is(c.err, recipes.ErrReleasePending) {
			return fmt.Errorf("the victim's release: %w", c.err)
		}
	case c.err != nil:
		return fmt.Errorf("the victim, who waits: %w", c.err)
	default:
		return c.hold.Release()
	}
	return nil
}

// p04Until asks again and again until there is nothing wrong any more. Each question counts for a twentieth of a second at most: if it takes
// longer then because this machine does not let the process run, its clients included.
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
