package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
)

// open waits until a server admits the session, no longer than ctx lasts. If the servers do not
// accept the credentials before the deadline of the session, the session ends.
func (s *session) open(ctx context.Context) error {
	if err := s.await(ctx, func() bool { return s.info.ID != 0 }); err != nil {
		return err
	}
	deadline := time.AfterFunc(s.deadlineAfter(s.timeout()), func() {
		s.end(fmt.Errorf("%w: the servers did not accept the credentials before the deadline", ErrSessionLost))
	})
	defer deadline.Stop()
	if err := s.await(ctx, func() bool { return s.link }); err != nil {
		return err
	}
	return s.admit()
}

// await waits until condLocked returns true, and fails when the session or ctx ends.
func (s *session) await(ctx context.Context, condLocked func() bool) error {
	for {
		s.mu.Lock()
		met, err, changed := condLocked(), s.err, s.changed
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case met:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// checkInterval is the longest time between two checks of the deadline. After a suspension of the
// machine timers fire late.
const checkInterval = time.Second

// supervise checks the deadline of the session until the session ends. Each use of the session
// calls check too; the timer only makes the end prompt.
func (s *session) supervise(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		changed := s.changed // a new connection may have another timeout
		s.mu.Unlock()
		timer.Reset(max(min(time.Until(s.validUntil()), checkInterval), time.Millisecond))
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			s.end(ErrClosed)
		case <-changed:
		case <-timer.C:
			_ = s.check()
		}
	}
}

// close closes an ended session on the servers, and tries as long as that is useful. The servers
// may still keep the session, and its nodes are in the way of other clients until it expires. Then
// close waits until no work of the session is left.
func (s *session) close() {
	s.background.Wait() // holds must end before the servers close the session
	ctx, cancel := s.closeContext()
	defer cancel()
	confirmed := s.conn.EndSession(ctx)
	left := !confirmed && s.isAdmitted() && !s.conn.Expired() // with requests of the program
	if !confirmed {
		s.conn.Kill() // otherwise pending requests would wait for answers
	}
	s.inflight.Wait()
	s.conn.Close()
	s.core.forget(s.conn)
	if left { // each attempt to end the session may have prolonged it, by a timeout and a tick
		sleep(s.longestTimeout()*3/2, s.core.ctx.Done(), nil)
	}
	close(s.closed)
	s.late.ended(s)
	if id := s.id(); id != 0 {
		s.core.cfg.log.Info("session closed", logfield.Session(id))
	}
}

// closeContext returns a context that ends when it is no longer useful to close the session on the
// servers. If another session was made the longest timeout of this one ago, the servers have been
// available for that long and have expired it. When the client is closed, the context ends one connect
// timeout later, or at once if the session ended longer ago than its longest timeout.
func (s *session) closeContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.core.grace)
	ended := conn.Now()
	stop := context.AfterFunc(s.core.ctx, func() {
		if ended.Elapsed() >= s.longestTimeout() {
			cancel()
		}
	})
	forget := s.core.whenReplaced(func() { s.afterTimeout(ctx, conn.Now(), cancel) })
	return ctx, func() { forget(); stop(); cancel() }
}

// afterTimeout calls fn when the longest timeout of the session has passed since the given time, unless ctx has
// ended. An attempt to close the session may be granted a longer timeout than those before.
func (s *session) afterTimeout(ctx context.Context, since conn.Stamp, fn func()) {
	left := s.longestTimeout() - since.Elapsed()
	switch {
	case ctx.Err() != nil:
	case left <= 0:
		fn()
	default:
		timer := time.AfterFunc(left, func() { s.afterTimeout(ctx, since, fn) })
		context.AfterFunc(ctx, func() { timer.Stop() }) // a long timer would keep the session in memory
	}
}
