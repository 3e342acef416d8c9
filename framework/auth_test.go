package framework_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestCredentialsAreSentOnEachConnectionAndInEachSession(t *testing.T) {
	t.Parallel()
	ctx, path := testzk.Context(t), parent(t)
	c, p, states := traced(t, longSession(), framework.WithAuth("digest", []byte("other:one")),
		framework.WithAuth("digest", []byte("user:secret")))
	_, err := c.Create(ctx, path+"/a", nil, framework.ACL(zk.DigestACL(zk.PermAll, "user", "secret")...))
	require.NoError(t, err)
	other := testzk.Connected(t, testzk.Connect())
	testzk.Everywhere(t)
	_, _, err = other.Get(ctx, path+"/a")
	failed(t, err, framework.NotApplied, zk.ErrNoAuth)
	_, _, err = c.Get(ctx, path+"/a")
	require.NoError(t, err)

	p.DropConnections()
	states.await(t, framework.Connected, framework.Suspended, framework.Reconnected)
	_, _, err = c.Get(ctx, path+"/a")
	require.NoError(t, err, "after a reconnect")

	id := session(t, c).ID()
	require.NoError(t, p.Refuse(true))
	expire(t, id)
	require.NoError(t, p.Refuse(false))
	states.await(t, framework.Connected, framework.Suspended, framework.Reconnected,
		framework.Suspended, framework.Lost, framework.Reconnected)
	_, _, err = c.Get(ctx, path+"/a")
	require.NoError(t, err, "in the next session")
}

func TestRefusedCredentialIsReportedAtOnce(t *testing.T) {
	c := testzk.Client(t, testzk.Connect(), framework.WithAuth("nosuch", []byte("x")),
		framework.WithRetry(retry.Forever(time.Hour)))
	ctx := context.Background()
	within(t, "WaitConnected", func() {
		failed(t, c.WaitConnected(ctx), framework.NotApplied, framework.ErrAuthFailed)
	})
	within(t, "all operations", func() {
		for name, op := range each {
			err := op(ctx, c, "/a")
			require.ErrorIs(t, err, framework.ErrAuthFailed, name)
			require.False(t, framework.IsTransient(err), name)
		}
		_, err := c.Session(ctx)
		require.ErrorIs(t, err, framework.ErrAuthFailed)
	})
	require.Equal(t, framework.AuthFailed, c.State())
	within(t, "Close", func() { require.NoError(t, c.Close()) })
}

// The connection is lost before the first answer to a credential.
func TestCredentialIsSentAgainIfTheConnectionIsLost(t *testing.T) {
	p := testzk.Proxy(t)
	lost := p.On(fault.Match{Op: fault.OpAuth}, fault.DropBefore())
	c := testzk.Client(t, p.Addr(), framework.WithAuth("digest", []byte("user:secret")))
	require.NoError(t, c.WaitConnected(testzk.Context(t)))
	require.Equal(t, 1, lost.Hits())
}

// One attempt is refused, and the next ones get no answer.
func TestStateAndOperationsAgreeAboutARefusedCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.On(fault.Match{Op: fault.OpAuth}, fault.Fail(zktest.AuthFailed))
		held := srv.On(fault.Match{Op: fault.OpAuth, Times: fault.Always}, fault.Hold())
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext),
			framework.WithAuth("digest", []byte("u:p")))
		for range 60 {
			time.Sleep(500 * time.Millisecond)
			require.Equal(t, framework.AuthFailed, c.State())
			_, _, err := c.Get(t.Context(), "/")
			require.ErrorIs(t, err, framework.ErrAuthFailed)
		}
		require.Greater(t, held.Hits(), 1)
		held.Remove()
		time.Sleep(time.Minute)
		require.True(t, c.State().IsConnected(), "%v", c.State())
		_, _, err := c.Get(t.Context(), "/")
		require.NoError(t, err)
	})
}

func TestThrottledCredentialIsSentAgainWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithSeed(1)) // answers are delayed
		throttled := srv.On(fault.Match{Op: fault.OpAuth, Times: fault.Always}, fault.Fail(zktest.Throttled))
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext),
			framework.WithAuth("digest", []byte("u:p")))
		time.Sleep(10 * time.Second)
		require.Greater(t, throttled.Hits(), 10)
		require.LessOrEqual(t, throttled.Hits(), 100)
		throttled.Remove()
		time.Sleep(10 * time.Second)
		require.NoError(t, c.WaitConnected(t.Context()))
	})
}

func TestClientConnectsAfterConnectionsWereLostDuringAuthentication(t *testing.T) {
	losses := []fault.Action{fault.DropBefore(), fault.DropAfter(), fault.Reset(), fault.Truncate(7)}
	sim.Run(t, 12, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		for range 1 + random.IntN(5) {
			srv.On(fault.Match{Op: fault.OpAuth, Skip: random.IntN(3)}, losses[random.IntN(len(losses))])
		}
		c := testzk.Client(t, "a:1,b:1", byHost(srv), framework.WithSessionTimeout(time.Minute),
			framework.WithAuth("digest", []byte("u:p")), framework.WithAuth("digest", []byte("v:p")),
			framework.WithAuth("digest", []byte("u:p")))
		time.Sleep(time.Minute)
		require.True(t, c.State().IsConnected(), "%v", c.State())
		srv.ResetFaults()
		for range 3 {
			srv.Client("a").Drop()
			srv.Client("b").Drop()
			time.Sleep(20 * time.Second)
			require.Equal(t, framework.Reconnected, c.State())
		}
		require.Len(t, srv.Sessions(), 1)
		require.Equal(t, "s1", srv.Sessions()[0].String(), "want the first session")
	})
}
