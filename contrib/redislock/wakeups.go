package redislock

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// wakeups wakes the waiters of a client when a release is published. All share one subscription. Of
// the waiters of one lock only the first one asks Redis; the next one follows when it leaves.
type wakeups struct {
	redis Redis
	log   *zap.Logger
	pause time.Duration // between subscriptions

	mu      sync.Mutex
	waiting map[string][]*waiter // by channel of Redis, in the order in which they came
	changed chan struct{}        // waiting has other channels; has room for one
}

// waiter waits for the releases of one lock.
type waiter struct {
	*wakeups
	channel string
	woken   chan struct{} // receives when the waiter should ask; has room for one
}

func newWakeups(r Redis, cfg config) *wakeups {
	return &wakeups{
		redis: r, log: cfg.log.Named("redislock"), pause: min(cfg.poll, time.Second),
		waiting: map[string][]*waiter{}, changed: make(chan struct{}, 1),
	}
}

// wait returns a waiter. It is woken when a message comes, when messages may have been missed, and
// when it becomes the first one.
func (w *wakeups) wait(channel string) *waiter {
	x := &waiter{w, channel, make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[channel] = append(w.waiting[channel], x); len(w.waiting[channel]) == 1 {
		notify(w.changed)
	}
	return x
}

// first reports whether no other waiter of the client came before.
func (x *waiter) first() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.waiting[x.channel][0] == x
}

// leave ends the wait.
func (x *waiter) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.waiting[x.channel]
	wasFirst := all[0] == x
	all = slices.DeleteFunc(all, func(other *waiter) bool { return other == x })
	x.waiting[x.channel] = all
	switch {
	case len(all) == 0:
		delete(x.waiting, x.channel)
		notify(x.changed)
	case wasFirst:
		notify(all[0].woken)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will be received
	}
}

func (w *wakeups) wake(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := w.waiting[channel]; len(all) > 0 {
		notify(all[0].woken)
	}
}

// run keeps a subscription while something waits, until ctx ends.
func (w *wakeups) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !w.any() {
			select {
			case <-w.changed:
			case <-ctx.Done():
			}
			continue
		}
		if err := w.follow(ctx); ctx.Err() == nil {
			w.log.Warn("waiters poll: the subscription to releases was lost", zap.Error(err))
			sleep(ctx, jitter(w.pause))
		}
	}
}

func (w *wakeups) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// jitter returns a half to the whole of d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// follow subscribes to what is waited for, until the subscription or ctx ends.
func (w *wakeups) follow(ctx context.Context) error {
	sub, err := w.redis.Subscribe(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var once sync.Once // a subscription to nothing may have nothing to receive
	var receiving sync.WaitGroup
	defer func() {
		cancel(nil)
		if err := sub.Close(); err != nil {
			w.log.Debug("close a subscription", zap.Error(err))
		}
		receiving.Wait()
	}()
	for have := map[string]bool{}; ; {
		if err := w.adjust(ctx, sub, have); err != nil {
			return err
		}
		once.Do(func() { receiving.Go(func() { cancel(w.receive(ctx, sub)) }) })
		select {
		case <-w.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// adjust subscribes to the channels that are waited for, and to no others.
func (w *wakeups) adjust(ctx context.Context, sub Subscription, have map[string]bool) error {
	add, drop := w.differences(have)
	if len(add) > 0 {
		if err := sub.Subscribe(ctx, add...); err != nil {
			return err
		}
	}
	if len(drop) > 0 {
		if err := sub.Unsubscribe(ctx, drop...); err != nil {
			return err
		}
	}
	return nil
}

// differences returns the channels that are missing in have, and those to drop, and changes have.
func (w *wakeups) differences(have map[string]bool) (add, drop []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for channel := range w.waiting {
		if !have[channel] {
			have[channel] = true
			add = append(add, channel)
		}
	}
	for channel := range have {
		if w.waiting[channel] == nil {
			delete(have, channel)
			drop = append(drop, channel)
		}
	}
	return add, drop
}

// receive wakes waiters until the subscription ends.
func (w *wakeups) receive(ctx context.Context, sub Subscription) error {
	for {
		channel, err := sub.Receive(ctx)
		if err != nil {
			return err
		}
		w.wake(channel)
	}
}
