package framework_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"path"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
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
	runDetourOn(t, zktest.V39, scenario, opts...)
}

func runDetourOn(t *testing.T, version zktest.Compat, scenario func(d *detour), opts ...framework.Option) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d := &detour{t: t, srv: srv, follower: srv.Follower(0)}
		d.connect(opts...)
		scenario(d)
	}, zktest.WithCompat(version))
}

// connect connects the client to the follower.
func (d *detour) connect(opts ...framework.Option) {
	inOrder := func(int64) int64 { return 0 }
	var err error
	servers := d.follower.MemAddr() + "," + d.srv.MemAddr()
	d.Client, err = framework.New(servers, append([]framework.Option{
		framework.WithDialer(d.srv.Client("a").DialContext),
		framework.WithRandom(inOrder), framework.WithSessionTimeout(20 * time.Second),
		framework.WithRetry(retry.Forever(50 * time.Millisecond)),
	}, opts...)...)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, d.Close()) })
	require.NoError(d.t, d.CreateContainers(d.t.Context(), "/lock"))
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
		if e.What == "create" || e.What == "multi" && strings.HasSuffix(e.Path, "-n-") {
			late++
		}
	}
	require.Equal(d.t, 1, late, "the request was not forwarded late")
}

func (d *detour) create(ctx context.Context, opts ...framework.CreateOption) (string, error) {
	return d.Create(ctx, "/lock/n-", nil, append(opts, framework.Protected(), framework.Sequential())...)
}

// created returns the node of a create that does not wait at the follower, where another one of it waits.
func (d *detour) created(create func() (string, error)) string {
	d.follower.HoldRequests()
	created := make(chan string, 1)
	go func() {
		if node, err := create(); err == nil {
			created <- node
		}
	}()
	time.Sleep(100 * time.Millisecond)
	d.toLeader()
	return <-created
}

// abandon makes n creates that get no answer, at the same time, and gives them up.
func (d *detour) abandon(n int, opts ...framework.CreateOption) { d.abandonLarge(n, 0, opts...) }

// abandonLarge is abandon for nodes with data.
func (d *detour) abandonLarge(n, size int, opts ...framework.CreateOption) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
	defer cancel()
	opts = append(opts, framework.Protected(), framework.Sequential())
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := d.Create(ctx, "/lock/n-", make([]byte, size), opts...)
			errs <- err
		}()
	}
	for range n {
		failed(d.t, <-errs, framework.Unknown, context.DeadlineExceeded)
	}
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
			d.abandon(1, opts...)
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
			node := path.Base(d.created(func() (string, error) { return d.create(d.t.Context(), opts...) }))
			require.Equal(d.t, []string{node}, d.nodes())
			d.toFollower()
			require.Equal(d.t, []string{node}, d.nodes())
		})
	}
}

// A node that is not sequential has one path. So has one behind the end of its parent's counter, and the first
// one in a parent. The late create makes it again when its owner has deleted it; until then it fails.
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

func createdAfterItsOwnerHasDeletedIt(t *testing.T, create func(*detour, []framework.CreateOption) (string, error)) {
	for _, opts := range lateKinds {
		for _, deleted := range []bool{true, false} {
			runDetour(t, func(d *detour) {
				node := d.created(func() (string, error) { return create(d, opts) })
				if deleted {
					require.NoError(d.t, d.Delete(d.t.Context(), node, -1))
				}
				d.requireOnly(node, deleted)
			})
		}
	}
}

// requireOnly lets the waiting request be carried out. Then there is the node of the caller only, or none if
// the caller has deleted it.
func (d *detour) requireOnly(node string, deleted bool) {
	d.t.Helper()
	d.toFollower()
	if deleted {
		require.Empty(d.t, d.nodes())
	} else {
		require.Equal(d.t, []string{path.Base(node)}, d.nodes())
	}
}

// deleteWithParent deletes the caller's node, and then the parent, which is created again.
func (d *detour) deleteWithParent(node string) {
	d.t.Helper()
	require.NoError(d.t, d.Delete(d.t.Context(), node, -1))
	require.NoError(d.t, d.srv.Delete("/lock"))
	require.NoError(d.t, d.srv.Create("/lock", nil))
}

// The counter of a parent that was deleted and created again begins again.
func TestNodeCreatedInAParentThatWasMadeAgainIsDeleted(t *testing.T) {
	for _, opts := range lateKinds {
		runDetour(t, func(d *detour) {
			node := d.created(func() (string, error) { return d.create(d.t.Context(), opts...) })
			d.deleteWithParent(node)
			d.requireOnly(node, true)
		})
	}
}

// Answers to transactions differ between versions.
func TestNodeOfATransactionInAParentThatWasMadeAgainIsDeleted(t *testing.T) {
	for _, version := range compats {
		for _, deleted := range []bool{true, false} {
			runDetourOn(t, version, func(d *detour) {
				node := d.created(func() (string, error) {
					op := framework.CreateOp("/lock/n-", nil, framework.Protected(), framework.Sequential())
					results, err := d.Multi(d.t.Context(), op)
					if err != nil {
						return "", err
					}
					return results[0].Path, nil
				})
				time.Sleep(time.Second) // the client has looked
				if deleted {
					d.deleteWithParent(node)
				}
				d.requireOnly(node, deleted)
			})
		}
	}
}

// Another program may use the GUID of a node as it likes.
func TestNodeThatIsNamedAsTheGUIDIsKept(t *testing.T) {
	runDetour(t, func(d *detour) {
		node := path.Base(d.created(func() (string, error) { return d.create(d.t.Context(), framework.Ephemeral()) }))
		guid, ok := znode.GUIDOf(node)
		require.True(d.t, ok)
		_, err := d.Create(d.t.Context(), "/lock/"+guid, nil, framework.Ephemeral())
		require.NoError(d.t, err)
		d.toFollower()
		require.ElementsMatch(d.t, []string{node, guid}, d.nodes())
	})
}

// Some late nodes have got children, so they cannot be deleted.
func TestLateNodesThatStayKeepNoOthers(t *testing.T) {
	const n, stay = 150, 10 // more than are deleted in one transaction
	runDetour(t, func(d *detour) {
		d.follower.HoldRequests()
		d.abandon(n)
		d.toLeader()
		d.srv.Client("a").Drop()
		time.Sleep(time.Second)
		d.follower.ReleaseRequests()
		nodes := d.nodes()
		require.Len(d.t, nodes, n)
		for _, node := range nodes[:stay] {
			require.NoError(d.t, d.srv.Create("/lock/"+node+"/child", nil))
		}
		time.Sleep(time.Second)
		require.ElementsMatch(d.t, nodes[:stay], d.nodes())
	})
}

// The next session looks once for all, and not for those that can no longer be created.
func TestLateNodesAreLookedForTogetherAfterTheSession(t *testing.T) {
	const n = 100
	for quiet, looks := range map[time.Duration]int{time.Second: 1, 10 * time.Minute: 0} {
		runDetour(t, func(d *detour) {
			first := session(d.t, d.Client).ID()
			rule := d.srv.On(fault.Match{Op: fault.OpCreate, Client: "a", Times: n}, fault.DropBefore())
			d.abandon(n)
			rule.Remove()
			time.Sleep(quiet)
			for _, s := range d.srv.Client("a").Sessions() {
				require.NoError(d.t, s.Expire())
			}
			d.srv.ResetCounts()
			time.Sleep(time.Minute)
			require.NotEqual(d.t, first, session(d.t, d.Client).ID())
			require.Equal(d.t, looks, d.srv.Client("a").Requests()[fault.OpGetChildren2], quiet)
		})
	}
}

// The client remembers the names of nodes that may be created late, and not their data.
func TestLateNodesNeedLittleMemory(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	runDetour(t, func(d *detour) {
		const n, size = 20, 1_000_000
		d.srv.On(fault.Match{Op: fault.OpCreate, Client: "a", Times: n * n}, fault.DropBefore())
		before := heap()
		d.abandonLarge(n, size)
		d.srv.ResetFaults()
		time.Sleep(time.Minute)
		require.Less(d.t, heap()-before, int64(n*size/2))
	})
}

// routes can be cut: those of new connections to the ZooKeeper leader, and those to the follower. While
// answers is set, those of the follower are lost.
type routes struct{ leader, follower, answers atomic.Bool }

// connectBy connects the client to the follower, by routes that can be cut.
func (d *detour) connectBy(cut *routes, opts ...framework.Option) {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == d.srv.MemAddr() && cut.leader.Load() || addr == d.follower.MemAddr() && cut.follower.Load() {
			return nil, errors.New("no route")
		}
		c, err := d.srv.Client("a").DialContext(ctx, network, addr)
		if err == nil && addr == d.follower.MemAddr() {
			c = &losesAnswers{c, &cut.answers}
		}
		return c, err
	}
	d.connect(append(opts, framework.WithDialer(dial))...)
}

// losesAnswers is a connection that ends with an answer, while they are lost.
type losesAnswers struct {
	net.Conn
	lost *atomic.Bool
}

func (c *losesAnswers) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.lost.Load() {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

// giveUp ends the session of the client. All requests to close it are lost, and from then on the client reaches
// only the follower.
func (d *detour) giveUp(cut *routes) *fault.Rule {
	first := session(d.t, d.Client).ID()
	cut.leader.Store(true)
	cut.follower.Store(true)
	d.srv.Client("a").Drop()
	time.Sleep(14 * time.Second)
	cut.leader.Store(false)
	cut.follower.Store(false)
	rule := d.srv.On(fault.Match{Op: fault.OpCloseSession, Client: "a", Times: 1000}, fault.DropBefore())
	awaitSessionAfter(d.t, d.Client, first)
	cut.leader.Store(true)
	return rule
}

// awaitSessionAfter waits until a client has the session after a former one.
func awaitSessionAfter(t *testing.T, c *framework.Client, former int64) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		s, err := c.Session(t.Context())
		return err == nil && s.ID() != former
	}, "there is no next session")
}

// createLate has the follower pass a create on when the client has given up its session. logs are those of the
// client.
func (d *detour) createLate(cut *routes, logs *observer.ObservedLogs) {
	d.follower.HoldRequests()
	d.abandon(1)
	require.Positive(d.t, d.follower.Waiting())
	rule := d.giveUp(cut)
	closed := func() bool { return logs.FilterMessage("session closed").Len() > 0 }
	testzk.Eventually(d.t, closed, "the first session is not given up")
	time.Sleep(time.Second)
	rule.Remove()
	d.follower.ReleaseRequests()
}

// empty requires that no node is left. The container of the nodes may be gone, too.
func (d *detour) empty() {
	left, err := d.srv.Children("/lock")
	if !errors.Is(err, zktest.NoNode) {
		require.NoError(d.t, err)
	}
	require.Empty(d.t, left)
}

// The servers hear of a session for as long as the client tries to close it. So its end is later than a timeout
// after the next session was made.
func TestNodeOfASessionThatCannotBeClosedIsDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d, cut := &detour{t: t, srv: srv, follower: srv.Follower(0)}, &routes{}
		logged, logs := observer.New(zap.InfoLevel)
		d.connectBy(cut, framework.WithLogger(zap.New(logged)))
		d.createLate(cut, logs)
		time.Sleep(time.Minute)
		require.Empty(t, d.nodes())
	})
}

// A request is passed on while the client tries to close the session, less than five minutes after its answer was
// lost. When the session is over, the five minutes have passed.
func TestNodeThatIsCreatedWhileItsSessionIsBeingClosedIsDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d, cut := &detour{t: t, srv: srv, follower: srv.Follower(0)}, &routes{}
		d.connectBy(cut)
		d.follower.HoldRequests()
		began := time.Now()
		d.abandon(1)
		d.toLeader() // and it has looked there
		require.Empty(t, d.nodes())
		time.Sleep(4*time.Minute + 15*time.Second)
		rule := d.giveUp(cut)
		time.Sleep(5 * time.Second)
		d.follower.ReleaseRequests()
		time.Sleep(time.Second)
		require.Less(t, time.Since(began), 5*time.Minute)
		require.Len(t, d.nodes(), 1, "the request was not passed on")
		time.Sleep(20 * time.Second)
		rule.Remove()
		cut.leader.Store(false)
		time.Sleep(10 * time.Minute)
		d.empty()
	})
}

// The servers keep a session whose credential they refuse until its timeout, and so does the follower its request.
func TestNodeOfASessionWhoseCredentialIsRefusedIsDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d, cut := &detour{t: t, srv: srv, follower: srv.Follower(0)}, &routes{}
		d.connectBy(cut, framework.WithAuth("digest", []byte("user:secret")))
		first := session(t, d.Client).ID()
		d.follower.HoldRequests()
		d.abandon(1)
		require.Positive(t, d.follower.Waiting())
		cut.leader.Store(true)
		rule := srv.On(fault.Match{Op: fault.OpAuth, Client: "a", Times: 1}, fault.Fail(zktest.AuthFailed))
		srv.Client("a").Drop()
		testzk.Eventually(t, func() bool { return rule.Hits() > 0 }, "the credential is not refused")
		cut.follower.Store(true)
		cut.leader.Store(false)
		awaitSessionAfter(d.t, d.Client, first)
		time.Sleep(2 * time.Second) // the next session could look
		require.Empty(t, d.nodes())
		d.follower.ReleaseRequests()
		time.Sleep(time.Second)
		require.Len(t, d.nodes(), 1, "the request was not passed on")
		time.Sleep(10 * time.Minute)
		d.empty()
	})
}

// The five minutes end during the look for a node, and then the answer of another create is lost.
func TestNodeThatIsLookedForWhenAnotherIsAddedIsDeleted(t *testing.T) {
	runDetour(t, func(d *detour) {
		d.follower.HoldRequests()
		began := time.Now()
		d.abandon(1)
		d.toLeader() // and it has looked there
		require.Empty(d.t, d.nodes())
		time.Sleep(time.Until(began.Add(4*time.Minute + 57*time.Second)))
		held := d.srv.On(fault.Match{Op: fault.OpGetChildren2, Client: "a", Times: 1}, fault.Hold())
		d.srv.Client("a").Drop() // to the follower
		time.Sleep(100 * time.Millisecond)
		d.follower.ReleaseRequests()
		time.Sleep(100 * time.Millisecond)
		require.Less(d.t, time.Since(began), 5*time.Minute)
		require.Len(d.t, d.nodes(), 1, "the request was not passed on")
		require.NoError(d.t, held.Wait(d.t.Context()))
		time.Sleep(time.Until(began.Add(5*time.Minute + 200*time.Millisecond)))
		ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := d.create(ctx)
		failed(d.t, err, framework.Unknown, context.DeadlineExceeded)
		d.srv.Client("a").Drop()
		held.Remove()
		time.Sleep(10 * time.Minute)
		d.empty()
	})
}

// In an outage the follower gets a connect request of the client, which gets no answer, and passes the request
// on. Then the five minutes end, the answer of another create is lost, and the client connects again.
func TestNodeThatIsCreatedInAnOutageIsDeleted(t *testing.T) {
	for kind, opts := range lateKinds {
		t.Run(kind, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				d, cut := &detour{t: t, srv: srv, follower: srv.Follower(0)}, &routes{}
				d.connectBy(cut)
				first := session(t, d.Client).ID()
				d.follower.HoldRequests()
				began := time.Now()
				d.abandon(1, opts...)
				d.toLeader() // and it has looked there
				time.Sleep(time.Until(began.Add(4*time.Minute + 56*time.Second)))
				cut.leader.Store(true)
				cut.answers.Store(true)
				rule := srv.On(fault.Match{Op: fault.OpCreate, Client: "a", Times: 1}, fault.DropBefore())
				ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
				defer cancel()
				other := make(chan error, 1)
				go func() {
					_, err := d.create(ctx, opts...)
					other <- err
				}()
				time.Sleep(time.Second)
				require.Equal(t, 1, rule.Hits())
				d.passesOn(began)
				failed(t, <-other, framework.Unknown, context.DeadlineExceeded)
				require.Greater(t, time.Since(began), 5*time.Minute)
				time.Sleep(time.Second)
				cut.leader.Store(false)
				cut.answers.Store(false)
				time.Sleep(10 * time.Minute)
				require.Equal(t, first, session(t, d.Client).ID())
				d.empty()
			})
		})
	}
}

// passesOn has the follower pass the request on, less than five minutes after its answer was lost.
func (d *detour) passesOn(began time.Time) {
	d.follower.ReleaseRequests()
	time.Sleep(500 * time.Millisecond)
	require.Less(d.t, time.Since(began), 5*time.Minute)
	require.Len(d.t, d.nodes(), 1, "the request was not passed on")
}

// The same in an outage that ends the session, after the five minutes.
func TestNodeThatIsCreatedInTheLastOutageOfItsSessionIsDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d, cut := &detour{t: t, srv: srv, follower: srv.Follower(0)}, &routes{}
		d.connectBy(cut)
		first := session(t, d.Client).ID()
		d.follower.HoldRequests()
		began := time.Now()
		d.abandon(1)
		d.toLeader() // and it has looked there
		time.Sleep(time.Until(began.Add(4*time.Minute + 50*time.Second)))
		cut.leader.Store(true)
		cut.answers.Store(true)
		srv.Client("a").Drop()
		time.Sleep(time.Second)
		d.passesOn(began)
		time.Sleep(30 * time.Second)
		cut.leader.Store(false)
		cut.answers.Store(false)
		awaitSessionAfter(d.t, d.Client, first)
		time.Sleep(10 * time.Minute)
		d.empty()
	})
}

var lockNode = []framework.CreateOption{framework.Protected(), framework.Sequential(), framework.Ephemeral()}

// A hundred paths do not fit into a request that the servers read.
func TestLateNodesWithLongPathsAreDeleted(t *testing.T) {
	runDetour(t, func(d *detour) {
		parent := "/lock/" + strings.Repeat("x", 11000)
		require.NoError(d.t, d.CreateContainers(d.t.Context(), parent))
		d.follower.HoldRequests()
		ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
		defer cancel()
		const n = 100
		errs := make(chan error, n)
		for range n {
			go func() {
				_, err := d.Create(ctx, parent+"/n-", nil, lockNode...)
				errs <- err
			}()
		}
		for range n {
			failed(d.t, <-errs, framework.Unknown, context.DeadlineExceeded)
		}
		d.toLeader()
		d.srv.Client("a").Drop()
		time.Sleep(50 * time.Millisecond)
		d.follower.ReleaseRequests()
		time.Sleep(20 * time.Second) // until containers are looked for
		left, err := d.srv.Children(parent)
		require.NoError(d.t, err)
		require.Empty(d.t, left)
	})
}

// The connection ends after a search that has found nothing, and the client comes back to the server where the
// first request waits. The second request fails because of the first.
func TestCreateBehindItsOwnLateRequest(t *testing.T) {
	for _, opts := range lateKinds {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			d := &detour{t: t, srv: srv, follower: srv.Follower(0)}
			var searches atomic.Bool
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := srv.Client("a").DialContext(ctx, network, addr)
				return &endsAfterAList{Conn: conn, next: &searches}, err
			}
			d.connect(framework.WithDialer(dial))
			d.follower.HoldRequests()
			type result struct {
				node string
				err  error
			}
			created := make(chan result, 1)
			go func() {
				node, err := d.Create(t.Context(), "/lock/n", nil, append(opts, framework.Protected())...)
				created <- result{node, err}
			}()
			time.Sleep(100 * time.Millisecond)
			searches.Store(true)
			srv.Client("a").Drop()
			time.Sleep(time.Second)
			require.False(t, searches.Load(), "it has not searched")
			d.follower.ReleaseRequests()
			r := <-created
			require.NoError(t, r.err)
			time.Sleep(time.Minute)
			require.Equal(t, []string{path.Base(r.node)}, d.nodes())
		})
	}
}

// endsAfterAList is a connection that ends with the answer to the next list of /lock, once.
type endsAfterAList struct {
	net.Conn
	next   *atomic.Bool
	listed atomic.Bool
	ended  atomic.Bool
}

func (c *endsAfterAList) Write(b []byte) (int, error) {
	list := []byte("\x00\x00\x00\x0c\x00\x00\x00\x05/lock") // getChildren2
	if bytes.Contains(b, list) && c.next.CompareAndSwap(true, false) {
		c.listed.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *endsAfterAList) Read(b []byte) (int, error) {
	if c.ended.Load() {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b)
	c.ended.Store(c.listed.Load())
	return n, err
}

// endingMetrics end the goroutine that counts a pending deletion, once they are armed, and then no more.
func endingMetrics(counts int64) (m *testzk.Calling, armed *atomic.Bool) {
	armed = new(atomic.Bool)
	return testzk.NewCalling(metrics.PendingDeletions, counts, func() {
		if armed.CompareAndSwap(true, false) {
			runtime.Goexit()
		}
	}), armed
}

func TestMetricsDoNotEndTheSearchForLateNodes(t *testing.T) {
	for _, counts := range []int64{1, -1} {
		m, armed := endingMetrics(counts)
		runDetour(t, func(d *detour) {
			d.follower.HoldRequests()
			d.abandon(1, framework.Ephemeral())
			d.toLeader()
			armed.Store(true)
			d.toFollower()
			require.Empty(d.t, d.nodes(), counts)
			require.False(d.t, armed.Load(), "nothing was counted")
		}, framework.WithMetrics(m))
	}
}

// The answer to a create comes when its caller has left.
func TestMetricsDoNotEndTheDeletionOfANodeWithoutACaller(t *testing.T) {
	for _, counts := range []int64{1, -1} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			m, armed := endingMetrics(counts)
			dialer := framework.WithDialer(srv.Client("c").DialContext)
			c := testzk.Connected(t, srv.MemAddr(), dialer, framework.WithMetrics(m))
			require.NoError(t, c.CreateContainers(t.Context(), "/lock"))
			armed.Store(true)
			srv.On(fault.Match{Op: fault.OpCreate, Client: "c", Times: 1}, fault.Delay(200*time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := c.Create(ctx, "/lock/n-", nil, lockNode...)
			failed(t, err, framework.Unknown, context.DeadlineExceeded)
			time.Sleep(10 * time.Second)
			require.False(t, armed.Load(), "nothing was counted")
			left, err := srv.Children("/lock")
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestMetricsDoNotEndTheDeletionOfANode(t *testing.T) {
	for _, counts := range []int64{1, -1} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			m, armed := endingMetrics(counts)
			dialer := framework.WithDialer(srv.Client("c").DialContext)
			s := session(t, testzk.Connected(t, srv.MemAddr(), dialer, framework.WithMetrics(m)))
			node, err := s.Create(t.Context(), "/n", nil, framework.Ephemeral())
			require.NoError(t, err)
			armed.Store(true)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = s.DeleteGuaranteed(t.Context(), node)
			}()
			<-done
			time.Sleep(time.Second)
			require.False(t, armed.Load(), "nothing was counted")
			require.NotContains(t, srv.Tree(), "ephemeral")
		})
	}
}
