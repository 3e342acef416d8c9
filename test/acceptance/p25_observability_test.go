package acceptance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// A waiter that waits for longer than the limit logs one warning. It names the host, the process
// and the process id of the holder, its node and session, and the time of the node's creation. The
// waiter continues and gets the lock.
func TestP25_SlowWaitNamesTheHolder(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	path, ctx := testzk.Path(t), testzk.Context(t)
	core, logs := observer.New(zapcore.WarnLevel)
	holder := p25Mutex(t, testzk.Connected(t, testzk.Connect(), long()), path, mutex.WithIdentity())
	waiter := p25Mutex(t, testzk.Connected(t, testzk.Connect(), long(), framework.WithWaitWarning(limit),
		framework.WithLogger(zap.New(core))), path)
	begun := time.Now()
	hold, err := holder.Acquire(ctx)
	require.NoError(t, err)

	next := make(chan *recipes.Hold, 1)
	go func() {
		hold, err := waiter.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		next <- hold
	}()
	testzk.Eventually(t, func() bool { return logs.FilterMessage("still waiting").Len() > 0 }, "no warning")
	owner := fmt.Sprintf("%#x", p25Owner(t, hold.Path()))
	require.NoError(t, hold.Release())
	require.NoError(t, (<-next).Release())

	entry := logs.FilterMessage("still waiting").All()[0]
	fields := entry.ContextMap()
	require.Equal(t, zapcore.WarnLevel, entry.Level)
	require.Equal(t, path, fields["path"])
	require.GreaterOrEqual(t, fields["waited"], limit)
	host, err := os.Hostname()
	require.NoError(t, err)
	first := fields["first"].(map[string]any)
	require.WithinDuration(t, begun, first["since"].(time.Time), time.Minute, "by the server's clock")
	require.Equal(t, owner, first["session"], "as zkCli.sh shows it")
	delete(first, "since")
	delete(first, "session")
	require.Equal(t, map[string]any{
		"node": hold.Path(), "host": host, "process": filepath.Base(os.Args[0]), "pid": os.Getpid(), "holds": true,
	}, first)
}

// p25Owner returns the session of an ephemeral node.
func p25Owner(t *testing.T, node string) uint64 {
	t.Helper()
	_, stat, err := testzk.Observer(t).Exists(node)
	require.NoError(t, err)
	return uint64(stat.EphemeralOwner)
}

func p25Mutex(t *testing.T, c *framework.Client, path string, opts ...mutex.Option) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path, opts...)
	require.NoError(t, err)
	return mu
}

// The names, kinds, units and labels of the 11 metrics do not change, because dashboards and alerts
// depend on them.
func TestP25_MetricNamesAreStable(t *testing.T) {
	var all []string
	for _, i := range metrics.Instruments() {
		all = append(all, fmt.Sprintf("%v, %v of %s by %v", i, i.Kind(), i.Unit(), i.Labels()))
	}
	require.Equal(t, []string{
		"docent.lock.wait, histogram of s by [recipe path outcome]",
		"docent.lock.hold, histogram of s by [recipe path cause]",
		"docent.lock.waiters, up-down counter of {waiter} by [recipe path]",
		"docent.lock.losses, counter of {hold} by [recipe path cause]",
		"docent.session.losses, counter of {session} by [cause]",
		"docent.connection.reconnects, counter of {connection} by []",
		"docent.deletions.pending, up-down counter of {deletion} by []",
		"docent.lock.held, gauge (sum) of {lock} by [recipe path]",
		"docent.client.state, gauge (sum) of {client} by [state]",
		"docent.session.timeout, gauge (minimum) of s by []",
		"docent.session.remaining, gauge (minimum) of s by []",
	}, all)
}

// Two clients acquire a lock, wait for it, give up, and lose it in three ways: by an expired
// session, by a deleted node and by a network that is cut for a minute. Each metric then has
// exactly the expected value, with durations to two seconds, and each gauge is 0 again.
func TestP25_MetricsHaveTheExpectedValues(t *testing.T) {
	onlyInProcess(t, "only virtual time gives durations that are always the same")
	t.Parallel()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		alice, bob := p25NewActor(t, srv, "alice"), p25NewActor(t, srv, "bob")

		hold := alice.acquire(t)
		time.AfterFunc(30*time.Second, func() { _ = hold.Release() })
		waiting := make(chan []string, 1)
		time.AfterFunc(29*time.Second, func() { waiting <- bob.measured.Lines(0) })
		hold = bob.acquire(t) // after 30 s
		require.Equal(t, []string{"docent.lock.waiters{mutex /orders} 1"}, <-waiting)
		alice.giveUp(t, 10*time.Second)
		require.NoError(t, bob.way.Sessions()[0].Expire()) // the client learns it at once
		<-hold.Done()
		hold = bob.acquire(t)
		time.Sleep(6 * time.Second)
		require.NoError(t, srv.Delete(hold.Path()))
		<-hold.Done()
		hold = bob.acquire(t)
		time.Sleep(18 * time.Second)
		bob.way.Cut() // the hold ends two thirds of 4 s after the last answer
		time.Sleep(time.Minute)
		require.ErrorIs(t, hold.Err(), framework.ErrSessionLost)
		bob.way.Heal()
		hold = bob.acquire(t)
		time.Sleep(4 * time.Second)
		require.NoError(t, hold.Release())
		hold = bob.acquire(t)
		time.Sleep(2 * time.Second)
		require.NoError(t, bob.client.Close())
		require.ErrorIs(t, hold.Err(), framework.ErrClosed)
		require.NoError(t, alice.client.Close())

		alice.expect(t,
			"docent.deletions.pending{} 0",
			"docent.lock.hold{mutex /orders released} 30s",
			"docent.lock.waiters{mutex /orders} 0",
			"docent.lock.wait{mutex /orders acquired} 0s",
			"docent.lock.wait{mutex /orders not_acquired} 10s",
			"docent.session.losses{closed} 1")
		bob.expect(t,
			"docent.connection.reconnects{} 2",
			"docent.deletions.pending{} 0",
			"docent.lock.hold{mutex /orders closed} 2s",
			"docent.lock.hold{mutex /orders node_deleted} 6s",
			"docent.lock.hold{mutex /orders released} 4s",
			"docent.lock.hold{mutex /orders session_lost} 10s 20s",
			"docent.lock.losses{mutex /orders closed} 1",
			"docent.lock.losses{mutex /orders node_deleted} 1",
			"docent.lock.losses{mutex /orders session_lost} 2",
			"docent.lock.waiters{mutex /orders} 0",
			"docent.lock.wait{mutex /orders acquired} 30s 0s 0s 0s 0s",
			"docent.session.losses{closed} 1",
			"docent.session.losses{deadline} 1",
			"docent.session.losses{expired} 1")
	})
}

// p25Actor is a client with its metrics.
type p25Actor struct {
	client   *framework.Client
	way      *zktest.Client
	lock     *mutex.Mutex
	measured testzk.Metrics
}

func p25NewActor(t *testing.T, srv *zktest.Server, name string) *p25Actor {
	t.Helper()
	a := &p25Actor{way: srv.Client(name)}
	a.client = testzk.Connected(t, srv.MemAddr(), framework.WithDialer(a.way.DialContext),
		framework.WithMetrics(&a.measured))
	a.lock = p25Mutex(t, a.client, "/orders")
	return a
}

func (a *p25Actor) acquire(t *testing.T) *recipes.Hold {
	t.Helper()
	hold, err := a.lock.Acquire(context.Background())
	require.NoError(t, err)
	return hold
}

func (a *p25Actor) giveUp(t *testing.T, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	_, err := a.lock.Acquire(ctx)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
}

func (a *p25Actor) expect(t *testing.T, lines ...string) {
	t.Helper()
	require.Equal(t, lines, a.measured.Lines(2*time.Second))
}
