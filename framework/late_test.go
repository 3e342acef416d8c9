package framework_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// detour is a client that leaves a follower where a request waits, connects to the ZooKeeper
// leader, and comes back.
type detour struct {
	*framework.Client
	t        *testing.T
	srv      *zktest.Server
	follower *zktest.Follower
}

func runDetour(t *testing.T, scenario func(d *detour), opts ...framework.Option) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d := &detour{t: t, srv: srv, follower: srv.Follower(0)}
		inOrder := func(int64) int64 { return 0 }
		var err error
		servers := d.follower.MemAddr() + "," + srv.MemAddr()
		d.Client, err = framework.New(servers, append(opts, framework.WithDialer(srv.Client("a").DialContext),
			framework.WithRandom(inOrder), framework.WithSessionTimeout(20*time.Second),
			framework.WithRetry(retry.Forever(50*time.Millisecond)))...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		require.NoError(t, d.CreateContainers(t.Context(), "/lock"))
		scenario(d)
	})
}

// toLeader connects to the ZooKeeper leader, where the waiting request cannot be seen.
func (d *detour) toLeader() {
	require.Positive(d.t, d.follower.Waiting())
	d.srv.Client("a").Drop()
	time.Sleep(time.Second)
	require.NoError(d.t, d.WaitConnected(d.t.Context()))
}

// toFollower connects to the follower again and lets it forward the request.
func (d *detour) toFollower() {
	d.srv.Client("a").Drop()
	time.Sleep(time.Second)
	before := len(d.srv.Trace().Entries)
	d.follower.ReleaseRequests()
	time.Sleep(time.Second)
	late := 0
	for _, e := range d.srv.Trace().Entries[before:] {
		if e.What == "create" {
			late++
		}
	}
	require.Equal(d.t, 1, late, "the request was not forwarded late")
}

func (d *detour) create(ctx context.Context, opts ...framework.CreateOption) (string, error) {
	return d.Create(ctx, "/lock/n-", nil, append(opts, framework.Protected(), framework.Sequential())...)
}

func (d *detour) nodes() []string {
	nodes, err := d.srv.Children("/lock")
	require.NoError(d.t, err)
	return nodes
}

var lateKinds = map[string][]framework.CreateOption{"ephemeral": {framework.Ephemeral()}, "persistent": nil}

func TestNodeCreatedAfterTheContextHasEndedIsDeleted(t *testing.T) {
	for _, opts := range lateKinds {
		runDetour(t, func(d *detour) {
			d.follower.HoldRequests()
			ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := d.create(ctx, opts...)
			failed(d.t, err, framework.Unknown, context.DeadlineExceeded)
			d.toLeader()
			require.Empty(d.t, d.nodes())
			d.toFollower()
			require.Empty(d.t, d.nodes())
		})
	}
}

func TestNamedNodeCreatedAfterTheContextHasEndedIsDeleted(t *testing.T) {
	for _, opts := range lateKinds {
		runDetour(t, func(d *detour) {
			d.follower.HoldRequests()
			ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := d.Create(ctx, "/lock/named", nil, append(opts, bridge.Named())...)
			failed(d.t, err, framework.Unknown, context.DeadlineExceeded)
			d.toLeader()
			require.Empty(d.t, d.nodes())
			d.toFollower()
			require.Empty(d.t, d.nodes())
		})
	}
}

func TestNodeCreatedAfterARepeatedCreateIsDeleted(t *testing.T) {
	for _, opts := range lateKinds {
		runDetour(t, func(d *detour) {
			d.follower.HoldRequests()
			created := make(chan string, 1)
			go func() {
				node, err := d.create(d.t.Context(), opts...)
				if err == nil {
					created <- path.Base(node)
				}
			}()
			time.Sleep(100 * time.Millisecond)
			d.toLeader()
			node := <-created
			require.Equal(d.t, []string{node}, d.nodes())
			d.toFollower()
			require.Equal(d.t, []string{node}, d.nodes())
		})
	}
}

// A node that is not sequential has one path, and so has one behind the end of its parent's counter. The late
// create makes it again when its owner has deleted it; until then it fails.
func TestNodeCreatedAfterItsOwnerHasDeletedItIsDeleted(t *testing.T) {
	named := func(d *detour, opts []framework.CreateOption) (string, error) {
		return d.Create(d.t.Context(), "/lock/n", nil, append(opts, framework.Protected())...)
	}
	behindTheEnd := func(d *detour, opts []framework.CreateOption) (string, error) {
		require.NoError(d.t, d.srv.SetSequence("/lock", math.MaxInt32))
		return d.create(d.t.Context(), opts...)
	}
	for _, create := range []func(*detour, []framework.CreateOption) (string, error){named, behindTheEnd} {
		createdAfterItsOwnerHasDeletedIt(t, create)
	}
}

func TestPathsComeAgainBehindTheEndOfACounter(t *testing.T) {
	for number, again := range map[int32]bool{
		0: false, 1: false, math.MaxInt32 - 1: false, math.MaxInt32: true,
		math.MinInt32: true, math.MinInt32 + 2: true, -1_500_000_000: true, -1: true,
	} {
		const node = "/lock/n-"
		full := fmt.Sprintf("%s%010d", node, number)
		require.Equal(t, again, framework.ComesAgain(node, full), full)
	}
}

func createdAfterItsOwnerHasDeletedIt(t *testing.T, create func(*detour, []framework.CreateOption) (string, error)) {
	for _, opts := range lateKinds {
		for _, deleted := range []bool{true, false} {
			runDetour(t, func(d *detour) {
				d.follower.HoldRequests()
				created := make(chan string, 1)
				go func() {
					node, err := create(d, opts)
					if err == nil {
						created <- node
					}
				}()
				time.Sleep(100 * time.Millisecond)
				d.toLeader()
				node := <-created
				if deleted {
					require.NoError(d.t, d.Delete(d.t.Context(), node, -1))
				}
				d.toFollower()
				if deleted {
					require.Empty(d.t, d.nodes())
				} else {
					require.Equal(d.t, []string{path.Base(node)}, d.nodes())
				}
			})
		}
	}
}

// The logger ends the goroutine that looks for late nodes. The next connection looks again.
func TestLoggerDoesNotEndTheSearchForLateNodes(t *testing.T) {
	for _, message := range []string{"looked for late creates", "deleted a node that nothing owned"} {
		var ended atomic.Bool
		core, _ := observer.New(zap.DebugLevel)
		log := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
			if e.Message == message && ended.CompareAndSwap(false, true) {
				runtime.Goexit()
			}
			return nil
		}))
		runDetour(t, func(d *detour) {
			for range 2 {
				d.follower.HoldRequests()
				ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
				_, err := d.create(ctx, framework.Ephemeral())
				cancel()
				failed(d.t, err, framework.Unknown, context.DeadlineExceeded)
				d.toLeader()
				d.toFollower()
				require.Empty(d.t, d.nodes(), message)
			}
			require.True(d.t, ended.Load(), message)
		}, framework.WithLogger(log))
	}
}
