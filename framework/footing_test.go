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
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

func TestFootingSaysWhyItIsGone(t *testing.T) {
	for policy, suspended := range map[framework.LossPolicy]error{framework.UntilDeadline: nil, framework.Strict: framework.ErrSuspended} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext), framework.WithLossPolicy(policy))
				s := session(t, c)
				first := s.Footing()
				require.NoError(t, first.Err())
				client.Drop()
				time.Sleep(time.Second)
				require.Equal(t, framework.Reconnected, c.State())
				require.ErrorIs(t, first.Err(), suspended)
				second := s.Footing()
				require.NoError(t, second.Err())
				require.NoError(t, c.Close())
				for _, f := range []framework.Footing{first, second} {
					<-f.Gone()
					require.ErrorIs(t, f.Err(), framework.ErrClosed)
					require.NotErrorIs(t, f.Err(), framework.ErrSuspended)
				}
			})
		})
	}
}

// Whoever asks at the very moment of the session's end is told the same.
func TestFootingIsNeverSuspendedByTheEndOfItsSession(t *testing.T) {
	const rounds, askers = 400, 4 // it showed in one round of some hundred
	srv := zktest.Start(t)
	for range rounds {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		footing := session(t, c).Footing()
		var asking, begun sync.WaitGroup
		begun.Add(askers)
		for range askers {
			asking.Go(func() {
				err := footing.Err()
				begun.Done()
				for ; err == nil; err = footing.Err() {
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

func (d *dependent) Gone() func() {
	d.told <- struct{}{}
	return nil
}

func TestWhoStandsOnAFootingIsToldOnceThatItIsGone(t *testing.T) {
	for policy, drops := range map[framework.LossPolicy]int{framework.UntilDeadline: 0, framework.Strict: 1} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext), framework.WithLossPolicy(policy))
				s := session(t, c)
				first, stays, leaves := s.Footing(), newDependent(), newDependent()
				require.True(t, first.Stand(stays))
				require.True(t, first.Stand(leaves))
				first.Leave(leaves)
				client.Drop()
				time.Sleep(time.Second)
				require.Len(t, stays.told, drops)
				later := newDependent()
				require.True(t, s.Footing().Stand(later))
				require.Equal(t, policy == framework.UntilDeadline, first.Stand(newDependent()), "on what is gone")
				require.NoError(t, c.Close())
				require.Len(t, stays.told, 1)
				require.Len(t, later.told, 1, "Close waits for those who are told")
				require.Empty(t, leaves.told)
				require.False(t, first.Stand(stays))
			})
		})
	}
	require.False(t, framework.Footing{}.Stand(newDependent()))
	framework.Footing{}.Leave(newDependent())
}

// slow takes as long as it likes once it has been told.
type slow struct {
	told chan<- struct{}
	free <-chan struct{}
}

func (s *slow) Gone() func() {
	s.told <- struct{}{}
	return func() { <-s.free }
}

func TestAllAreToldBeforeAnyOfThemTakesItsTime(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	f := session(t, c).Footing()
	told, free := make(chan struct{}, 3), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	for range 3 {
		require.True(t, f.Stand(&slow{told, free}))
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
