package mutex_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The cause of a canceled context says nothing about a request that may have been sent.
func TestOutcomeOfARequestIsIndependentOfTheCancelCause(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext),
			framework.WithRetry(retry.Forever(time.Second)))
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.WaitConnected(t.Context()))
		const node = "/l/_c_4ad3dc50-7554-4786-b220-92a9ebed5ec8-lock-0000000000"
		require.NoError(t, srv.Create(node, nil))
		_, _, cause := c.Children(t.Context(), "no path")
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(cause))
		srv.On(fault.Match{Client: "c", Op: fault.OpSetData}, fault.DropAfter())
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(cause) })
		err = recipes.Revoke(ctx, c, recipes.Participant{Node: node})
		t.Log(err)
		data, _ := srv.Get(node)
		require.Equal(t, "__REVOKE__", string(data))
		require.NotEqual(t, framework.NotApplied, framework.OutcomeOf(err))
	})
}
