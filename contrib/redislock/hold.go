package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

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
	pending  bool          // the release had no answer; set before released is closed
}

// hold returns the hold of a lock whose key was set by a request sent at begun. Its goroutine, which
// renews the lock, ends with the release, so Close waits for that.
func (l *Lock) hold(g grant, begun time.Time) (*recipes.Hold, error) {
	h := &held{Lock: l, grant: g, lost: make(chan struct{}), released: make(chan struct{})}
	pause := h.extend(begun)
	h.renewing, h.stop = context.WithCancel(context.Background())
	l.c.work.Go(func() { h.keep(pause) })
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

// extend notes that a request that was sent at begun has set or renewed the key. It returns the pause until
// the next renewal, which comes a third of the time to live after that request.
func (h *held) extend(begun time.Time) (pause time.Duration) {
	until := h.c.until(begun)
	h.until.Store(&until)
	return time.Until(begun.Add(h.c.cfg.ttl / 3))
}

// keep renews the lock until the hold is lost or released. A release without an answer is repeated.
func (h *held) keep(pause time.Duration) {
	h.renew(pause)
	h.stop()
	<-h.released
	if h.pending && h.c.open.Err() == nil {
		h.clean(h.owner)
	}
}

// renew renews the lock after a pause, again and again, until the hold is lost or its release begins.
func (h *held) renew(pause time.Duration) {
	for {
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
			pause = h.extend(begun)
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
	h.pending = err != nil && !isAnswer(err)
	if err == nil && !ours {
		return fmt.Errorf("%w: the key was deleted, or has expired, before the release",
			recipes.ErrForeignLost)
	}
	return err
}

// clean deletes what an owner may have left, while the key may live. It warns if it gets no answer.
func (l *Lock) clean(owner string) {
	ctx, cancel := context.WithTimeout(context.Background(), l.c.cfg.ttl)
	defer cancel()
	if _, err := l.release(ctx, owner); err != nil {
		const warning = "a key that may be left was not deleted: it ends by its time to live"
		l.c.cfg.log.Named("redislock").Warn(warning, zap.String("path", l.Key()), zap.Error(err))
	}
}

// release releases what an owner has of the lock. It asks again until there is an answer or ctx ends,
// but does not ask again once the client closes. It reports whether the lock was the owner's to the end.
func (l *Lock) release(ctx context.Context, owner string) (ours bool, err error) {
	for failures := 0; ; failures++ {
		ours, err := ask(ctx, l.c, func(ctx context.Context) (bool, error) {
			return l.kind.release(ctx, owner)
		})
		switch {
		case isOfAnotherKind(err): // the lock was not ours to the end
			return false, nil
		case err == nil: // a repeated request has the answer of the first one
			return ours, nil
		case ctx.Err() != nil || l.c.open.Err() != nil || isAnswer(err):
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
