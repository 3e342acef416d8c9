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
	grant
	until atomic.Pointer[time.Time]

	lost     chan struct{}
	reason   error           // set before lost is closed
	renewing context.Context // ends when the release begins
	stop     context.CancelFunc
	released chan struct{} // closed when the release is done
}

// hold returns the hold of a lock that is ours until then. Its goroutine, which renews the lock, ends
// with the release, so Close waits for that.
func (l *Lock) hold(g grant, until time.Time) (*recipes.Hold, error) {
	h := &held{Lock: l, grant: g, lost: make(chan struct{}), released: make(chan struct{})}
	h.until.Store(&until)
	h.renewing, h.stop = context.WithCancel(context.Background())
	l.c.work.Go(h.keep)
	hold, err := recipes.HoldForeign(recipes.ForeignHold{
		Name: l.Key(), Token: g.token, Key: l.reentry,
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

// keep renews the lock until the hold is lost or released.
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
		owner, err := ask(h.renewing, h.c, func(ctx context.Context) (string, error) {
			return h.kind.renew(ctx, h.owner)
		})
		switch {
		case h.renewing.Err() != nil:
			return
		case isOfAnotherKind(err):
			h.lose(fmt.Errorf("the key is that of another kind of lock: %w", err))
			return
		case err != nil: // the lock is ours until its time is over, for all that is known
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

// lossOf returns why a hold is lost whose key has another owner, or none.
func lossOf(owner string) error {
	if owner == "" {
		return errors.New("the key was deleted, or has expired")
	}
	return fmt.Errorf("the key belongs to %v", owner)
}

// release releases the lock. It is called once.
func (h *held) release(ctx context.Context) error {
	defer close(h.released)
	h.stop()
	ours, err := h.Lock.release(ctx, h.owner)
	if err == nil && !ours {
		return fmt.Errorf("%w: the key was deleted, or has expired, before the release",
			recipes.ErrForeignLost)
	}
	return err
}

// release releases what an owner has of the lock. It asks again until there is an answer or ctx ends,
// but does not ask again once the client closes. It reports whether the lock was the owner's to the end.
func (l *Lock) release(ctx context.Context, owner string) (ours bool, err error) {
	for failures := 0; ; failures++ {
		last := l.c.open.Err() != nil
		ours, err := ask(ctx, l.c, func(ctx context.Context) (bool, error) {
			return l.kind.release(ctx, owner)
		})
		switch {
		case isOfAnotherKind(err): // the lock was not ours to the end
			return false, nil
		case err == nil: // after a failure false may be the answer to a repeated request
			return ours || failures > 0, nil
		case last || ctx.Err() != nil || isAnswer(err):
			return false, err
		}
		timer := time.NewTimer(backoff(failures))
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-l.c.open.Done():
		}
		timer.Stop()
	}
}
