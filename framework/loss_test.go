package framework_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// requireLost checks everything that reports the end of a session.
func requireLost(t testing.TB, s *framework.Session, cause error) {
	t.Helper()
	closes(t, s.Done(), "the end of session %#x", s.ID())
	require.ErrorIs(t, s.Err(), cause)
	for name, op := range each {
		err := op(testzk.Context(t), s, "/a")
		require.ErrorIs(t, err, cause, "%s in a session that has ended", name)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), name)
		require.False(t, framework.IsTransient(err), name)
	}
}

func TestExpiredSessionIsLostOnce(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, longSession())
	s := session(t, c)
	require.NoError(t, p.Refuse(true))
	states.await(t, framework.Connected, framework.Suspended)
	require.NoError(t, s.Err(), "the servers may not have expired it")
	expire(t, s.ID())
	require.NoError(t, p.Refuse(false))
	states.await(t, framework.Connected, framework.Suspended, framework.Lost, framework.Reconnected)
	requireLost(t, s, framework.ErrSessionLost)
	next := session(t, c)
	require.NotEqual(t, s.ID(), next.ID())
	lost, reconnected := states.changes()[2], states.changes()[3]
	require.Equal(t, s.ID(), lost.Session)
	require.ErrorContains(t, lost.Cause, "the servers do not know it")
	require.Equal(t, next.ID(), reconnected.Session)
	require.NoError(t, reconnected.Cause)
	require.NoError(t, next.Sync(testzk.Context(t), "/"))
	require.NoError(t, c.Close())
	states.await(t, framework.Connected, framework.Suspended, framework.Lost, framework.Reconnected,
		framework.Lost, framework.Closed)
}

func TestSilenceEndsTheSessionBeforeItExpires(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, testzk.Mortal())
	path := parent(t) + "/ephemeral"
	s := session(t, c)
	_, err := s.Create(testzk.Context(t), path, nil, framework.Ephemeral())
	require.NoError(t, err)
	_, _, deleted, err := testzk.Observer(t).GetW(path)
	require.NoError(t, err)
	until := s.ValidUntil()
	require.WithinRange(t, until, time.Now(), time.Now().Add(s.Timeout()*2/3))

	p.Blackhole(true)
	select {
	case <-s.Done():
		require.False(t, time.Now().Before(until), "the session ended before its deadline")
	case event := <-deleted: // the timer may be late; Err compares the deadline itself
		require.ErrorIs(t, s.Err(), framework.ErrSessionLost, "the node was deleted before the session was lost")
		deleted = answered(event)
	}
	requireLost(t, s, framework.ErrSessionLost)
	require.ErrorContains(t, s.Err(), "nothing heard of the ZooKeeper leader for")
	<-deleted
	p.Blackhole(false)
	// The connection is closed at about the same time, perhaps just before.
	states.awaitBut(t, framework.Suspended, framework.Connected, framework.Lost, framework.Reconnected)
	require.NotEqual(t, s.ID(), session(t, c).ID())
}

// answered returns a channel that has event.
func answered(event zk.Event) <-chan zk.Event {
	events := make(chan zk.Event, 1)
	events <- event
	return events
}

// Err compares the time itself and does not wait for a timer.
func TestErrReportsThePassedDeadlineBeforeATimerFires(t *testing.T) {
	t.Parallel()
	c, p := proxied(t, framework.WithSessionTimeout(time.Second))
	s := session(t, c)
	p.Blackhole(true)
	for time.Now().Before(s.ValidUntil()) {
		// Wait busily, so that Err is called before the timer fires.
	}
	require.ErrorIs(t, s.Err(), framework.ErrSessionLost)
	p.Blackhole(false)
	require.NotEqual(t, s.ID(), session(t, c).ID(), "the client returned a session that has ended")
}

func TestLongOutageIsSuspendedThenLostThenReconnected(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, testzk.Mortal())
	s := session(t, c)
	require.NoError(t, p.Refuse(true))
	closes(t, s.Done(), "the end of the session")
	requireLost(t, s, framework.ErrSessionLost)
	require.NoError(t, p.Refuse(false))
	states.await(t, framework.Connected, framework.Suspended, framework.Lost, framework.Reconnected)
	require.ErrorIs(t, states.changes()[2].Cause, framework.ErrSessionLost)
}

func TestShortOutageKeepsTheSession(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t)
	path := parent(t) + "/ephemeral"
	s := session(t, c)
	_, err := c.Create(testzk.Context(t), path, nil, framework.Ephemeral())
	require.NoError(t, err)
	want := []framework.State{framework.Connected}
	for range 3 {
		p.DropConnections()
		want = append(want, framework.Suspended, framework.Reconnected)
		states.await(t, want...)
	}
	require.NoError(t, s.Err())
	for _, change := range states.changes() {
		require.Equal(t, s.ID(), change.Session)
		require.NoError(t, change.Cause)
		require.WithinDuration(t, time.Now(), change.At, testzk.Patience)
	}
	_, stat, there := observe(t, testzk.Observer(t), path)
	require.True(t, there)
	require.Equal(t, s.ID(), stat.EphemeralOwner)
}

// An ephemeral create belongs to the session in which it began, whatever its outcome.
func TestEphemeralCreateIsNeverMovedToTheNextSession(t *testing.T) {
	for name, opts := range map[string][]framework.CreateOption{
		"plain":     {framework.Ephemeral()},
		"protected": kinds["lock node"],
	} {
		t.Run("waiting, "+name, func(t *testing.T) {
			t.Parallel()
			waited := make(chan struct{}, 2) // operations with a first attempt that got no connection
			c, p, states := traced(t, longSession(), framework.WithConnectTimeout(2*time.Second),
				framework.WithRetry(func(attempt int, _ time.Duration) (time.Duration, bool) {
					if attempt == 0 {
						waited <- struct{}{}
					}
					return 20 * time.Millisecond, true
				}))
			under := parent(t)
			s := session(t, c)
			require.NoError(t, p.Refuse(true))
			states.await(t, framework.Connected, framework.Suspended)
			results := make(chan error, 2)
			go func() { _, err := c.Create(testzk.Context(t), under+"/n", nil, opts...); results <- err }()
			go func() {
				_, err := c.Multi(testzk.Context(t), framework.CreateOp(under+"/m", nil, opts...))
				results <- err
			}()
			for range 2 { // both are bound to the session and wait for its connection
				select {
				case err := <-results:
					require.NoError(t, err, "returned without waiting")
				case <-waited:
				}
			}
			expire(t, s.ID())
			require.NoError(t, p.Refuse(false))
			for range 2 {
				failed(t, <-results, framework.NotApplied, framework.ErrSessionLost)
			}
			session(t, c)
			require.Empty(t, children(t, testzk.Observer(t), under))
			require.Zero(t, p.Requests()[fault.OpCreate]+p.Requests()[fault.OpMulti])
		})
	}
	t.Run("under way", func(t *testing.T) {
		t.Parallel()
		c, p := proxied(t, longSession(), framework.WithRetry(retry.Forever(20*time.Millisecond)))
		under := parent(t)
		s := session(t, c)
		held := p.On(fault.Match{Op: fault.OpCreate, Path: under}, fault.Hold())
		result := make(chan error, 1)
		go func() {
			_, err := c.Create(testzk.Context(t), under+"/n", nil, kinds["lock node"]...)
			result <- err
		}()
		require.NoError(t, held.Wait(testzk.Context(t)))
		require.NoError(t, p.Refuse(true)) // closes the connection, and the request is lost
		expire(t, s.ID())
		require.NoError(t, p.Refuse(false))
		failed(t, <-result, framework.Unknown, framework.ErrSessionLost)
		session(t, c)
		held.Release()
		require.NoError(t, c.Sync(testzk.Context(t), under))
		require.Empty(t, children(t, testzk.Observer(t), under))
		require.Equal(t, 1, p.Requests()[fault.OpCreate])
	})
}

func TestReadsOfTheClientContinueInTheNextSession(t *testing.T) {
	t.Parallel()
	c, p := proxied(t, testzk.Mortal(), framework.WithRetry(retry.Forever(20*time.Millisecond)))
	path := parent(t)
	s := session(t, c)
	p.Blackhole(true)
	result := make(chan error, 1)
	go func() { _, _, err := c.Get(testzk.Context(t), path); result <- err }()
	inSession := make(chan error, 1)
	go func() { _, _, err := s.Get(testzk.Context(t), path); inSession <- err }()
	closes(t, s.Done(), "the end of the session")
	require.ErrorIs(t, <-inSession, framework.ErrSessionLost)
	p.Blackhole(false)
	require.NoError(t, <-result)
}

// The loss of a session is a transient error for a Client and a permanent one for a Session.
func TestLossOfASessionIsTransientForTheClientOnly(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		network := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(network.DialContext),
			framework.WithConnectTimeout(time.Hour), framework.WithRetry(retry.Never()))
		s := session(t, c)
		network.Refuse(true)
		network.Drop()
		for c.State() != framework.Suspended { // operations wait for a connection then
			time.Sleep(time.Millisecond)
		}
		check := func(o operations, transient bool, but string) (all *sync.WaitGroup) {
			all = new(sync.WaitGroup)
			for name, op := range each {
				if name == but {
					continue
				}
				all.Go(func() {
					err := op(t.Context(), o, "/a")
					assert.ErrorIs(t, err, framework.ErrSessionLost, name)
					assert.Equal(t, transient, framework.IsTransient(err), "%s: %v", name, err)
				})
			}
			return all
		}
		ofSession := check(s, false, "")
		ofClient := check(c, true, "delete guaranteed") // the client does this one later
		<-s.Done()
		ofSession.Wait()
		ofClient.Wait()
		network.Refuse(false)
		require.NoError(t, c.WaitConnected(t.Context()))
		require.NoError(t, c.Sync(t.Context(), "/"))
	})
}

func TestLossOfASessionThatEndedTheContextIsNotTransient(t *testing.T) {
	t.Parallel()
	c, _ := proxied(t)
	ctx, cancel := context.WithCancelCause(testzk.Context(t))
	cancel(framework.ErrSessionLost) // like the context of a hold
	_, err := c.Exists(ctx, "/a")
	require.ErrorIs(t, err, framework.ErrSessionLost)
	require.False(t, framework.IsTransient(err), "%v", err)
}

// The client has lost the session, and the servers have not expired it. Its nodes must not remain
// for long.
func TestLostSessionIsClosedOnTheServers(t *testing.T) {
	t.Parallel()
	c, p := proxied(t, framework.WithSessionTimeout(30*time.Second), framework.WithLossDeadline(1.0/3),
		framework.WithConnectTimeout(soon)) // a slow server is not asked twice
	path := parent(t) + "/ephemeral"
	s := session(t, c)
	_, err := s.Create(testzk.Context(t), path, nil, framework.Ephemeral())
	require.NoError(t, err)
	_, _, deleted, err := testzk.Observer(t).GetW(path)
	require.NoError(t, err)
	require.NoError(t, p.Refuse(true))
	closes(t, s.Done(), "the end of the session")
	require.NoError(t, p.Refuse(false))
	event := <-deleted
	require.Equal(t, zk.EventNodeDeleted, event.Type)
	require.Equal(t, 1, p.Requests()[fault.OpCloseSession], "the servers expired the session")
}
