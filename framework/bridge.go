package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/hooks"
	"github.com/docent-zk/docent/retry"
)

// Package bridge has the methods of a client that recipes need and programs do not. It gets them
// through package hooks.

func init() {
	hooks.Client = func(c any) any { return clientBridge{c.(*Client)} }
	hooks.Session = func(s any) any { return sessionBridge{s.(*Session)} }
	hooks.Watch = func(w any) any { return watchBridge{w.(*Watch)} }
	hooks.Behind = func(fn func()) any { return behind(fn) }
	hooks.Named = func() any { return CreateOption(named) }
}

// clientBridge implements bridge.Client.
type clientBridge struct{ c *Client }

func (b clientBridge) Validate() error { return b.c.validate() }

func (b clientBridge) Key(path string) any { return b.c.key(path) }

func (b clientBridge) Go(fn func()) bool { return b.c.spawn(fn) }

func (b clientBridge) Watch(
	ctx context.Context, path string, mode WatchMode, fn func(WatchEvent),
) (*PersistentWatch, error) {
	w := &PersistentWatch{mode: mode, tell: fn, unhear: func() {}, tellBegin: true}
	return b.c.watch(ctx, path, w, checkWatch(mode, fn))
}

func (b clientBridge) Room(ops ...Op) (int, error) {
	t := b.c.transaction(ops)
	return maxRequest - requestOverhead - t.size, t.call.err
}

func (b clientBridge) Disconnected() error {
	if _, _, err := b.c.core.live(); err != nil || b.c.State().IsConnected() {
		return err
	}
	return b.c.core.connectionError()
}

func (b clientBridge) Metrics() metrics.Metrics { return b.c.metrics() }

func (b clientBridge) AddHeld(n int64, l metrics.Labels) { b.c.addHeld(n, l) }

func (b clientBridge) RetryPolicy() retry.Policy { return b.c.core.cfg.retry }

func (b clientBridge) WaitWarning() time.Duration { return b.c.core.cfg.waitWarning }

func (b clientBridge) Locals() *sync.Map { return &b.c.core.locals }

// sessionBridge implements bridge.Session.
type sessionBridge struct{ s *Session }

func (b sessionBridge) Key(path string) any { return b.s.key(path) }

func (b sessionBridge) LongestTimeout() time.Duration { return b.s.bound.longestTimeout() }

func (b sessionBridge) Metrics() metrics.Metrics { return b.s.metrics() }

func (b sessionBridge) AddHeld(n int64, l metrics.Labels) { b.s.addHeld(n, l) }

func (b sessionBridge) DeleteLater(paths ...string) { b.s.deleteLater(paths...) }

func (b sessionBridge) Locals() *sync.Map { return &b.s.bound.locals }

func (b sessionBridge) Go(fn func()) bool {
	return b.s != nil && b.s.bound != nil && fn != nil && b.s.bound.spawn(fn)
}

// watchBridge implements bridge.Watch.
type watchBridge struct{ w *Watch }

func (b watchBridge) Then(fn func()) (stop func()) {
	if b.w.table.onFire(b.w, &fn) {
		fn()
	}
	return func() { b.w.table.forget(b.w, &fn) }
}

func (b watchBridge) Drop() { b.w.table.drop(b.w) }

func (b watchBridge) Unbroken() bool {
	b.w.table.mu.Lock()
	defer b.w.table.mu.Unlock()
	return !b.w.stale && b.w.Event() == 0
}

// validate returns an error if the client is nil, a zero value, or a view with an invalid
// namespace.
func (c *Client) validate() error {
	if c == nil {
		return fmt.Errorf("framework: client is nil")
	}
	return c.checkUsable(context.Background())
}

// spawn calls fn in a new goroutine that Close waits for, and reports whether it did. It does not
// if the client is closed.
func (c *Client) spawn(fn func()) bool {
	return c != nil && c.core != nil && fn != nil && c.core.spawn(fn)
}
