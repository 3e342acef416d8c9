package queue_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// renaming is a connection to a server that, while it is on, reports other names of sequential
// nodes: reported in place of actual. Both have the same length.
type renaming struct {
	net.Conn
	on               *atomic.Bool
	actual, reported []byte
}

func (r *renaming) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if r.on.Load() {
		copy(b, bytes.ReplaceAll(b[:n], r.actual, r.reported))
	}
	return n, err
}

func (r *renaming) Write(b []byte) (int, error) {
	if r.on.Load() {
		b = bytes.ReplaceAll(b, r.reported, r.actual)
	}
	return r.Conn.Write(b)
}

// A server gives a new node a name without a sequence number. The acquire fails, and the node is
// deleted.
func TestNodeWithoutASequenceNumberIsDeleted(t *testing.T) {
	rules := queue.Rules{Kind: "r-", Conflicting: []string{"w-"}, Compatible: []string{"r-"}}
	for name, acquire := range map[string]func(ctx context.Context, r, w *queue.Lock) error{
		"enqueue": func(ctx context.Context, r, _ *queue.Lock) error {
			_, err := r.Acquire(ctx, waits)
			return err
		},
		"beside": func(ctx context.Context, r, w *queue.Lock) error {
			hold, err := w.Acquire(ctx, waits)
			if err == nil {
				defer func() { _ = hold.Release() }()
				_, err = r.Downgrade(ctx, hold)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				var on atomic.Bool
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := srv.Client("c").DialContext(ctx, network, address)
					return &renaming{conn, &on, []byte("r-0000000000"), []byte("r-none000000")}, err
				}
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(dial))
				r := queue.Single(c, "reads", "/lock", rules, nil)
				w := queue.Single(c, "writes", "/lock", queue.Rules{Kind: "w-", Conflicting: []string{"w-", "r-"}}, nil)
				on.Store(true)
				require.ErrorContains(t, acquire(t.Context(), r, w), "no sequence number")
				time.Sleep(time.Second)
				require.Equal(t, "/lock container\n", srv.Tree())
			})
		})
	}
}
