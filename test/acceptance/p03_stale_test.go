package acceptance_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The answer to an acquire is lost. When the client looks for its node, the node with its id
// belongs to another session. The lock is not granted on that node, which counts as another
// client's until it is deleted.
func TestP03_NodeOfAnotherSessionIsNotGranted(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		mu := bubbleMutex(t, bubbleClient(t, srv, "a"), "/lock")
		require.NoError(t, testlock.StartUnder(t, t.Context(), mu.Acquire).Won(t).Release())

		srv.On(fault.Match{Client: "a", Op: fault.OpCreate}, fault.DropAfter())
		search := srv.On(fault.Match{Client: "a", Op: fault.OpGetChildren2}, fault.Hold())
		a := testlock.StartUnder(t, t.Context(), mu.Acquire)
		require.NoError(t, search.Wait(t.Context()))
		other := p03Driver(t, srv)
		node := p03Node(t, srv, 1)
		require.NoError(t, srv.Delete(node))
		_, err := other.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		foreign := p03Stat(t, srv, node)
		search.Release()

		time.Sleep(time.Minute)
		require.True(t, bubbleWaits(a), "granted on a node of another session")
		other.Close()
		hold := a.Won(t)
		require.NotEqual(t, node, hold.Path())
		require.Greater(t, hold.Token(), foreign.Czxid)
		require.Equal(t, srv.Client("a").Sessions()[0].ID, p03Stat(t, srv, hold.Path()).EphemeralOwner)
		require.Equal(t, []string{hold.Path()}, p03Nodes(t, srv))
		require.NoError(t, hold.Release())
	})
}

// A waiter's client gives up its session while the servers still keep it, and the waiter's node
// comes to the front of the queue. The lock is not granted on that node, but on a node of the next
// session once the old node is deleted.
func TestP03_NodeOfTheFormerSessionIsNotGranted(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder := bubbleAcquire(t, srv, "holder").Won(t)
		client := bubbleClient(t, srv, "waiter")
		former, err := client.Session(t.Context())
		require.NoError(t, err)
		waiter := testlock.StartUnder(t, t.Context(), bubbleMutex(t, client, "/lock").Acquire)
		require.True(t, bubbleWaits(waiter))
		time.Sleep(time.Second)
		stale := p03Node(t, srv, 2)

		farewell := srv.On(fault.Match{Client: "waiter", Op: fault.OpCloseSession}, fault.Hold())
		srv.Client("waiter").CutReplies() // the servers keep the session, and the client hears nothing
		<-former.Done()
		require.NoError(t, holder.Release())
		srv.Client("waiter").Heal()
		p03AwaitNodes(t, srv, 2)
		require.True(t, bubbleWaits(waiter), "granted while the first node belongs to a former session")
		require.True(t, srv.Exists(stale))
		farewell.Release()
		hold := waiter.Won(t)
		require.False(t, srv.Exists(stale))
		require.NotEqual(t, former.ID(), p03Stat(t, srv, hold.Path()).EphemeralOwner)
		require.NoError(t, hold.Release())
	})
}

// A waiter's session ends between the creation of its node and the list of the queue. The acquire
// starts over in the next session. It then has exactly one node in the queue, and is granted the
// lock on that.
func TestP03_AttemptStartsOverInTheNextSession(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder := bubbleAcquire(t, srv, "holder").Won(t)
		list := srv.On(fault.Match{Client: "waiter", Op: fault.OpGetChildren2, Path: "/lock"}, fault.Hold())
		waiter := bubbleAcquire(t, srv, "waiter")
		require.NoError(t, list.Wait(t.Context()))
		stale := p03Node(t, srv, 2)
		former := srv.Client("waiter").Sessions()[0]
		require.NoError(t, former.Expire())
		list.Release()
		p03AwaitNodes(t, srv, 2)
		time.Sleep(time.Minute)
		nodes := p03Nodes(t, srv)
		require.Len(t, nodes, 2, "want one of the holder and one of the waiter")
		require.True(t, bubbleWaits(waiter))

		require.NoError(t, holder.Release())
		hold := waiter.Won(t)
		require.Equal(t, nodes[1], hold.Path())
		require.NotEqual(t, stale, hold.Path())
		require.NotEqual(t, former.ID, p03Stat(t, srv, hold.Path()).EphemeralOwner)
		require.Equal(t, p03Stat(t, srv, hold.Path()).Czxid, hold.Token())
		require.NoError(t, hold.Release())
	})
}

// A waiter's node is deleted before the waiter lists the queue. The list then lacks the node, and
// it may be empty. The lock is never granted on that node, but on a new one, in its turn.
func TestP03_NodeThatIsNotInTheListIsNeverGranted(t *testing.T) {
	onlyInProcess(t, virtual)
	for name, empty := range map[string]bool{"list of others": false, "empty list": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { p03Omitted(t, srv, empty) })
		})
	}
}

func p03Omitted(t *testing.T, srv *zktest.Server, empty bool) {
	holder := bubbleAcquire(t, srv, "holder").Won(t)
	list := srv.On(fault.Match{Client: "waiter", Op: fault.OpGetChildren2, Path: "/lock"}, fault.Hold())
	waiter := bubbleAcquire(t, srv, "waiter")
	require.NoError(t, list.Wait(t.Context()))
	deleted := p03Node(t, srv, 2)
	token := p03Stat(t, srv, deleted).Czxid
	require.NoError(t, srv.Delete(deleted))
	if empty {
		require.NoError(t, holder.Release())
	}
	list.Release()
	if !empty {
		time.Sleep(time.Minute)
		require.True(t, bubbleWaits(waiter), "granted while another client holds")
		require.NoError(t, holder.Release())
	}
	hold := waiter.Won(t)
	require.NotEqual(t, deleted, hold.Path())
	require.Greater(t, hold.Token(), token)
	require.Equal(t, []string{hold.Path()}, p03Nodes(t, srv))
	require.NoError(t, hold.Release())
}

// A waiter learns at the same moment that its own node was deleted and that its predecessor was
// released. Another client holds the lock by then. The lock is not granted to the waiter, which
// joins the queue again.
func TestP03_NodeThatIsDeletedAtItsTurnIsNeverGranted(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	sim.Run(t, 50, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder := bubbleAcquire(t, srv, "holder").Won(t)
		waiter := bubbleAcquire(t, srv, "waiter")
		time.Sleep(time.Second)
		deleted := p03Node(t, srv, 2)
		next := bubbleAcquire(t, srv, "next")
		time.Sleep(time.Second)

		srv.Client("waiter").HoldEvents()
		require.NoError(t, srv.Delete(deleted))
		require.NoError(t, holder.Release())
		rightful := next.Won(t)
		srv.Client("waiter").ReleaseEvents()
		time.Sleep(time.Second)
		require.True(t, bubbleWaits(waiter), "granted while another client holds")
		require.NoError(t, rightful.Release())
		hold := waiter.Won(t)
		require.NotEqual(t, deleted, hold.Path())
		require.Greater(t, hold.Token(), rightful.Token())
		require.NoError(t, hold.Release())
	})
}

// p03Driver returns a session of another client.
func p03Driver(t testing.TB, srv *zktest.Server) *zk.Conn {
	t.Helper()
	dialer := zk.WithDialer(srv.Client("other").Dialer())
	conn, _, err := zk.Connect([]string{srv.MemAddr()}, bubbleTimeout, dialer, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = srv.Client("other").WaitSession(t.Context())
	require.NoError(t, err)
	return conn
}

// p03Nodes returns the nodes of the queue, in order.
func p03Nodes(t testing.TB, srv *zktest.Server) []string {
	t.Helper()
	synctest.Wait()
	names, err := srv.Children("/lock")
	require.NoError(t, err)
	return p03Queue(names)
}

// p03Queue returns the paths of lock nodes, ordered by sequence number. The ids in front of the
// numbers are random.
func p03Queue(names []string) (nodes []string) {
	sequence := func(name string) string { return name[strings.LastIndexByte(name, '-'):] }
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(sequence(a), sequence(b)) })
	for _, name := range names {
		nodes = append(nodes, "/lock/"+name)
	}
	return nodes
}

// p03Node returns the last node of the queue once there are count nodes.
func p03Node(t testing.TB, srv *zktest.Server, count int) string {
	t.Helper()
	nodes := p03Nodes(t, srv)
	require.Len(t, nodes, count)
	return nodes[count-1]
}

func p03AwaitNodes(t testing.TB, srv *zktest.Server, count int) {
	t.Helper()
	for range 100 {
		if len(p03Nodes(t, srv)) == count {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Len(t, p03Nodes(t, srv), count)
}

func p03Stat(t testing.TB, srv *zktest.Server, node string) zktest.Stat {
	t.Helper()
	stat, err := srv.Stat(node)
	require.NoError(t, err)
	return stat
}
