package conn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// limited serves the requests of all its peers one after the other.
type limited struct {
	each     time.Duration // time that a request takes
	requests chan func()   // answer a request
}

// serve answers requests until the channel is closed. Once, from the given moment on, it stands still
// for a time.
func (l *limited) serve(from <-chan time.Time, still time.Duration) {
	for answer := range l.requests {
		select {
		case <-from:
			time.Sleep(still)
		default:
		}
		time.Sleep(l.each)
		answer()
	}
}

// A server can answer 1.6 times as many heartbeats as its sessions send. It stands still for 0.28 of
// the timeout. Then replies are late, because many requests wait. The sessions must not send so many
// more that replies stay late, until all sessions are lost.
func TestSessionsWithLateRepliesDoNotOverloadTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			sessions = 100
			capacity = 160 // heartbeats that the server answers in an interval
			timeout  = 24 * time.Second
			interval = timeout / heartbeatsPerTimeout
			still    = timeout * 28 / 100
			before   = 2 * timeout
			after    = 8 * timeout
		)
		l := &limited{each: interval / capacity, requests: make(chan func(), 100*sessions)}
		served := make(chan struct{})
		go func() {
			defer close(served)
			l.serve(time.After(before), still)
		}()
		t.Cleanup(func() { // last
			close(l.requests)
			<-served
		})
		s, dial := serveInMemory(t, func(p *peer) {
			p.grant(int64(p.number+1), timeout)
			for f, ok := p.next(); ok; f, ok = p.next() {
				l.requests <- func() { p.answer(f, 1) }
			}
		})
		var all []*client
		for range sessions {
			all = append(all, connect(t, Config{SessionTimeout: timeout, Dial: dial}, "a:1"))
			time.Sleep(interval / sessions)
		}
		for began := time.Now(); time.Since(began) < before+after; time.Sleep(timeout / 100) {
			for i, c := range all {
				require.Less(t, proven(c).Elapsed(), timeout*2/3, "session %d is lost after %v", i, time.Since(began))
			}
		}
		require.Equal(t, sessions, s.accepted(), "some connections were lost")
		require.LessOrEqual(t, len(l.requests), sessions/10, "replies are still late")
	})
}
