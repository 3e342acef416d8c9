package framework_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// After 2^31 writes the version of a node is negative. It is compared like any other, and a write
// with it is repeated after a lost answer.
func TestVersionsAfterAnOverflowAreVersions(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
		ctx := testzk.Context(t)
		require.NoError(t, srv.Create("/a", nil))
		require.NoError(t, srv.SetVersion("/a", math.MaxInt32))
		stat, err := c.Set(ctx, "/a", nil, math.MaxInt32)
		require.NoError(t, err)
		require.EqualValues(t, math.MinInt32, stat.Version)

		_, err = c.Set(ctx, "/a", nil, -5)
		failed(t, err, framework.NotApplied, zk.ErrBadVersion)
		failed(t, c.Delete(ctx, "/a", -5), framework.NotApplied, zk.ErrBadVersion)
		_, err = c.Multi(ctx, framework.CheckOp("/a", -5))
		failed(t, err, framework.NotApplied, zk.ErrBadVersion)
		_, err = c.Multi(ctx, framework.CheckOp("/a", math.MinInt32), framework.SetOp("/a", nil, math.MinInt32))
		require.NoError(t, err)

		srv.On(fault.Match{Client: "c", Op: fault.OpSetData}, fault.DropBefore())
		stat, err = c.Set(ctx, "/a", nil, math.MinInt32+1)
		require.NoError(t, err)
		require.EqualValues(t, math.MinInt32+2, stat.Version)
		srv.On(fault.Match{Client: "c", Op: fault.OpMulti, Path: "/a"}, fault.DropBefore())
		_, err = c.Multi(ctx, framework.SetOp("/a", nil, math.MinInt32+2))
		require.NoError(t, err)
		require.NoError(t, c.Delete(ctx, "/a", math.MinInt32+3))
	})
}
