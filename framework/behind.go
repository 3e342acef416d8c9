package framework

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/internal/hooks"
)

// Servers answer the requests of a connection in their order. A read that is sent behind a create,
// before the answer to the create, shows the state after the create. Both take one round trip.

// named implements bridge.Named.
func named(c *creation) { c.named = true }

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
	b.StartRead(path, hooks.ReadData, true,
		func(data []byte, _ []string, stat *zk.Stat, w *Watch, err error) { done(data, stat, w, err) })
}

// kindsOfReads holds the kind of watch that a read sets, and its name in errors.
var kindsOfReads = map[hooks.ReadKind]struct {
	watch watchKind
	name  string
}{
	hooks.ReadData:     {watchData, "get"},
	hooks.ReadStat:     {watchExists, "exists"},
	hooks.ReadChildren: {watchChildren, "list"},
}

// StartRead implements bridge.Session.
func (b sessionBridge) StartRead(path string, kind hooks.ReadKind, watch bool,
	done func(data []byte, children []string, stat *zk.Stat, w *Watch, err error)) {
	c, err := b.s.starts(kindsOfReads[kind].name, path)
	if err != nil {
		done(nil, nil, nil, nil, err)
		return
	}
	key := watchKey{c.full, kindsOfReads[kind].watch}
	var w *watched
	var ask, set bool // set: the request sets the watch on the server
	if watch {
		w, ask, set = b.s.bound.watches.join(key)
	}
	request, parse := key.request(set)
	start(b.s.bound, request, parse, func(r reading, err error) {
		if ask {
			b.s.bound.answered(key, w, set, r, err)
		}
		switch {
		case err != nil:
			if watch {
				b.s.bound.watches.drop(&w.Watch)
			}
			done(nil, nil, nil, nil, c.ended(err))
		case watch:
			done(r.data, r.children, r.stat, &w.Watch, nil)
		default:
			done(r.data, r.children, r.stat, nil, nil)
		}
	})
}

// StartMultiRead implements bridge.Session.
func (b sessionBridge) StartMultiRead(reads []ReadOp, done func([]ReadResult, error)) {
	var o ops
	if b.s != nil {
		o = b.s.ops
	}
	c, request, parse := o.multiRead(reads)
	if err := o.checkStart(c); err != nil {
		done(nil, err)
		return
	}
	start(b.s.bound, request, parse, func(all []ReadResult, err error) { done(all, c.ended(err)) })
}

// starts checks the arguments of an operation that does not wait.
func (s *Session) starts(name, path string) (call, error) {
	var o ops
	if s != nil {
		o = s.ops
	}
	c := o.call(name, path, once)
	return c, o.checkStart(c)
}

// checkStart returns the error of an operation that cannot be started.
func (o ops) checkStart(c call) error {
	if err := o.checkUsable(context.Background()); err != nil {
		return c.failed(NotApplied, err)
	}
	if c.err != nil {
		return c.failed(NotApplied, c.err)
	}
	return nil
}

// ended returns the error of the operation from the error of its only attempt.
func (c call) ended(err error) error {
	if err == nil {
		return nil
	}
	return c.failed(OutcomeOf(err), err)
}
