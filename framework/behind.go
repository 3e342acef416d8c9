package framework

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// Servers answer the requests of a connection in their order. A read that is sent behind a create,
// before the answer to the create, shows the state after the create. Both take one round trip.

// behind implements bridge.Behind.
func behind(fn func()) CreateOption { return func(c *creation) { c.behind = fn } }

// StartChildren implements bridge.Session.
func (b sessionBridge) StartChildren(path string, done func(children []string, err error)) {
	c, err := b.s.starts("list", path)
	if err != nil {
		done(nil, err)
		return
	}
	request, parse := watchKey{c.full, watchChildren}.request(false)
	start(b.s.bound, request, parse, func(r reading, err error) { done(r.children, c.ended(err)) })
}

// Together implements bridge.Session.
func (b sessionBridge) Together(fn func()) {
	if b.s == nil || b.s.bound == nil {
		fn()
		return
	}
	b.s.bound.conn.Together(fn)
}

// StartGetW implements bridge.Session.
func (b sessionBridge) StartGetW(path string, done func(data []byte, stat *zk.Stat, w *Watch, err error)) {
	c, err := b.s.starts("get", path)
	if err != nil {
		done(nil, nil, nil, err)
		return
	}
	key := watchKey{c.full, watchData}
	w, ask, watch := b.s.bound.watches.join(key)
	request, parse := key.request(watch)
	start(b.s.bound, request, parse, func(r reading, err error) {
		if ask {
			b.s.bound.answered(key, w, watch, r, err)
		}
		if err != nil {
			done(nil, nil, nil, c.ended(err))
			return
		}
		done(r.data, r.stat, &w.Watch, nil)
	})
}

// starts checks the arguments of an operation that does not wait.
func (s *Session) starts(name, path string) (call, error) {
	var o ops
	if s != nil {
		o = s.ops
	}
	c := o.call(name, path, once)
	if err := o.checkUsable(context.Background()); err != nil {
		return c, c.failed(NotApplied, err)
	}
	if c.err != nil {
		return c, c.failed(NotApplied, c.err)
	}
	return c, nil
}

// ended returns the error of the operation from the error of its only attempt.
func (c call) ended(err error) error {
	if err == nil {
		return nil
	}
	return c.failed(OutcomeOf(err), err)
}
