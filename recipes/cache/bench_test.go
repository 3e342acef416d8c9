package cache_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/cache"
)

// benchNodes is the number of nodes; BENCH_NODES sets another.
const benchNodes = 100_000

// BenchmarkCache measures a cache of many nodes: the time until it is current, its memory for each
// node, the time from a change to its event, and the time until it is current after a reconnect.
func BenchmarkCache(b *testing.B) {
	nodes := benchNodes
	if text := os.Getenv("BENCH_NODES"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(b, err)
		nodes = n
	}
	client, root := testzk.Connected(b, testzk.Connect()), testzk.Path(b)
	fill(b, client, root, nodes)
	var line line
	reader := testzk.Connected(b, testzk.Connect(), framework.WithDialer(line.dial))
	for b.Loop() {
		before := heap()
		begun := time.Now()
		c, err := cache.New(reader, root)
		require.NoError(b, err)
		require.NoError(b, c.WaitReady(b.Context()))
		b.ReportMetric(time.Since(begun).Seconds(), "s-start")
		b.ReportMetric(float64(heap()-before)/float64(nodes), "B/node")
		require.Greater(b, c.Len(), nodes)
		changes := make(chan cache.Event, nodes)
		stop := c.Listen(func(e cache.Event) {
			if e.Kind == cache.Changed {
				changes <- e
			}
		})
		const some = 1000
		begun = time.Now()
		for i := range some {
			_, err := client.Set(b.Context(), node(root, i), []byte("changed"), -1)
			require.NoError(b, err)
			<-changes
		}
		b.ReportMetric(float64(time.Since(begun).Microseconds())/some, "us/change")
		stop()
		b.ReportMetric(currentAfterDrop(&line, c).Seconds(), "s-reconnect")
		c.Close()
	}
}

// line is the connection of a client, which can be closed.
type line struct {
	mu   sync.Mutex
	conn net.Conn
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	return conn, err
}

func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.Close()
}

// currentAfterDrop closes the connection of a cache, and returns how long it takes until the cache
// is current again.
func currentAfterDrop(l *line, c *cache.Cache) time.Duration {
	kinds := make(chan cache.Kind, 2*c.Len())
	stop := c.Listen(func(e cache.Event) { kinds <- e.Kind })
	defer stop()
	await := func(kind cache.Kind) {
		for k := range kinds {
			if k == kind {
				return
			}
		}
	}
	await(cache.Ready)
	begun := time.Now()
	l.drop()
	await(cache.Stale)
	await(cache.Ready)
	return time.Since(begun)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// fill creates nodes, a hundred below each of a number of directories.
func fill(b *testing.B, client *framework.Client, root string, nodes int) {
	ctx := b.Context()
	for i := 0; i < nodes; i += 100 {
		_, err := client.Create(ctx, fmt.Sprintf("%s/%d", root, i/100), nil, framework.Parents())
		require.NoError(b, err)
		var all []framework.Op
		for j := range min(100, nodes-i) {
			all = append(all, framework.CreateOp(node(root, i+j), []byte("0123456789")))
		}
		_, err = client.Multi(ctx, all...)
		require.NoError(b, err)
	}
}

func node(root string, i int) string { return fmt.Sprintf("%s/%d/%d", root, i/100, i) }
