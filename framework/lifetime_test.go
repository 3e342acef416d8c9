package framework_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

func TestLifetimeReportsWhyItHasEnded(t *testing.T) {
	for policy, suspended := range map[framework.LossPolicy]error{
		framework.UntilDeadline: nil, framework.Strict: framework.ErrSuspended,
	} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext),
					framework.WithLossPolicy(policy))
				s := session(t, c)
				first := bridge.OfSession(s).Lifetime()
				require.NoError(t, first.Err())
				client.Drop()
				time.Sleep(time.Second)
				require.Equal(t, framework.Reconnected, c.State())
				require.ErrorIs(t, first.Err(), suspended)
				second := bridge.OfSession(s).Lifetime()
				require.NoError(t, second.Err())
				require.NoError(t, c.Close())
				for _, l := range []bridge.Lifetime{first, second} {
					<-l.Done()
					require.ErrorIs(t, l.Err(), framework.ErrClosed)
					require.NotErrorIs(t, l.Err(), framework.ErrSuspended)
				}
			})
		})
	}
}

// Err returns the same error at the very moment at which the session ends.
func TestLifetimeIsNeverSuspendedByTheEndOfItsSession(t *testing.T) {
	const rounds, callers = 400, 4 // the race failed in about one of some hundred rounds
	srv := zktest.Start(t)
	for range rounds {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		lifetime := bridge.OfSession(session(t, c)).Lifetime()
		var calling, started sync.WaitGroup
		started.Add(callers)
		for range callers {
			calling.Go(func() {
				err := lifetime.Err()
				started.Done()
				for ; err == nil; err = lifetime.Err() {
					runtime.Gosched()
				}
				if !errors.Is(err, framework.ErrClosed) {
					t.Error(err)
				}
			})
		}
		started.Wait()
		require.NoError(t, c.Close())
		calling.Wait()
	}
}

// listener counts its notifications.
type listener struct{ calls chan struct{} }

func newListener() *listener { return &listener{make(chan struct{}, 10)} }

func (l *listener) LifetimeEnded() (cleanUp, report func()) {
	l.calls <- struct{}{}
	return nil, nil
}

func TestListenerIsNotifiedOnceOfTheEndOfALifetime(t *testing.T) {
	for policy, drops := range map[framework.LossPolicy]int{framework.UntilDeadline: 0, framework.Strict: 1} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext),
					framework.WithLossPolicy(policy))
				s := session(t, c)
				first, stays, stopped := bridge.OfSession(s).Lifetime(), newListener(), newListener()
				require.True(t, first.Notify(stays))
				require.True(t, first.Notify(stopped))
				first.Stop(stopped)
				client.Drop()
				time.Sleep(time.Second)
				require.Len(t, stays.calls, drops)
				later := newListener()
				require.True(t, bridge.OfSession(s).Lifetime().Notify(later))
				require.Equal(t, policy == framework.UntilDeadline, first.Notify(newListener()), "after a reconnect")
				require.NoError(t, c.Close())
				require.Len(t, stays.calls, 1)
				require.Len(t, later.calls, 1, "Close did not wait for the notification")
				require.Empty(t, stopped.calls)
				require.False(t, first.Notify(stays))
			})
		})
	}
	require.False(t, bridge.OfSession(nil).Lifetime().Notify(newListener()))
	bridge.OfSession(nil).Lifetime().Stop(newListener())
}

// slow is a listener that returns a function that blocks until free is closed.
type slow struct {
	called chan<- struct{}
	free   <-chan struct{}
}

func (s *slow) LifetimeEnded() (cleanUp, report func()) {
	s.called <- struct{}{}
	return func() { <-s.free }, nil
}

func TestAllListenersAreNotifiedBeforeTheirFunctionsRun(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	l := bridge.OfSession(session(t, c)).Lifetime()
	called, free := make(chan struct{}, 3), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	for range 3 {
		require.True(t, l.Notify(&slow{called, free}))
	}
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	for range 3 {
		select {
		case <-called:
		case <-time.After(testzk.Patience):
			require.Fail(t, "a listener waits for another one")
		}
	}
	release()
	require.NoError(t, <-closed)
}
