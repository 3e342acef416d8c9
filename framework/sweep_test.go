package framework_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/proxy"
)

// pair creates a protected node and, in the same transaction, an ephemeral one under a name that others use too.
func pair(ctx context.Context, c *framework.Client, under string) error {
	_, err := c.Multi(ctx, framework.CreateOp(under+"/n-", nil, kinds["lock node"]...),
		framework.CreateOp(under+"/plain", nil, framework.Ephemeral()))
	return err
}

func TestPlainEphemeralNodeOfAnAbandonedTransactionIsSweptWithTheProtectedOne(t *testing.T) {
	o := testzk.Observer(t)
	for name, action := range map[string]proxy.Action{"answer lost": proxy.DropAfter(), "request held": proxy.Hold()} {
		c, p := through(t, framework.WithRetry(retry.Never()))
		under := parent(t)
		fault := p.On(proxy.Match{Op: proxy.OpMulti}, action)
		ctx, cancel := context.WithCancel(testzk.Context(t))
		result := make(chan error, 1)
		go func() { result <- pair(ctx, c, under) }()
		require.NoError(t, fault.Wait(testzk.Context(t)))
		if name == "request held" {
			cancel()
		}
		require.Equal(t, framework.Unknown, framework.OutcomeOf(<-result), name)
		cancel()
		fault.Release()
		testzk.Eventually(t, func() bool {
			_, stat, there := observe(t, o, under)
			return there && stat.NumChildren == 0 && stat.Cversion == 4
		}, "%s: not both have come and gone", name)
	}
}

// The transaction came too late, so the node is somebody else's.
func TestPlainNodeOfSomebodyElseIsNotSweptForATransactionThatFailed(t *testing.T) {
	o := testzk.Observer(t)
	c, p := through(t)
	under := parent(t)
	held := p.On(proxy.Match{Op: proxy.OpMulti}, proxy.Hold())
	ctx, cancel := context.WithCancel(testzk.Context(t))
	result := make(chan error, 1)
	go func() { result <- pair(ctx, c, under) }()
	require.NoError(t, held.Wait(testzk.Context(t)))
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	require.NoError(t, create(o, under+"/plain"))
	looks := p.On(proxy.Match{Op: proxy.OpGetChildren2, Path: under}, proxy.Pass())
	held.Release()
	require.NoError(t, looks.Wait(testzk.Context(t)), "nobody looks for what may be left")
	for range 10 { // a sweep that found something would delete it with the next request
		require.NoError(t, c.Sync(testzk.Context(t), under))
	}
	require.Equal(t, []string{"plain"}, children(t, o, under))
}

// The sweep has deleted both, does not know, and by the time it comes again the name is somebody else's.
func TestSweepThatIsRepeatedSparesThePlainNodeOfSomebodyElse(t *testing.T) {
	o := testzk.Observer(t)
	c, p := through(t, framework.WithRetry(retry.Never()))
	under := parent(t)
	p.On(proxy.Match{Op: proxy.OpMulti}, proxy.DropAfter())
	swept := p.On(proxy.Match{Op: proxy.OpMulti, Path: under + "/_c_"}, proxy.DropAfter())
	require.Error(t, pair(testzk.Context(t), c, under))
	require.NoError(t, swept.Wait(testzk.Context(t)))
	require.NoError(t, p.Refuse(true))
	testzk.Eventually(t, func() bool { return create(o, under+"/plain") == nil }, "the first sweep has not deleted it")
	looks := p.On(proxy.Match{Op: proxy.OpGetChildren2, Path: under}, proxy.Pass())
	require.NoError(t, p.Refuse(false))
	require.NoError(t, looks.Wait(testzk.Context(t)), "nobody looks again")
	for range 10 {
		require.NoError(t, c.Sync(testzk.Context(t), under))
	}
	require.Equal(t, []string{"plain"}, children(t, o, under))
}
