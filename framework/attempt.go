package framework

import (
	"context"
	"sync"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// pending is a request that has been sent. It cannot be withdrawn: it completes even if its caller
// leaves.
type pending[T any] struct {
	session   *session
	mu        sync.Mutex
	completed chan struct{} // closed by complete
	value     T
	err       error
	late      func(T, error) // set when the caller has left
}

// begin waits for the connection, no longer than ctx and the session last. Then it returns a request
// that is about to be sent.
func begin[T any](ctx context.Context, s *session) (*pending[T], error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if err := s.beginRequest(); err != nil {
		return nil, err
	}
	return &pending[T]{session: s, completed: make(chan struct{})}, nil
}

// complete delivers the result to the caller, or to late if the caller has left. Each request is
// completed once.
func (p *pending[T]) complete(value T, err error) {
	defer p.session.inflight.Done()
	p.mu.Lock()
	p.value, p.err = value, err
	late := p.late
	close(p.completed)
	p.mu.Unlock()
	if late != nil {
		late(value, err)
	}
}

// abandon has late called with the result instead of the caller. It reports false if the result is
// already there.
func (p *pending[T]) abandon(late func(T, error)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.completed:
		return false
	default:
		p.late = late
		return true
	}
}

// ask makes one request in s, once. It waits for the connection and then for the answer, for both
// no longer than ctx and the session last. parse returns the result from the reply. If the caller
// leaves before the answer, late is called with the result; late must not block.
func ask[T any](
	ctx context.Context, s *session, late func(T, error), r conn.Request, parse func(conn.Reply) (T, error),
) (T, error) {
	return askThen(ctx, s, late, r, nil, parse)
}

// askThen is ask that also calls behind, unless it is nil, once the request has been handed to the
// connection. The requests that behind makes are written together with it.
func askThen[T any](
	ctx context.Context, s *session, late func(T, error),
	r conn.Request, behind func(), parse func(conn.Reply) (T, error),
) (T, error) {
	var none T
	p, err := begin[conn.Reply](ctx, s)
	if err != nil {
		return none, err
	}
	answered := func(reply conn.Reply) { p.complete(reply, nil) }
	if behind == nil {
		s.conn.Ask(r, answered)
	} else {
		s.conn.Together(func() { s.conn.Ask(r, answered); behind() })
	}
	var later func(conn.Reply, error)
	if late != nil {
		later = func(reply conn.Reply, _ error) {
			value, err := parse(reply)
			late(value, replyError(err))
		}
	}
	reply, err := p.wait(ctx, later)
	if err != nil {
		return none, err
	}
	value, err := parse(reply)
	return value, s.explain(replyError(err))
}

// wait waits until the request is completed, no longer than ctx and the session last. If the caller
// leaves before, late is called with the result, unless it is nil.
func (p *pending[T]) wait(ctx context.Context, late func(T, error)) (T, error) {
	var reason error
	select {
	case <-p.completed:
		return p.value, p.session.explain(p.err)
	case <-ctx.Done():
		reason = ctxerr.Of(ctx)
	case <-p.session.done:
		reason = p.session.reason()
	}
	if !p.abandon(late) {
		return p.value, p.session.explain(p.err)
	}
	var none T
	return none, &attemptError{outcome: Unknown, err: reason, abandoned: late != nil}
}

// start makes one request in s without waiting for the answer. If there is a connection, the
// request has been handed to it when start returns. Otherwise the request waits for a connection in
// the background. done is called with the result, perhaps before start returns, or by the goroutine
// that reads the connection. It must not wait for anything.
func start[T any](s *session, r conn.Request, parse func(conn.Reply) (T, error), done func(T, error)) {
	var none T
	if err := s.check(); err != nil {
		done(none, notApplied(err))
		return
	}
	send := func() {
		if err := s.beginRequest(); err != nil {
			done(none, err)
			return
		}
		s.conn.Ask(r, func(reply conn.Reply) {
			defer s.inflight.Done()
			value, err := parse(reply)
			done(value, s.explain(replyError(err)))
		})
	}
	if connected, _, _ := s.connected(); connected {
		send()
		return
	}
	waiting := s.spawn(func() {
		if err := s.ready(s.core.ctx); err != nil {
			done(none, err)
			return
		}
		send()
	})
	if !waiting {
		done(none, notApplied(s.reason()))
	}
}

// nothing is the result of calls that have none.
type nothing = struct{}
