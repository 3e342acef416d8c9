package framework

import (
	"context"
	"sync"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// flight is one request, which cannot be called back: whoever made it may leave, it lands all the same.
type pending[T any] struct {
	mu        sync.Mutex
	completed chan struct{} // closed by land
	value     T
	err       error
	late      func(T, error) // set when the caller has left
}

// land delivers the result to the caller, or to late if the caller has left.
func (p *pending[T]) complete(value T, err error) {
	p.mu.Lock()
	p.value, p.err = value, err
	late := p.late
	close(p.completed)
	p.mu.Unlock()
	if late != nil {
		late(value, err)
	}
}

// leave is the caller's; false if the result is there already.
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

// ask makes one request in s, once: it waits for the connection, then for the answer, and for both no longer than ctx and the session
// last. parse makes the result of the reply. If the caller has to leave before the answer is there, late gets it; late must not block.
func ask[T any](ctx context.Context, s *session, late func(T, error), r conn.Request, parse func(conn.Reply) (T, error)) (T, error) {
	return askThen(ctx, s, late, r, nil, parse)
}

// askThen is ask that calls behind, unless it is nil, once the request has been handed to the connection: what that asks for leaves with it.
func askThen[T any](
	ctx context.Context, s *session, late func(T, error), r conn.Request, behind func(), parse func(conn.Reply) (T, error),
) (T, error) {
	result := func(reply conn.Reply) (T, error) {
		value, err := parse(reply)
		return value, replyError(err)
	}
	var later func(conn.Reply, error)
	if late != nil {
		later = func(reply conn.Reply, _ error) { late(result(reply)) }
	}
	reply, err := roundTrip(ctx, s, later, func(complete func(conn.Reply, error)) {
		s.conn.Together(func() {
			s.conn.Ask(r, func(reply conn.Reply) { complete(reply, nil) })
			if behind != nil {
				behind()
			}
		})
	})
	if err != nil {
		var none T
		return none, err
	}
	value, err := result(reply)
	return value, s.explain(err)
}

// fly waits for the connection, has launch make a request, and waits for what it delivers by land.
func roundTrip[T any](ctx context.Context, s *session, late func(T, error), send func(complete func(T, error))) (T, error) {
	var none T
	if err := s.ready(ctx); err != nil {
		return none, err
	}
	if err := s.beginRequest(); err != nil {
		return none, err
	}
	p := &pending[T]{completed: make(chan struct{})}
	send(func(value T, err error) {
		defer s.inflight.Done()
		p.complete(value, err)
	})
	var reason error
	select {
	case <-p.completed:
		return p.value, s.explain(p.err)
	case <-ctx.Done():
		reason = ctxerr.Of(ctx)
	case <-s.done:
		reason = s.reason()
	}
	if !p.abandon(late) {
		return p.value, s.explain(p.err)
	}
	return none, &attemptError{outcome: Unknown, err: reason, abandoned: late != nil}
}

// start makes one request in s without waiting for the answer. If there is a connection the request has been handed to it when start
// returns; otherwise a connection is waited for in the background. done gets the result, perhaps before start returns, or where replies
// are read: it must not wait for anything.
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
