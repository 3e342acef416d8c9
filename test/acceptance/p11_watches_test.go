package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p11Acquires   = 10_000
	p11WarmUp     = 2_000 // until tables, pools and the trace have their final size
	p11Impatience = 30 * time.Millisecond
)

// 10,000 acquires of one client time out while another client holds the lock. Afterwards the server
// has at most two watches of the client, and the process uses less than 1 MiB of memory more than
// before.
func TestP11_AbandonedWaitsCostNothing(t *testing.T) { // not parallel: it measures the memory of the process
	if testzk.InProcess() == nil {
		wchp := func() string { return p11Command(t, "wchp") }
		p11Abandon(t, testzk.Connected(t, testzk.Connect(), long()), testzk.Connected(t, testzk.Connect(), long()),
			50, wchp)
		return
	}
	// One at a time, so that each watches the holder.
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		wchp := func() string {
			answer, err := srv.Command("wchp")
			require.NoError(t, err)
			return answer
		}
		p11Abandon(t, bubbleClient(t, srv, "holder"), bubbleClient(t, srv, "waiter"), 1, wchp)
	})
}

// p11Abandon makes atOnce acquires at a time. wchp returns the server's list of watches.
func p11Abandon(t *testing.T, holder, waiter *framework.Client, atOnce int, wchp func() string) {
	path := testzk.Path(t)
	hold, err := bubbleMutex(t, holder, path).Acquire(t.Context())
	require.NoError(t, err)
	session, err := waiter.Session(t.Context())
	require.NoError(t, err)
	mu := bubbleMutex(t, waiter, path)
	p11GiveUp(t, mu, p11WarmUp, atOnce)
	before := p11Heap()
	p11GiveUp(t, mu, p11Acquires, atOnce)
	growth := p11Heap() - before
	t.Logf("heap grew by %d KiB, watched %v", growth>>10, p11Watched(wchp(), session.ID()))
	require.Less(t, growth, int64(1<<20), "bytes")
	testzk.Eventually(t, func() bool { return len(p11Watched(wchp(), session.ID())) <= 2 }, "more than two watches")
	require.NoError(t, session.Err())
	require.NoError(t, hold.Release())
}

// p11GiveUp makes acquires until count of them have timed out while they waited for a holder. If an
// acquire is not in the queue by then, because the machine is slow, the next one has more time.
func p11GiveUp(t testing.TB, mu *mutex.Mutex, count, atOnce int) {
	t.Helper()
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			impatience := p11Impatience
			for waited := 0; waited < count/atOnce && !t.Failed(); {
				ctx, cancel := context.WithTimeout(t.Context(), impatience)
				_, err := mu.Acquire(ctx)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("not a timeout: %v", err)
				}
				if errors.Is(err, recipes.ErrNotAcquired) {
					waited, impatience = waited+1, p11Impatience
				} else {
					impatience *= 2
				}
			}
		})
	}
	all.Wait()
}

// p11Heap returns the size of the reachable memory in bytes.
func p11Heap() int64 {
	runtime.GC()
	runtime.GC() // frees what the first run returned to pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// p11Watched returns the nodes that a session watches. The server lists one node a line, followed
// by the sessions that watch it.
func p11Watched(wchp string, session int64) (watched []string) {
	var node string
	for line := range strings.Lines(wchp) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "/") {
			node = line
		}
		if line == fmt.Sprintf("\t%#x", uint64(session)) {
			watched = append(watched, node)
		}
	}
	return watched
}

// p11Command sends a four-letter command to the clients' server.
func p11Command(t testing.TB, word string) string {
	t.Helper()
	conn, err := net.Dial("tcp", testzk.Connect())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(word))
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(answer)
}
