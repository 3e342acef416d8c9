package porting

import (
	"context"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// These tests run the fragments that follow or keep nodes, on networks that fail again and again. Each fragment must
// go on, and see the last state.

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
		net.failAgainAndAgain(func(n int) { require.NoError(t, srv.Set("/config", []byte(strconv.Itoa(n)))) })
		require.Equal(t, outages, last.get())
		following.stop()
	})
}

func TestSimulatedMembership(t *testing.T) {
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client, net := flapping(t, srv, "a", random)
		members := newNames()
		following := start(t, func(ctx context.Context) error {
			return beMember(ctx, client, func(c group.Change) { members.set(c.Member.ID, c.Kind != group.Removed) })
		})
		time.Sleep(calm)
		net.failAgainAndAgain(func(n int) { changeChildren(t, srv, "/group", n) })
		require.Equal(t, children(srv, "/group"), members.list())
		require.Contains(t, members.list(), "host-3")
		following.stop()
	})
}

func TestSimulatedCaches(t *testing.T) {
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		require.NoError(t, srv.Create("/config", nil))
		require.NoError(t, srv.Create("/config/timeout", []byte("0")))
		client, net := flapping(t, srv, "a", random)
		config, err := followConfig(t.Context(), client, func(string) {})
		require.NoError(t, err)
		defer config.Close()
		names := newNames()
		workers, err := followWorkers(t.Context(), client,
			func(path string) { names.set(strings.TrimPrefix(path, "/workers/"), true) },
			func(path string) { names.set(strings.TrimPrefix(path, "/workers/"), false) })
		require.NoError(t, err)
		defer workers.Close()
		net.failAgainAndAgain(func(n int) {
			require.NoError(t, srv.Set("/config/timeout", []byte(strconv.Itoa(n))))
			changeChildren(t, srv, "/workers", n)
		})
		require.Equal(t, strconv.Itoa(outages), timeout(config))
		want := children(srv, "/workers")
		require.Equal(t, want, names.list())
		require.Len(t, currentData(workers), len(want))
	})
}

func TestSimulatedTreeWatch(t *testing.T) {
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		require.NoError(t, srv.Create("/jobs", nil))
		client, net := flapping(t, srv, "a", random)
		changed := make(chan string, 1)
		watch, err := watchTree(t.Context(), client, "/jobs", func(path string) {
			select {
			case changed <- path:
			default: // the reader will read
			}
		})
		require.NoError(t, err)
		defer watch.Stop()
		last := newSeen([]string{})
		reading := start(t, func(ctx context.Context) error {
			for {
				select {
				case <-changed:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				names, _, err := client.Children(ctx, "/jobs")
				for client.Outlast(ctx, err) {
					names, _, err = client.Children(ctx, "/jobs")
				}
				slices.Sort(names)
				last.set(names)
			}
		})
		net.failAgainAndAgain(func(n int) { changeChildren(t, srv, "/jobs", n) })
		require.Equal(t, children(srv, "/jobs"), last.get())
		reading.stop()
	})
}

func TestSimulatedCopyOfACount(t *testing.T) {
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client, net := flapping(t, srv, "a", random)
		count, err := counter.NewCount(client, "/limit", 0)
		require.NoError(t, err)
		get, err := copyOf(t.Context(), count)
		require.NoError(t, err)
		net.failAgainAndAgain(func(n int) {
			require.NoError(t, srv.Set("/limit", binary.BigEndian.AppendUint32(nil, uint32(n))))
		})
		n, err := get()
		require.NoError(t, err)
		require.EqualValues(t, outages, n)
	})
}

// The nodes of a process are there after each outage.
func TestSimulatedRegistrations(t *testing.T) {
	sim.Run(t, flapSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client, net := flapping(t, srv, "a", random)
		node, err := register(t.Context(), client, "10.0.0.3:8080")
		require.NoError(t, err)
		defer func() { require.NoError(t, node.Close()) }()
		registry, err := discovery.New(client, "/registry")
		require.NoError(t, err)
		instance, err := offer(t.Context(), registry)
		require.NoError(t, err)
		defer func() { require.NoError(t, instance.Close()) }()
		net.failAgainAndAgain(func(int) {})
		data, err := srv.Get("/services/host-3")
		require.NoError(t, err)
		require.Equal(t, "10.0.0.3:8080", string(data))
		require.Len(t, children(srv, "/registry/orders"), 1)
	})
}

// changeChildren creates the child n, and deletes every third one later.
func changeChildren(t *testing.T, srv *zktest.Server, parent string, n int) {
	require.NoError(t, srv.Create(parent+"/n"+strconv.Itoa(n), nil))
	if n%3 == 0 {
		require.NoError(t, srv.Delete(parent+"/n"+strconv.Itoa(n-1)))
	}
}

// names is a set of names. It is safe for concurrent use.
type names struct {
	mu   sync.Mutex
	have map[string]bool
}

func newNames() *names { return &names{have: map[string]bool{}} }

func (s *names) set(name string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there {
		s.have[name] = true
	} else {
		delete(s.have, name)
	}
}

func (s *names) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.have))
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

// failAgainAndAgain makes the network fail, each time after a change. Then it is calm. The changes have the numbers
// 1 to outages.
func (n *network) failAgainAndAgain(change func(number int)) {
	for i := range outages {
		time.Sleep(upTo(n.random, 2*time.Second))
		change(i + 1)
		n.fail()
	}
	time.Sleep(calm)
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
