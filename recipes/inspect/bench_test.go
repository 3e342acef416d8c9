package inspect_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/zktest/proxy"
)

// benchLocks is the number of locks; BENCH_LOCKS sets another.
const benchLocks = 100_000

// BenchmarkWalk measures a walk over many mutexes with a holder each, one in ten with a waiter: the
// time, the requests, and the largest heap that the walk adds.
func BenchmarkWalk(b *testing.B) {
	locks := benchLocks
	if text := os.Getenv("BENCH_LOCKS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(b, err)
		locks = n
	}
	root := testzk.Path(b)
	plant(b, testzk.Connected(b, testzk.Connect()), root, locks)
	p := testzk.Proxy(b)
	c := testzk.Connected(b, p.Addr())
	for b.Loop() {
		before, sent := heap(), requestsOf(p)
		largest, stop := watchHeap()
		begun := time.Now()
		n := 0
		for o, err := range inspect.Walk(b.Context(), c, root) {
			require.NoError(b, err)
			n += len(o.Nodes)
		}
		b.ReportMetric(time.Since(begun).Seconds(), "s")
		stop()
		require.Equal(b, locks+(locks+9)/10, n)
		b.ReportMetric(float64(requestsOf(p)-sent), "requests")
		b.ReportMetric(float64(max(0, largest.Load()-before))/(1<<20), "MiB")
	}
}

func requestsOf(p *proxy.Proxy) int {
	counts := p.Requests()
	return counts.Total()
}

// plant creates the locks, in transactions of many.
func plant(b *testing.B, c *framework.Client, root string, locks int) {
	b.Helper()
	create(b, c, root, "")
	var ops []framework.Op
	for i := range locks {
		dir := fmt.Sprintf("%s/%06d", root, i)
		ops = append(ops, framework.CreateOp(dir, nil),
			framework.CreateOp(dir+"/"+guid+"lock-0000000000", []byte("10.0.0.3"), framework.Ephemeral()))
		if i%10 == 0 {
			waiter := dir + "/" + otherGUID + "lock-0000000001"
			ops = append(ops, framework.CreateOp(waiter, []byte("10.0.0.4"), framework.Ephemeral()))
		}
		if len(ops) > 500 || i == locks-1 {
			_, err := c.Multi(b.Context(), ops...)
			require.NoError(b, err)
			ops = nil
		}
	}
}

// watchHeap samples the heap until stop is called.
func watchHeap() (largest *atomic.Int64, stop func()) {
	largest = &atomic.Int64{}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			largest.Store(max(largest.Load(), int64(m.HeapAlloc)))
		}
	}()
	return largest, func() {
		close(end)
		<-done
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
