package porting

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// These tests run the fragments that follow nodes, on networks that fail again and
// again. Each fragment must go on, and see the last state.

const (
	flapSeeds   = 20
	flapTimeout = 4 * time.Second // the session timeout
	outages     = 10
	calm        = time.Minute // enough for sessions to expire, and for new sessions to begin
)

func TestSimulatedFollowNode(t *testing.T) {
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		require.NoError(t, srv.Create("/config", []byte("0")))
		client, net := flapping(t, srv, "a", random)
		last := newSeen(-1)
		following := start(t, func(ctx context.Context) error {
			return followNode(ctx, client, "/config", func(data []byte) {
				n, err := strconv.Atoi(string(data))
				assert.NoError(t, err)
				assert.LessOrEqual(t, last.get(), n, "an older value after a newer one")
				last.set(n)
			})
		})
		for i := range outages {
			time.Sleep(upTo(random, 2*time.Second))
			require.NoError(t, srv.Set("/config", []byte(strconv.Itoa(i+1))))
			net.fail()
		}
		time.Sleep(calm)
		require.Equal(t, outages, last.get())
		following.stop()
	})
}

// flapping returns a client that has the retry policy of the page, and its network.
func flapping(t *testing.T, srv *zktest.Server, name string, random *rand.Rand) (*framework.Client, *network) {
	random = rand.New(rand.NewPCG(random.Uint64(), 0))
	client, err := framework.New(srv.MemAddr(),
		framework.WithDialer(srv.Client(name).DialContext),
		framework.WithSessionTimeout(flapTimeout),
		framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N),
		framework.WithRetry(retry.Exponential(time.Second, 3)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client, &network{srv, srv.Client(name), random}
}

// network is the connection of one client to the server.
type network struct {
	srv    *zktest.Server
	client *zktest.Client
	random *rand.Rand
}

// fail makes the network fail in one of several ways, and returns when the failure has ended. Most
// kinds of failures can be so long that the session is lost.
func (n *network) fail() {
	length := upTo(n.random, 3*flapTimeout)
	match := fault.Match{Client: n.client.Name()}
	switch n.random.IntN(8) {
	case 0:
		n.client.Drop()
	case 1:
		n.srv.On(match, fault.DropBefore())
	case 2:
		n.srv.On(match, fault.DropAfter())
	case 3:
		for _, s := range n.client.Sessions() {
			_ = s.Expire()
		}
	case 4:
		n.client.HoldEvents()
		time.Sleep(length)
		n.client.ReleaseEvents()
	case 5:
		n.client.Refuse(true)
		n.client.Drop()
		time.Sleep(length)
		n.client.Refuse(false)
	default:
		n.client.Cut()
		time.Sleep(length)
		n.client.Heal()
	}
}

func upTo(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// loop runs a fragment on a goroutine until the fragment is stopped or returns.
type loop struct {
	t      *testing.T
	cancel context.CancelFunc
	result chan error
}

func start(t *testing.T, fragment func(context.Context) error) *loop {
	ctx, cancel := context.WithCancel(t.Context())
	l := &loop{t, cancel, make(chan error, 1)}
	go func() { l.result <- fragment(ctx) }()
	return l
}

// stop stops a loop. It fails the test if the loop has returned before.
func (l *loop) stop() {
	l.t.Helper()
	select {
	case err := <-l.result:
		require.NoError(l.t, err, "the loop has failed")
		require.Fail(l.t, "the loop has returned")
	default:
	}
	l.cancel()
	require.ErrorIs(l.t, <-l.result, context.Canceled)
}

// seen is the value that was seen last. It is safe for concurrent use.
type seen[T any] struct {
	mu   sync.Mutex
	last T
}

func newSeen[T any](first T) *seen[T] { return &seen[T]{last: first} }

func (s *seen[T]) set(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = v
}

func (s *seen[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
