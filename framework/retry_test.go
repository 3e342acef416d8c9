package framework_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
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

// Each operation loses the reply to its first attempt.
func TestLostReplies(t *testing.T) {
	for name, row := range map[string]struct {
		op      fault.Op
		do      func(ctx context.Context, c *framework.Client, path string) error
		sent    int
		outcome framework.Outcome
		want    error
	}{
		"read": {
			fault.OpGetData, func(ctx context.Context, c *framework.Client, path string) error {
				_, _, err := c.Get(ctx, path)
				return err
			}, 2, framework.Applied, nil,
		},
		"list with a watch": {
			fault.OpGetChildren2, func(ctx context.Context, c *framework.Client, path string) error {
				_, _, _, err := c.ChildrenW(ctx, path)
				return err
			}, 2, framework.Applied, nil,
		},
		"sync": {
			fault.OpMulti, func(ctx context.Context, c *framework.Client, path string) error {
				return c.Sync(ctx, path)
			},
			2, framework.Applied, nil,
		},
		"set with a version": {
			fault.OpSetData, func(ctx context.Context, c *framework.Client, path string) error {
				_, err := c.Set(ctx, path, []byte("x"), 0)
				return err
			}, 2, framework.Unknown, zk.ErrBadVersion,
		},
		"set": {
			fault.OpSetData, func(ctx context.Context, c *framework.Client, path string) error {
				_, err := c.Set(ctx, path, []byte("x"), -1)
				return err
			}, 1, framework.Unknown, zk.ErrConnectionClosed,
		},
		"set ACL with a version": {
			fault.OpSetACL, func(ctx context.Context, c *framework.Client, path string) error {
				_, err := c.SetACL(ctx, path, zk.WorldACL(zk.PermAll), 0)
				return err
			}, 2, framework.Unknown, zk.ErrBadVersion,
		},
		"delete with a version": {
			fault.OpDelete, func(ctx context.Context, c *framework.Client, path string) error {
				return c.Delete(ctx, path, 0)
			},
			2, framework.Unknown, zk.ErrNoNode,
		},
		"delete": {
			fault.OpDelete, func(ctx context.Context, c *framework.Client, path string) error {
				return c.Delete(ctx, path, -1)
			},
			1, framework.Unknown, zk.ErrConnectionClosed,
		},
		"guaranteed delete": {
			fault.OpDelete, func(ctx context.Context, c *framework.Client, path string) error {
				return c.DeleteGuaranteed(ctx, path)
			},
			2, framework.Applied, nil,
		},
		"transaction": {
			fault.OpMulti, func(ctx context.Context, c *framework.Client, path string) error {
				_, err := c.Multi(ctx, framework.SetOp(path, nil, -1))
				return err
			}, 1, framework.Unknown, zk.ErrConnectionClosed,
		},
		"transaction with a version": {
			fault.OpMulti, func(ctx context.Context, c *framework.Client, path string) error {
				_, err := c.Multi(ctx, framework.SetOp(path, nil, 0))
				return err
			}, 2, framework.Unknown, zk.ErrBadVersion,
		},
		"transaction that deletes a version": {
			fault.OpMulti, func(ctx context.Context, c *framework.Client, path string) error {
				_, err := c.Multi(ctx, framework.DeleteOp(path, 0))
				return err
			}, 2, framework.Unknown, zk.ErrNoNode,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := proxied(t, framework.WithRetry(retry.Times(5, time.Millisecond)))
			path := parent(t)
			sent := p.On(fault.Match{Op: row.op, Path: path, Times: fault.Always}, fault.Pass())
			p.On(fault.Match{Op: row.op, Path: path}, fault.DropAfter())
			err := row.do(testzk.Context(t), c, path)
			if row.want == nil {
				require.NoError(t, err)
			} else {
				failed(t, err, row.outcome, row.want)
				require.ErrorContains(t, err, "(outcome unknown)")
			}
			require.Equal(t, row.sent, sent.Hits(), "requests sent")
		})
	}
}

// In virtual time no connection ends but by the fault, so each attempt reaches the server.
func TestAttemptsNeverExceedThePolicy(t *testing.T) {
	const retries = 3
	policy := retry.Times(retries, time.Millisecond)
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.DialContext),
			framework.WithRetry(policy))
		get := srv.On(fault.Match{Op: fault.OpGetData, Times: fault.Always}, fault.DropBefore())
		_, _, err := c.Get(testzk.Context(t), "/n")
		failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
		require.ErrorContains(t, err, "gave up after 4 attempts")
		require.Equal(t, retries+1, get.Hits())

		err = retry.Do(testzk.Context(t), policy, framework.IsTransient, func(ctx context.Context) error {
			_, _, err := c.Get(ctx, "/n")
			return err
		})
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.Equal(t, 2*(retries+1), get.Hits(), "the attempts of nested loops multiply")
	})
}

func TestProtectedAttemptsNeverExceedThePolicy(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		require.NoError(t, srv.Create("/a", nil))
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.DialContext),
			framework.WithRetry(retry.Times(3, time.Millisecond)))
		create := srv.On(fault.Match{Op: fault.OpCreate, Path: "/a", Times: fault.Always}, fault.DropBefore())
		_, err := c.Create(testzk.Context(t), "/a/n-", nil, kinds["lock node"]...)
		failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
		require.Equal(t, 4, create.Hits())
	})
}

func TestOperationsThatAServerRefusedAreNotRepeated(t *testing.T) {
	c, p := proxied(t, framework.WithRetry(retry.Times(5, time.Millisecond)))
	_, _, err := c.Get(testzk.Context(t), parent(t)+"/missing")
	failed(t, err, framework.NotApplied, zk.ErrNoNode)
	require.Equal(t, 1, p.Requests()[fault.OpGetData])
}

func TestOperationsWaitForTheFirstConnectionByThePolicy(t *testing.T) {
	p := testzk.Proxy(t)
	require.NoError(t, p.Refuse(true))
	creates := []string{"create", "create ephemeral", "create protected", "create container", "multi create"}
	waited := make(chan struct{}, len(creates)) // operations with two attempts without a connection
	c := testzk.Client(t, p.Addr(), framework.WithConnectTimeout(500*time.Millisecond),
		framework.WithRetry(func(attempt int, _ time.Duration) (time.Duration, bool) {
			if attempt == 1 {
				waited <- struct{}{}
			}
			return 10 * time.Millisecond, true
		}))
	path := parent(t)
	results := make(chan error, len(creates))
	for i, name := range creates {
		go func() { results <- each[name](testzk.Context(t), c, fmt.Sprintf("%s/%d", path, i)) }()
	}
	for range creates { // an operation that ignores the policy returns after the first attempt
		select {
		case err := <-results:
			require.NoError(t, err, "returned without waiting")
		case <-waited:
		}
	}
	require.NoError(t, p.Refuse(false))
	for range creates {
		require.NoError(t, <-results)
	}
}
