package acceptance_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Two clients take the lock in turns, 1,000 times in all. Every 100th time the holder loses its
// session (or closes it, where time is real). Every 10th time the lock's parent is deleted and
// created again. Each token is larger than the one before, although sequence numbers start over.
func TestP02_TokensStrictlyIncrease(t *testing.T) {
	t.Parallel()
	const grants = 1000
	path := testzk.Path(t)
	other := p02Connect(t, path)
	var clients [2]*p02Client
	for i := range clients {
		clients[i] = p02Connect(t, path)
	}
	var last int64
	restarted := 0
	for i := range grants {
		c := clients[i%2]
		hold, err := c.mu.Acquire(testzk.Context(t))
		require.NoError(t, err)
		require.Greater(t, hold.Token(), last, "grant %d", i)
		last = hold.Token()
		if strings.HasSuffix(hold.Path(), "-0000000000") {
			restarted++
		}
		if i%100 == 99-i/100 { // alternates between the clients
			clients[i%2] = c.loseSession(t, hold)
		} else {
			require.NoError(t, hold.Release())
		}
		if i%10 == 9 {
			// The server has reaped it.
			if err := other.Delete(testzk.Context(t), path, -1); !errors.Is(err, zk.ErrNoNode) {
				require.NoError(t, err)
			}
		}
	}
	require.GreaterOrEqual(t, restarted, grants/10, "the parent was not created again, so nothing was tested")
}

// p02Client is a client with its mutex.
type p02Client struct {
	*framework.Client
	mu *mutex.Mutex
}

func p02Connect(t testing.TB, path string) *p02Client {
	t.Helper()
	// No session may end by itself.
	c := testzk.Connected(t, testzk.Connect(), framework.WithSessionTimeout(30*time.Second))
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	return &p02Client{c, mu}
}

// loseSession ends the session that holds the lock, and returns the client that continues. This is
// the same client where servers can be made to end a session. Otherwise it is a new one, because
// the client was closed.
func (c *p02Client) loseSession(t testing.TB, hold *recipes.Hold) *p02Client {
	t.Helper()
	srv := testzk.InProcess()
	if srv == nil {
		require.NoError(t, c.Close())
		require.ErrorIs(t, hold.Release(), framework.ErrClosed)
		path, _, _ := strings.Cut(hold.Path(), "/_c_")
		return p02Connect(t, path)
	}
	former, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	onServer, found := srv.Session(former.ID())
	require.True(t, found)
	require.NoError(t, onServer.Expire())
	<-hold.Done()
	require.ErrorIs(t, hold.Release(), framework.ErrSessionLost)
	return c
}

// The lock node is deleted without a release, and the holder writes through Guard at once. Guard
// returns an error and nothing is written.
func TestP02_GuardWritesNothingOnceTheNodeIsDeleted(t *testing.T) {
	t.Parallel()
	for range 20 { // the holder may or may not have noticed before Guard
		path := testzk.Path(t)
		c, other := p02Connect(t, path), p02Connect(t, path)
		data := path + "-data"
		_, err := c.Create(testzk.Context(t), data, []byte("before"), framework.Parents())
		require.NoError(t, err)
		hold, err := c.mu.Acquire(testzk.Context(t))
		require.NoError(t, err)
		_, err = hold.Guard(testzk.Context(t), framework.SetOp(data, []byte("held"), -1))
		require.NoError(t, err)

		require.NoError(t, other.Delete(testzk.Context(t), hold.Path(), -1))
		_, err = hold.Guard(testzk.Context(t), framework.SetOp(data, []byte("late"), -1),
			framework.CreateOp(data+"-2", nil))
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted, "Guard has reported it")
		require.NoError(t, other.Sync(testzk.Context(t), data))
		got, stat, err := other.Get(testzk.Context(t), data)
		require.NoError(t, err)
		require.Equal(t, "held", string(got))
		require.EqualValues(t, 1, stat.Version)
		_, err = other.Exists(testzk.Context(t), data+"-2")
		require.ErrorIs(t, err, zk.ErrNoNode)
	}
}

// A holder is disconnected until its session ends, and a second client acquires the lock and
// writes. When the first client continues, the resource refuses its token, and Guard writes
// nothing.
func TestP02_HolderThatWasPausedIsRefused(t *testing.T) {
	t.Parallel()
	p, path := testzk.Proxy(t), testzk.Path(t)
	paused := testzk.Connected(t, p.Addr(), testzk.Mortal())
	mu, err := mutex.New(paused, path)
	require.NoError(t, err)
	first, err := mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	var resource p02Resource
	require.NoError(t, resource.write(first, "by the first"))

	p.Blackhole(true)
	next := p02Connect(t, path)
	second, err := next.mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, resource.write(second, "by the second"))
	p.Blackhole(false)

	require.ErrorIs(t, resource.write(first, "late"), fence.ErrStale)
	require.Equal(t, "by the second", resource.content)
	_, err = first.Guard(testzk.Context(t), framework.CreateOp(path+"-late", nil))
	require.ErrorIs(t, err, framework.ErrSessionLost)
	_, err = next.Exists(testzk.Context(t), path+"-late")
	require.ErrorIs(t, err, zk.ErrNoNode)
	require.NoError(t, second.Release())
}

// The servers end the session of a holder, and a second client acquires the lock and writes, all
// before the first client can notice. The first client still considers itself the holder and
// continues. The resource refuses its token, and Guard writes nothing.
func TestP02_HolderThatHasNotNoticedIsRefused(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		first, err := bubbleMutex(t, bubbleClient(t, srv, "first"), "/lock").Acquire(t.Context())
		require.NoError(t, err)
		var resource p02Resource
		require.NoError(t, resource.write(first, "by the first"))

		session := srv.Client("first").Sessions()[0]
		srv.Client("first").Cut()
		require.NoError(t, session.Expire())
		second, err := bubbleMutex(t, bubbleClient(t, srv, "second"), "/lock").Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, resource.write(second, "by the second"))

		require.NoError(t, first.Err(), "the holder has noticed, so nothing was tested")
		require.ErrorIs(t, resource.write(first, "late"), fence.ErrStale)
		require.Equal(t, "by the second", resource.content)
		guarded := make(chan error, 1)
		go func() {
			_, err := first.Guard(t.Context(), framework.CreateOp("/late", nil))
			guarded <- err
		}()
		time.Sleep(time.Millisecond)
		require.Empty(t, guarded)
		srv.Client("first").Heal()
		require.NotEqual(t, framework.Applied, framework.OutcomeOf(<-guarded))
		<-first.Done()
		require.False(t, srv.Exists("/late"))
		require.ErrorIs(t, first.Release(), framework.ErrSessionLost)
		require.NoError(t, second.Release())
	})
}

// p02Resource is the resource that the lock protects.
type p02Resource struct {
	fencing fence.Register
	content string
}

func (r *p02Resource) write(hold *recipes.Hold, content string) error {
	return r.fencing.Do(hold.Token(), func() error {
		r.content = content
		return nil
	})
}
