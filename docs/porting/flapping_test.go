package porting

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
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

// reaped makes a server delete empty containers within seconds.
var reaped = zktest.WithConfig("znode.container.checkIntervalMs", "5000")

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

func TestSimulatedBarrier(t *testing.T) {
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		setter, _ := flapping(t, srv, "setter", random)
		require.NoError(t, setBarrier(t.Context(), setter, "/barriers/start"))
		var networks []*network
		var waiting []*loop
		var open seen[bool]
		for i := range 3 {
			client, net := flapping(t, srv, fmt.Sprintf("waiter-%d", i), random)
			networks = append(networks, net)
			waiting = append(waiting, start(t, func(ctx context.Context) error {
				defer func() { assert.True(t, open.get(), "a waiter has passed a barrier that is set") }()
				return waitOnBarrier(ctx, client, "/barriers/start")
			}))
		}
		failAll(networks, random)
		open.set(true)
		require.NoError(t, removeBarrier(t.Context(), setter, "/barriers/start"))
		time.Sleep(calm)
		for _, w := range waiting {
			require.NoError(t, w.ended(), "a waiter has failed")
		}
	})
}

// Sessions are lost while members arrive, while they work and while they leave. No member leaves
// before all have entered.
func TestSimulatedDoubleBarrier(t *testing.T) {
	const members = 3
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		var networks []*network
		var clients []*framework.Client
		var entering, leaving []*loop
		var arrived atomic.Int32
		for i := range members {
			client, net := flapping(t, srv, fmt.Sprint("member-", i), random)
			networks, clients = append(networks, net), append(clients, client)
			delay := upTo(random, 20*time.Second)
			entering = append(entering, start(t, func(ctx context.Context) error {
				time.Sleep(delay)
				arrived.Add(1)
				defer func() {
					assert.EqualValues(t, members, arrived.Load(), "a member has entered before all had come")
				}()
				return enter(ctx, client, "/barrier", fmt.Sprint("member-", i), members)
			}))
		}
		failAll(networks, random)
		time.Sleep(calm)
		for _, e := range entering {
			require.NoError(t, e.ended())
		}
		for i, client := range clients {
			delay := upTo(random, 20*time.Second)
			leaving = append(leaving, start(t, func(ctx context.Context) error {
				time.Sleep(delay)
				return leave(ctx, client, "/barrier", fmt.Sprint("member-", i))
			}))
		}
		failAll(networks, random)
		time.Sleep(calm)
		for _, l := range leaving {
			require.NoError(t, l.ended())
		}
		require.Empty(t, srv.Tree())
	}, reaped)
}

// Members that work quickly leave before slow ones have seen that the barrier is open. Connections
// are lost, sessions are not.
func TestSimulatedQuickDoubleBarrier(t *testing.T) {
	const members = 5
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		var arrived, left atomic.Int32
		var all []*loop
		for i := range members {
			name := fmt.Sprint("member-", i)
			client, net := flapping(t, srv, name, random)
			delay, work := upTo(random, 50*time.Millisecond), upTo(random, 5*time.Millisecond)
			time.AfterFunc(upTo(random, 100*time.Millisecond), net.client.Drop)
			all = append(all, start(t, func(ctx context.Context) error {
				time.Sleep(delay)
				arrived.Add(1)
				err := enter(ctx, client, "/barrier", name, members)
				assert.EqualValues(t, members, arrived.Load(), "a member has entered before all had come")
				time.Sleep(work)
				left.Add(1)
				err = errors.Join(err, leave(ctx, client, "/barrier", name))
				assert.EqualValues(t, members, left.Load(), "a member has left before all had worked")
				return err
			}))
		}
		time.AfterFunc(upTo(random, 50*time.Millisecond), func() {
			if arrived.Load() < members { // otherwise the member may be inside
				_ = srv.Delete("/barrier/member-0") // if the node exists, the member creates it again
			}
		})
		time.Sleep(calm)
		for _, member := range all {
			require.NoError(t, member.ended())
		}
		require.Empty(t, srv.Tree())
	}, reaped)
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

// failAll makes all networks fail, each at random times.
func failAll(networks []*network, random *rand.Rand) {
	var all sync.WaitGroup
	for _, n := range networks {
		all.Go(func() {
			for range outages {
				time.Sleep(upTo(n.random, 2*time.Second))
				n.fail()
			}
		})
	}
	all.Wait()
	time.Sleep(upTo(random, time.Second))
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

// ended returns the result of a loop. It fails the test if the loop has not returned.
func (l *loop) ended() error {
	l.t.Helper()
	select {
	case err := <-l.result:
		return err
	default:
		require.Fail(l.t, "the loop still waits")
		return nil
	}
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
