package framework_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestOutlastRepeatsWhatPasses(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx := testzk.Context(t)
	_, _, err := c.Get(ctx, testzk.Path(t))
	require.ErrorIs(t, err, zk.ErrNoNode)
	require.False(t, c.Outlast(ctx, err), "the answer would be the same")
	require.False(t, c.Outlast(ctx, nil))
	require.False(t, c.Outlast(ctx, errors.New("of the program")))
	require.True(t, c.Outlast(ctx, fmt.Errorf("wrapped: %w", framework.ErrSessionLost)))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.False(t, c.Outlast(ended, framework.ErrSessionLost))
	require.NoError(t, c.Close())
	require.False(t, c.Outlast(ctx, framework.ErrSessionLost))
	_, _, err = c.Get(ctx, "/a")
	require.False(t, c.Outlast(ctx, err))
}

// A loop around Outlast follows a node by its Client or by sessions, whatever connections and
// sessions it loses.
func TestSimulatedLoopsOutlastOutages(t *testing.T) {
	sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const timeout = 6 * time.Second
		c := testlock.Client(t, srv.Client("c"), srv.MemAddr(), random, timeout,
			framework.WithRetry(retry.Exponential(100*time.Millisecond, 2)))
		ctx, stop := context.WithCancel(t.Context())
		ends := make(chan error, 2)
		var reads [2]atomic.Int64
		loop := func(i int, read func() error) {
			for {
				time.Sleep(100 * time.Millisecond)
				if err := read(); err == nil {
					reads[i].Add(1)
				} else if !c.Outlast(ctx, err) {
					ends <- err
					return
				}
			}
		}
		go loop(0, func() error {
			_, err := c.Exists(ctx, "/")
			return err
		})
		go loop(1, func() error {
			s, err := c.Session(ctx)
			if err == nil {
				_, err = s.Exists(ctx, "/")
			}
			return err
		})
		client := srv.Client("c")
		for range 10 {
			client.Cut()
			time.Sleep(time.Duration(random.Int64N(int64(2 * timeout))))
			client.Heal()
			time.Sleep(time.Duration(random.Int64N(int64(timeout))))
		}
		require.Empty(t, ends)
		time.Sleep(timeout)
		before := []int64{reads[0].Load(), reads[1].Load()}
		time.Sleep(timeout)
		require.Empty(t, ends)
		for i, n := range before {
			require.Greater(t, reads[i].Load(), n, "loop %d goes on", i)
		}
		stop()
		for range 2 {
			require.ErrorIs(t, <-ends, context.Canceled)
		}
	})
}
