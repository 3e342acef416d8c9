package contracttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/proxy"
)

// ways returns both ways to acquire l, by name.
func ways(l Lock) map[string]func(context.Context) (*recipes.Hold, error) {
	return map[string]func(context.Context) (*recipes.Hold, error){"Acquire": l.Acquire, "TryAcquire": l.TryAcquire}
}

func endedContextFails(t *testing.T, k Kind) {
	s := newFixture(t, k)
	reason := errors.New("canceled by the test")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	late, cancelLate := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancelLate()
	for name, acquire := range ways(s.lock(s.client())) {
		hold, err := acquire(ctx)
		require.Nil(t, hold, name)
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorIs(t, err, reason, name)
		require.NotErrorIs(t, err, recipes.ErrNotAcquired, name)
		_, err = acquire(late)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
	s.empty()
}

func nilContext(t *testing.T, k Kind) {
	s := newFixture(t, k)
	for name, acquire := range ways(s.lock(s.client())) {
		var none context.Context
		hold, err := acquire(none)
		require.Nil(t, hold, name)
		require.ErrorIs(t, err, framework.ErrNilContext, name)
	}
	s.empty()
}

func contextOfTheAcquire(t *testing.T, k Kind) {
	s := newFixture(t, k)
	for name, acquire := range ways(s.lock(s.client())) {
		ctx, cancel := context.WithCancel(context.Background())
		hold, err := acquire(ctx)
		require.NoError(t, err, name)
		work := hold.Context(context.Background())
		cancel()
		require.NoError(t, hold.Err(), name)
		require.NoError(t, work.Err(), name)
		s.release(hold)
		require.ErrorIs(t, context.Cause(work), recipes.ErrNotHeld)
	}
	s.empty()
}

func deadlineEndsTheWait(t *testing.T, k Kind) {
	s := newFixture(t, k)
	holder := s.occupy(s.client())
	opts, waits := testzk.Waiting(t)
	ctx, pass := testzk.Deadline(testzk.Context(t))
	late := testlock.StartUnder(s.t, ctx, s.lock(s.client(opts...)).Acquire)
	waits()
	pass()
	_, err := late.Wait()
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	s.waits(0)
	require.NoError(t, holder.Err())
	s.release(holder)
	s.empty()
}

func deadlineInAnOutage(t *testing.T, k Kind) {
	for name, outage := range map[string]func(*proxy.Proxy){
		"refused": func(p *proxy.Proxy) { _ = p.Refuse(true) },
		"silent":  func(p *proxy.Proxy) { p.Blackhole(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, k)
			client, p := s.proxied(enduring())
			lock := s.lock(client)
			outage(p)
			for how, acquire := range ways(lock) {
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				began := time.Now()
				_, err := acquire(ctx)
				took := time.Since(began)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded, how)
				require.Less(t, took, soon, how)
			}
		})
	}
}

// outageDuringTheWait ends the wait while the client cannot know what is ahead of it.
func outageDuringTheWait(t *testing.T, k Kind) {
	s := newFixture(t, k)
	holder := s.occupy(s.client())
	opts, waits := testzk.Waiting(t)
	client, p := s.proxied(append(opts, enduring())...)
	ctx, pass := testzk.Deadline(testzk.Context(t))
	late := testlock.StartUnder(s.t, ctx, s.lock(client).Acquire)
	waits()
	require.NoError(t, p.Refuse(true))
	testzk.Eventually(t, func() bool { return !client.State().IsConnected() }, "the client notices the outage")
	pass()
	_, err := late.Wait()
	require.ErrorIs(t, err, framework.ErrNotConnected)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	require.NoError(t, p.Refuse(false))
	s.waits(0)
	s.release(holder)
	s.empty()
}

func closeOfTheClient(t *testing.T, k Kind) {
	s := newFixture(t, k)
	// For so long, Close waits for the servers to end the session.
	closing, err := framework.New(testzk.Connect(), enduring(), framework.WithConnectTimeout(soon/2))
	require.NoError(t, err)
	defer closing.Close()
	lock := s.lock(closing)
	s.fill(s.client())
	before := s.heldNodes(0)
	hold := s.acquire(lock)
	work := hold.Context(context.Background())
	waiter := s.start(s.rival(closing))
	s.waitsBehind(1)
	began := time.Now()
	require.NoError(t, closing.Close())
	nodes, err := s.nodes()
	require.NoError(t, err)
	require.ElementsMatch(t, before, nodes, "Close returned before the nodes were deleted")
	_, err = waiter.Wait()
	require.Less(t, time.Since(began), soon)
	require.ErrorIs(t, err, framework.ErrClosed)
	testlock.LostTo(t, hold, work, framework.ErrClosed)
	for name, acquire := range ways(lock) {
		_, err := acquire(testzk.Context(t))
		require.ErrorIs(t, err, framework.ErrClosed, name)
	}
	s.release(s.acquire(s.lock(s.client())))
	s.empty()
}
