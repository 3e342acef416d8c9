package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A lock whose wait has succeeded is held, also if the context has ended just then.
func TestContextThatEndsAfterAWaitIsNoError(t *testing.T) {
	client := testzk.Connected(t, zktest.Start(t).Addr())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, WaitError(ended, client, ErrBusy, nil))
	require.ErrorIs(t, WaitError(ended, client, ErrBusy, ended.Err()), recipes.ErrNotAcquired)
}

func TestOnlyTheEndOfAContextMakesAWaitNotAcquired(t *testing.T) {
	client := testzk.Connected(t, zktest.Start(t).Addr())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx         context.Context
		err         error
		notAcquired bool
	}{
		"context ended":            {ended, context.Canceled, true},
		"deadline below the lock":  {t.Context(), context.DeadlineExceeded, true},
		"refusal of the servers":   {t.Context(), zk.ErrNoAuth, false},
		"session lost":             {t.Context(), framework.ErrSessionLost, false},
		"refusal as context ended": {ended, zk.ErrNoAuth, true},
		"not connected":            {ended, framework.ErrNotConnected, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := WaitError(test.ctx, client, ErrBusy, test.err)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.notAcquired, errors.Is(err, recipes.ErrNotAcquired), "%v", err)
		})
	}
	require.NoError(t, WaitError(ended, client, ErrBusy, nil), "the wait has succeeded")
}

// The cause of a context may be an outage of another client.
func TestCauseOfAContextIsNoOutage(t *testing.T) {
	client := testzk.Connected(t, zktest.Start(t).Addr())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(framework.ErrNotConnected)
	require.ErrorIs(t, WaitError(ctx, client, ErrBusy, ctxerr.Of(ctx)), recipes.ErrNotAcquired)
}

func TestWaitOfAClientWithoutAConnectionEndsWithTheReason(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	refusing := zktest.Start(t)
	refusing.On(fault.Match{Op: fault.OpAuth, Times: fault.Always}, fault.Fail(zktest.AuthFailed))
	const nowhere = "127.0.0.1:1"
	closed := testzk.Client(t, nowhere)
	require.NoError(t, closed.Close())
	for name, test := range map[string]struct {
		client *framework.Client
		want   error
		text   string
	}{
		"closed": {closed, framework.ErrClosed, "closed"},
		"refused": {
			testzk.Client(t, refusing.Addr(), framework.WithAuth("digest", []byte("u:p"))),
			framework.ErrAuthFailed, "authentication failed",
		},
		"no server": {testzk.Client(t, nowhere), framework.ErrNotConnected, nowhere + ": "},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			testzk.Eventually(t, func() bool {
				err = WaitError(ended, test.client, Busy("behind /a"), context.Canceled)
				return errors.Is(err, test.want) && strings.Contains(err.Error(), test.text)
			}, "the wait ends with the reason")
			for _, other := range []error{
				framework.ErrClosed, framework.ErrAuthFailed, framework.ErrNotConnected, recipes.ErrNotAcquired,
			} {
				require.Equal(t, other == test.want, errors.Is(err, other), "%v", err)
			}
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, "behind /a")
			require.Equal(t, test.want, WaitError(ended, test.client, ErrBusy, test.want), "it is there once")
		})
	}
}

func TestBusyLockIsNotAcquiredWhateverIsInTheWay(t *testing.T) {
	l := &Lock{Spec: Spec{Paths: []string{"/lock"}}}
	require.ErrorIs(t, l.CallerError(t.Context(), ErrBusy), recipes.ErrNotAcquired)
	require.EqualError(t, l.CallerError(t.Context(), Busy("behind /lock/a")),
		"acquire /lock: "+recipes.ErrNotAcquired.Error()+": behind /lock/a")
	require.ErrorIs(t, OwnNodes{}.Busy(), ErrBusy, "no node is known to wait")
}

func TestNameOfALockHasFivePaths(t *testing.T) {
	name := func(paths ...string) string { return (&Lock{Spec: Spec{Paths: paths}}).String() }
	require.Equal(t, "/a, /b, /c, /d, /e", name("/a", "/b", "/c", "/d", "/e"))
	require.Equal(t, "/a, /b, /c, /d, /e and 1 more", name("/a", "/b", "/c", "/d", "/e", "/f"))
}

func TestOnlyAnExistingNodeMeansThatTheCounterIsStuck(t *testing.T) {
	require.Equal(t, zk.ErrNoAuth, explainStuck(zk.ErrNoAuth))
	require.ErrorIs(t, explainStuck(zk.ErrNodeExists), zk.ErrNodeExists)
	require.ErrorContains(t, explainStuck(zk.ErrNodeExists), "counter of sequence numbers is stuck")
}

func TestOwnNodesContainEachNode(t *testing.T) {
	own := OwnNodes{{path: "/a/1"}, {path: "/b/2"}}
	require.True(t, own.Contain("/a/1"))
	require.True(t, own.Contain("/b/2"))
	require.False(t, own.Contain("/a/2"))
}

// A hold must not begin in a session that was lost while its node was confirmed.
func TestNoLifetimeBeginsInALostSession(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
		s, err := c.Session(t.Context())
		require.NoError(t, err)
		_, err = ConfirmedLifetime(t.Context(), s, func(context.Context, bool) error {
			require.NoError(t, srv.Sessions()[0].Expire())
			<-s.Done()
			return nil
		})
		require.ErrorIs(t, err, framework.ErrSessionLost)
	})
}

// A program may use a queue for each of its orders: what a session knows of one must not stay.
func TestQueueIsForgottenWithItsLastWaiter(t *testing.T) {
	state := &sessionState{}
	queue := func() any { return "queue" }()
	first, second := watchedWaiter{&waiter{}, new(framework.Watch)}, watchedWaiter{&waiter{}, new(framework.Watch)}
	second.Seq = 1
	require.True(t, state.add(queue, first))
	require.True(t, state.add(queue, second))
	state.remove(queue, first)
	require.Len(t, state.watched[queue], 1)
	state.remove(queue, second)
	require.Empty(t, state.watched)
}
