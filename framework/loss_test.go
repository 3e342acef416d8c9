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
	"github.com/docent-zk/docent/zktest/proxy"
	"github.com/docent-zk/docent/zktest/sim"
)

// over checks everything that tells of a session's end.
func over(t testing.TB, s *framework.Session, cause error) {
	t.Helper()
	closes(t, s.Done(), "the end of session %#x", s.ID())
	require.ErrorIs(t, s.Err(), cause)
	for name, op := range each {
		err := op(testzk.Context(t), s, "/a")
		require.ErrorIs(t, err, cause, "%s in a session that is over", name)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), name)
		require.False(t, framework.IsTransient(err), name)
	}
}

func TestSessionThatTheServersEndedIsLostOnce(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, enduring())
	s := session(t, c)
	require.NoError(t, p.Refuse(true))
	states.await(t, framework.Connected, framework.Suspended)
	require.NoError(t, s.Err(), "it may still live")
	expire(t, s.ID())
	require.NoError(t, p.Refuse(false))
	states.await(t, framework.Connected, framework.Suspended, framework.Lost, framework.Reconnected)
	over(t, s, framework.ErrSessionLost)
	next := session(t, c)
	require.NotEqual(t, s.ID(), next.ID())
	lost, reconnected := states.changes()[2], states.changes()[3]
	require.Equal(t, s.ID(), lost.Session)
	require.ErrorContains(t, lost.Cause, "the servers do not know it")
	require.Equal(t, next.ID(), reconnected.Session)
	require.NoError(t, reconnected.Cause)
	require.NoError(t, next.Sync(testzk.Context(t), "/"))
	require.NoError(t, c.Close())
	require.Equal(t, []framework.State{framework.Lost, framework.Closed}, states.states()[4:])
}

func TestSilenceEndsTheSessionBeforeTheServersDo(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, testzk.Mortal())
	path := parent(t) + "/ephemeral"
	s := session(t, c)
	_, err := s.Create(testzk.Context(t), path, nil, framework.Ephemeral())
	require.NoError(t, err)
	_, _, deleted, err := testzk.Synced(t, testzk.Observer(t)).GetW(path)
	require.NoError(t, err)
	until := s.ValidUntil()
	require.WithinRange(t, until, time.Now(), time.Now().Add(s.Timeout()*2/3))

	p.Blackhole(true)
	select {
	case <-s.Done():
		require.False(t, time.Now().Before(until), "not before its time")
	case event := <-deleted: // the timer may be late, but not the answer to a question
		require.ErrorIs(t, s.Err(), framework.ErrSessionLost, "the node was deleted while the session still seemed to live")
		deleted = answered(event)
	}
	over(t, s, framework.ErrSessionLost)
	require.ErrorContains(t, s.Err(), "nothing heard of the ZooKeeper leader for")
	<-deleted
	p.Blackhole(false)
	// The driver gives the connection up at about the same time, perhaps just before.
	states.awaitBut(t, framework.Suspended, framework.Connected, framework.Lost, framework.Reconnected)
	require.NotEqual(t, s.ID(), session(t, c).ID())
}

// answered is a channel from which event can be received.
func answered(event zk.Event) <-chan zk.Event {
	events := make(chan zk.Event, 1)
	events <- event
	return events
}

// The time is compared when somebody asks, not when a timer fires.
func TestSessionIsOverWhenItsTimeHasComeThoughNoTimerFired(t *testing.T) {
	t.Parallel()
	c, p := through(t, framework.WithSessionTimeout(time.Second))
	s := session(t, c)
	p.Blackhole(true)
	for time.Now().Before(s.ValidUntil()) {
		// Busy, so that asking comes first if anything does.
	}
	require.ErrorIs(t, s.Err(), framework.ErrSessionLost)
	p.Blackhole(false)
	require.NotEqual(t, s.ID(), session(t, c).ID(), "a client does not hand out a session that is over")
}

func TestLongOutageIsSuspendedThenLostThenReconnected(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, testzk.Mortal())
	s := session(t, c)
	require.NoError(t, p.Refuse(true))
	closes(t, s.Done(), "the end of the session")
	over(t, s, framework.ErrSessionLost)
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

// An ephemeral create belongs to the session in which it began, whatever became of it.
func TestEphemeralCreateIsNeverMovedToTheNextSession(t *testing.T) {
	for name, opts := range map[string][]framework.CreateOption{
		"plain":     {framework.Ephemeral()},
		"protected": kinds["lock node"],
	} {
		t.Run("waiting, "+name, func(t *testing.T) {
			t.Parallel()
			waited := make(chan struct{}, 2) // operations whose first attempt waited in vain
			c, p, states := traced(t, enduring(), framework.WithConnectTimeout(2*time.Second),
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
			for range 2 { // both have the session, and wait for its connection
				select {
				case err := <-results:
					require.NoError(t, err, "did not wait")
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
			require.Zero(t, p.Requests()[proxy.OpCreate]+p.Requests()[proxy.OpMulti])
		})
	}
	t.Run("under way", func(t *testing.T) {
		t.Parallel()
		c, p := through(t, enduring(), framework.WithRetry(retry.Forever(20*time.Millisecond)))
		under := parent(t)
		s := session(t, c)
		held := p.On(proxy.Match{Op: proxy.OpCreate, Path: under}, proxy.Hold())
		result := make(chan error, 1)
		go func() { _, err := c.Create(testzk.Context(t), under+"/n", nil, kinds["lock node"]...); result <- err }()
		require.NoError(t, held.Wait(testzk.Context(t)))
		expire(t, s.ID()) // the server hangs up, and the request with it
		failed(t, <-result, framework.Unknown, framework.ErrSessionLost)
		session(t, c)
		held.Release()
		require.NoError(t, c.Sync(testzk.Context(t), under))
		require.Empty(t, children(t, testzk.Observer(t), under))
		require.Equal(t, 1, p.Requests()[proxy.OpCreate])
	})
}

func TestReadsOfTheClientGoOnInTheNextSession(t *testing.T) {
	t.Parallel()
	c, p := through(t, testzk.Mortal(), framework.WithRetry(retry.Forever(20*time.Millisecond)))
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

// For a Client the end of a session is trouble that passes, for a Session it is the end.
func TestLostSessionPassesForTheClientOnly(t *testing.T) {
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
		ofSession, ofClient := check(s, false, ""), check(c, true, "delete guaranteed") // which a client does later
		<-s.Done()
		ofSession.Wait()
		ofClient.Wait()
		network.Refuse(false)
		require.NoError(t, c.WaitConnected(t.Context()))
		require.NoError(t, c.Sync(t.Context(), "/"))
	})
}

func TestLostSessionThatEndedTheContextDoesNotPass(t *testing.T) {
	t.Parallel()
	c, _ := through(t)
	ctx, cancel := context.WithCancelCause(testzk.Context(t))
	cancel(framework.ErrSessionLost) // as the context of a hold
	_, err := c.Exists(ctx, "/a")
	require.ErrorIs(t, err, framework.ErrSessionLost)
	require.False(t, framework.IsTransient(err), "%v", err)
}

// The session is over for us, and lives on for the servers: its nodes shall not be in the way for long.
func TestLostSessionIsTakenOffTheServers(t *testing.T) {
	t.Parallel()
	c, p := through(t, framework.WithSessionTimeout(30*time.Second), framework.WithLossDeadline(1.0/3))
	path := parent(t) + "/ephemeral"
	s := session(t, c)
	_, err := s.Create(testzk.Context(t), path, nil, framework.Ephemeral())
	require.NoError(t, err)
	_, _, deleted, err := testzk.Synced(t, testzk.Observer(t)).GetW(path)
	require.NoError(t, err)
	require.NoError(t, p.Refuse(true))
	closes(t, s.Done(), "the end of the session")
	require.NoError(t, p.Refuse(false))
	event := <-deleted
	require.Equal(t, zk.EventNodeDeleted, event.Type)
	require.Equal(t, 1, p.Requests()[proxy.OpCloseSession], "the servers had to end the session by themselves")
}
