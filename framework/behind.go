package framework

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// Servers answer the requests of a connection in their order. A read that is sent right behind a create, without waiting for the answer
// to that, is answered as of after the create, and both take one round trip.

// Behind calls fn each time that a request to create the node, alone or in a transaction, has been handed to the connection. What fn
// asks for by StartChildren and StartGetW in the same session comes behind that request: it is answered as of after the create, if the
// create succeeds. If the answer to the create is lost, or the create is repeated, that says nothing of what was asked for behind
// an earlier request. fn must not wait for anything. It is for recipes.
func Behind(fn func()) CreateOption { return func(c *creation) { c.behind = fn } }

// StartChildren is Children without waiting: where there is a connection the request has been handed to it when StartChildren returns,
// and otherwise one is waited for in the background. It is not repeated. done is called once, perhaps before StartChildren returns, or
// where the servers' answers are read: it must not wait for anything. It is for recipes.
func (s *Session) StartChildren(path string, done func(children []string, err error)) {
	c, err := s.starts("list", path)
	if err != nil {
		done(nil, err)
		return
	}
	request, parse := watchKey{c.full, watchChildren}.request(false)
	start(s.bound, request, parse, func(r reading, err error) { done(r.children, c.ended(err)) })
}

// Together calls fn, which must not wait for anything. What it asks for by StartChildren and StartGetW leaves in one piece, in that order. It
// is for recipes.
func (s *Session) Together(fn func()) {
	if s == nil || s.bound == nil {
		fn()
		return
	}
	s.bound.conn.Together(fn)
}

// StartGetW is GetW as StartChildren is Children.
func (s *Session) StartGetW(path string, done func(data []byte, stat *zk.Stat, w *Watch, err error)) {
	c, err := s.starts("get", path)
	if err != nil {
		done(nil, nil, nil, err)
		return
	}
	key := watchKey{c.full, watchData}
	w, ask := s.bound.hub.join(key)
	request, parse := key.request(ask)
	start(s.bound, request, parse, func(r reading, err error) {
		if ask {
			s.bound.hub.asked(key, w, err == nil, r.version(key.kind))
		}
		if err != nil {
			done(nil, nil, nil, c.ended(err))
			return
		}
		done(r.data, r.stat, &w.Watch, nil)
	})
}

// starts checks what an operation is given that does not wait.
func (s *Session) starts(name, path string) (call, error) {
	var o ops
	if s != nil {
		o = s.ops
	}
	c := o.call(name, path, once)
	if err := o.usable(context.Background()); err != nil {
		return c, c.failed(NotApplied, err)
	}
	if c.err != nil {
		return c, c.failed(NotApplied, c.err)
	}
	return c, nil
}

// ended is the error of an attempt as that of the operation.
func (c call) ended(err error) error {
	if err == nil {
		return nil
	}
	return c.failed(OutcomeOf(err), err)
}
