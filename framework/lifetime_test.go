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

func TestLifetimeSaysWhyItHasEnded(t *testing.T) {
	for policy, suspended := range map[framework.LossPolicy]error{framework.UntilDeadline: nil, framework.Strict: framework.ErrSuspended} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext), framework.WithLossPolicy(policy))
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
				for _, f := range []bridge.Lifetime{first, second} {
					<-f.Done()
					require.ErrorIs(t, f.Err(), framework.ErrClosed)
					require.NotErrorIs(t, f.Err(), framework.ErrSuspended)
				}
			})
		})
	}
}

// Whoever asks at the very moment of the session's end is told the same.
func TestLifetimeIsNeverSuspendedByTheEndOfItsSession(t *testing.T) {
	const rounds, askers = 400, 4 // it showed in one round of some hundred
	srv := zktest.Start(t)
	for range rounds {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		lifetime := bridge.OfSession(session(t, c)).Lifetime()
		var asking, begun sync.WaitGroup
		begun.Add(askers)
		for range askers {
			asking.Go(func() {
				err := lifetime.Err()
				begun.Done()
				for ; err == nil; err = lifetime.Err() {
					runtime.Gosched()
				}
				if !errors.Is(err, framework.ErrClosed) {
					t.Error(err)
				}
			})
		}
		begun.Wait()
		require.NoError(t, c.Close())
		asking.Wait()
	}
}

// dependent counts how often it was told.
type dependent struct{ told chan struct{} }

func newDependent() *dependent { return &dependent{make(chan struct{}, 10)} }

func (d *dependent) LifetimeEnded() func() {
	d.told <- struct{}{}
	return nil
}

func TestListenerIsToldOnceThatALifetimeHasEnded(t *testing.T) {
	for policy, drops := range map[framework.LossPolicy]int{framework.UntilDeadline: 0, framework.Strict: 1} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext), framework.WithLossPolicy(policy))
				s := session(t, c)
				first, stays, leaves := bridge.OfSession(s).Lifetime(), newDependent(), newDependent()
				require.True(t, first.Notify(stays))
				require.True(t, first.Notify(leaves))
				first.Stop(leaves)
				client.Drop()
				time.Sleep(time.Second)
				require.Len(t, stays.told, drops)
				later := newDependent()
				require.True(t, bridge.OfSession(s).Lifetime().Notify(later))
				require.Equal(t, policy == framework.UntilDeadline, first.Notify(newDependent()), "on what is gone")
				require.NoError(t, c.Close())
				require.Len(t, stays.told, 1)
				require.Len(t, later.told, 1, "Close waits for those who are told")
				require.Empty(t, leaves.told)
				require.False(t, first.Notify(stays))
			})
		})
	}
	require.False(t, bridge.OfSession(nil).Lifetime().Notify(newDependent()))
	bridge.OfSession(nil).Lifetime().Stop(newDependent())
}

// slow takes as long as it likes once it has been told.
type slow struct {
	told chan<- struct{}
	free <-chan struct{}
}

func (s *slow) LifetimeEnded() func() {
	s.told <- struct{}{}
	return func() { <-s.free }
}

func TestAllAreToldBeforeAnyOfThemTakesItsTime(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	f := bridge.OfSession(session(t, c)).Lifetime()
	told, free := make(chan struct{}, 3), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	for range 3 {
		require.True(t, f.Notify(&slow{told, free}))
	}
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	for range 3 {
		select {
		case <-told:
		case <-time.After(testzk.Patience):
			require.Fail(t, "somebody waits for others")
		}
	}
	release()
	require.NoError(t, <-closed)
}
