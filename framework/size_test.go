package framework_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestTooLargeRequestsAreRefusedWithoutHarmToOthers(t *testing.T) {
	path := parent(t)
	c, p, states := traced(t, longSession())
	held := p.On(fault.Match{Op: fault.OpExists}, fault.Hold())
	concurrent := make(chan error, 1)
	go func() {
		_, err := c.Exists(context.Background(), path)
		concurrent <- err
	}()
	ctx := testzk.Context(t)
	require.NoError(t, held.Wait(ctx))

	tooMuch, half := make([]byte, 1<<20), make([]byte, 1<<19)
	tooLong := "/" + strings.Repeat("x", 1<<20)
	_, create := c.Create(ctx, path+"/a", tooMuch)
	_, ephemeral := c.Create(ctx, path+"/a", tooMuch, framework.Ephemeral(), framework.Protected())
	_, set := c.Set(ctx, path, tooMuch, -1)
	_, multi := c.Multi(ctx, framework.SetOp(path, half, -1), framework.SetOp(path, half, -1))
	many := make([]framework.Op, 30_000)
	for i := range many {
		many[i] = framework.CheckOp(path, -1)
	}
	_, multiOfMany := c.Multi(ctx, many...)
	for name, err := range map[string]error{
		"create": create, "create ephemeral": ephemeral, "set": set, "multi": multi, "multi of many": multiOfMany,
	} {
		require.ErrorIs(t, err, framework.ErrTooLarge, name)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), name)
	}
	for name, op := range each {
		require.ErrorIs(t, op(ctx, c, tooLong), framework.ErrTooLarge, "%s of a long path", name)
	}

	held.Release()
	require.NoError(t, <-concurrent)
	require.Equal(t, []framework.State{framework.Connected}, states.states())
	require.Equal(t, 1, p.Connections())
}

func TestLargestRequestPasses(t *testing.T) {
	c, p := proxied(t)
	ctx, path := testzk.Context(t), parent(t)
	largest := 0xfffff - 1024 - len(path)
	_, err := c.Set(ctx, path, make([]byte, largest), -1)
	require.NoError(t, err)
	_, err = c.Multi(ctx, framework.SetOp(path, make([]byte, largest-32), -1))
	require.NoError(t, err)
	_, err = c.Set(ctx, path, make([]byte, largest+1), -1)
	require.ErrorIs(t, err, framework.ErrTooLarge)
	data, _, err := c.Get(ctx, path)
	require.NoError(t, err)
	require.Len(t, data, largest-32)
	require.Equal(t, 1, p.Connections())
}
