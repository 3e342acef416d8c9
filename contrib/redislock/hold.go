package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/recipes"
)

// held is a lock that was acquired.
type held struct {
	*Lock
	owner string
	token int64
	until atomic.Pointer[time.Time]

	lost     chan struct{}
	reason   error           // set before lost is closed
	renewing context.Context // ends when the release begins
	stop     context.CancelFunc
	released chan struct{} // closed when the release is done
}

// hold returns the hold of a key that is ours until then. Its goroutine, which renews the key, ends
// with the release, so Close waits for that.
func (l *Lock) hold(owner string, token int64, until time.Time) (*recipes.Hold, error) {
	h := &held{
		Lock: l, owner: owner, token: token, lost: make(chan struct{}), released: make(chan struct{}),
	}
	h.until.Store(&until)
	h.renewing, h.stop = context.WithCancel(context.Background())
	l.c.work.Go(h.keep)
	hold, err := recipes.HoldForeign(recipes.ForeignHold{
		Name: l.Key(), Token: token,
		Until: func() time.Time { return *h.until.Load() },
		Lost:  h.lost, Reason: func() error { return h.reason },
		Release: h.release, Within: min(l.c.cfg.ttl, 10*time.Second),
		Go:     func(fn func()) bool { l.c.work.Go(fn); return true },
		Logger: l.c.cfg.log, Metrics: l.c.cfg.metrics,
	})
	if err != nil && !errors.Is(err, recipes.ErrForeignLost) {
		err = errors.Join(err, h.release(l.c.open))
	}
	return hold, err
}

// keep renews the key until the hold is lost or released.
func (h *held) keep() {
	defer func() { <-h.released }()
	defer h.stop()
	for pause := h.c.cfg.ttl / 3; ; {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-h.renewing.Done():
			timer.Stop()
			return
		case <-h.c.open.Done():
			timer.Stop()
			h.lose(ErrClosed)
			return
		}
		begun := time.Now()
		owner, err := h.c.ask(h.renewing, renewScript, h.keys[:1], h.owner, h.c.ttl())
		switch {
		case h.renewing.Err() != nil:
			return
		case err != nil: // the key is ours until its time is over, for all that is known
			pause = h.c.cfg.ttl / 20
		case owner == h.owner:
			until := h.c.until(begun)
			h.until.Store(&until)
			pause = h.c.cfg.ttl / 3
		default:
			h.lose(lossOf(owner))
			return
		}
	}
}

func (h *held) lose(reason error) {
	h.reason = reason
	close(h.lost)
}

// lossOf returns why a hold is lost whose key has another owner.
func lossOf(owner any) error {
	if owner == "" {
		return errors.New("the key was deleted, or has expired")
	}
	return fmt.Errorf("the key belongs to %v", owner)
}

// release deletes the key. It is called once.
func (h *held) release(ctx context.Context) error {
	defer close(h.released)
	h.stop()
	ours, err := h.c.release(ctx, h.Lock, h.owner, h.token)
	if err == nil && !ours {
		return fmt.Errorf("%w: the key was deleted, or has expired, and the lock was another holder's since",
			recipes.ErrForeignLost)
	}
	return err
}

// release deletes the key of a lock if it has this owner. It asks again until there is an answer or
// ctx ends, but does not ask again once the client closes. It reports whether the lock was not another
// owner's before.
func (c *Client) release(ctx context.Context, l *Lock, owner string, token int64) (ours bool, err error) {
	for failures := 0; ; failures++ {
		last := c.open.Err() != nil
		answer, err := c.ask(ctx, releaseScript, l.keys, owner, token, l.ch)
		switch {
		case err == nil: // after a failure 0 may be the answer to a repeated request
			return answer == int64(1) || failures > 0, nil
		case last || ctx.Err() != nil || isAnswer(err):
			return false, err
		}
		timer := time.NewTimer(backoff(failures))
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-c.open.Done():
		}
		timer.Stop()
	}
}
