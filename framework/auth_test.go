package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/proxy"
)

func TestCredentialsArePresentedInEachConnectionAndSession(t *testing.T) {
	t.Parallel()
	ctx, path := testzk.Context(t), parent(t)
	c, p, states := traced(t, framework.WithAuth("digest", []byte("other:one")), framework.WithAuth("digest", []byte("user:secret")))
	_, err := c.Create(ctx, path+"/a", nil, framework.ACL(zk.DigestACL(zk.PermAll, "user", "secret")...))
	require.NoError(t, err)
	stranger := testzk.Connected(t, testzk.Connect())
	_, _, err = stranger.Get(ctx, path+"/a")
	failed(t, err, framework.NotApplied, zk.ErrNoAuth)
	_, _, err = c.Get(ctx, path+"/a")
	require.NoError(t, err)

	p.DropConnections()
	states.await(t, framework.Connected, framework.Suspended, framework.Reconnected)
	_, _, err = c.Get(ctx, path+"/a")
	require.NoError(t, err, "after a reconnect")

	require.NoError(t, p.Refuse(true))
	expire(t, session(t, c).ID())
	require.NoError(t, p.Refuse(false))
	states.await(t, framework.Connected, framework.Suspended, framework.Reconnected,
		framework.Suspended, framework.Lost, framework.Reconnected)
	_, _, err = c.Get(ctx, path+"/a")
	require.NoError(t, err, "in the next session")
}

func TestRejectedCredentialIsToldAtOnce(t *testing.T) {
	c := testzk.Client(t, testzk.Connect(), framework.WithAuth("nosuch", []byte("x")), framework.WithRetry(retry.Forever(time.Hour)))
	ctx := context.Background()
	within(t, "WaitConnected", func() { failed(t, c.WaitConnected(ctx), framework.NotApplied, framework.ErrAuthFailed) })
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

// The connection is lost while a credential is being presented for the first time.
func TestCredentialIsPresentedAgainIfTheConnectionIsLostOverIt(t *testing.T) {
	p := testzk.Proxy(t)
	lost := p.On(proxy.Match{Op: proxy.OpAuth}, proxy.DropBefore())
	c := testzk.Client(t, p.Addr(), framework.WithAuth("digest", []byte("user:secret")))
	require.NoError(t, c.WaitConnected(testzk.Context(t)))
	require.Equal(t, 1, lost.Hits())
}
