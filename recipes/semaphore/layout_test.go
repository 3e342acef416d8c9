package semaphore_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const guid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

func TestNodesHaveCuratorsLayout(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 1)
	hold := acquire(t, s, 1)
	require.Regexp(t, `^`+path+`/leases/`+guid+`-lease-[0-9]{10}$`, hold.Path())
	o := testzk.Observer(t)
	data, stat, err := o.Get(hold.Path())
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+\.\d+\.\d+$`, string(data))
	require.Equal(t, hold.Token(), stat.Czxid)
	require.NotZero(t, stat.EphemeralOwner)
	waiter := start(t, s, 1)
	queue := crowd(t, s, 1, 1)
	require.Regexp(t, `^`+path+`/locks/`+guid+`-lock-[0-9]{10}$`, queue[1].Node)
	release(t, hold)
	release(t, waiter.Won(t))
	for _, dir := range []string{path + "/leases", path + "/locks"} {
		data, _, err := o.Get(dir)
		require.NoError(t, err)
		require.Empty(t, data, dir)
	}
}

// node creates a node for another client, and its directory if it is missing.
func node(t testing.TB, o *testzk.Conn, path, name string) string {
	t.Helper()
	require.NoError(t, testzk.Connected(t, testzk.Connect()).CreateContainers(testzk.Context(t), path))
	created, err := o.Create(path+"/"+name, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return created
}

// The queue decides the order of permits, whatever client created its nodes.
func TestQueueNodesOfOtherClientsAreRespectedEvenIfPermitsAreFree(t *testing.T) {
	path, o := testzk.Path(t), testzk.Observer(t)
	s := another(t, path, 3)
	release(t, acquire(t, s, 3))
	queued := node(t, o, path+"/locks", "_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-")
	refused(t, s, 1)
	waiter := start(t, s, 1)
	crowd(t, s, 0, 2)
	require.True(t, waiter.Waiting())
	require.NoError(t, o.Delete(queued, -1))
	release(t, waiter.Won(t))
	empty(t, path)
}

func TestLeasesOfOtherClientsCount(t *testing.T) {
	for _, name := range []string{"_c_8026b758-0c64-4418-a4a7-a40067d845c1-lease-", "lease-"} {
		path, o := testzk.Path(t), testzk.Observer(t)
		s := another(t, path, 2)
		lease := node(t, o, path+"/leases", name)
		hold := acquire(t, s, 1)
		refused(t, s, 1)
		waiter := start(t, s, 1)
		crowd(t, s, 2, 1)
		require.True(t, waiter.Waiting())
		require.NoError(t, o.Delete(lease, -1))
		release(t, hold, waiter.Won(t))
	}
}

func TestForeignChildrenAreNotCounted(t *testing.T) {
	path, o := testzk.Path(t), testzk.Observer(t)
	s := another(t, path, 2)
	for _, dir := range []string{"/leases", "/locks"} {
		node(t, o, path+dir, "stray")
		node(t, o, path+dir, "other-")
	}
	hold := acquire(t, s, 2)
	refused(t, s, 1)
	release(t, hold)
	hold, err := s.TryAcquireN(testzk.Context(t), 2)
	require.NoError(t, err)
	waiter := start(t, s, 1)
	crowd(t, s, 2, 1)
	release(t, hold)
	release(t, waiter.Won(t))
	children, _, err := o.Children(path + "/leases")
	require.NoError(t, err)
	require.Len(t, children, 2, "foreign children are not deleted")
}

func TestDirectoriesKeepTheirData(t *testing.T) {
	path, c := testzk.Path(t), testzk.Connected(t, testzk.Connect())
	o := testzk.Observer(t)
	require.NoError(t, c.CreateContainers(testzk.Context(t), path))
	for _, dir := range []string{"/leases", "/locks"} {
		_, err := o.Create(path+dir, []byte("precious"), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	s := newSemaphore(t, c, path, 1, semaphore.WithSlots())
	hold := acquire(t, s, 1)
	waiter := start(t, s, 1)
	crowd(t, s, 1, 1)
	release(t, hold)
	release(t, waiter.Won(t))
	for _, dir := range []string{"/leases", "/locks"} {
		data, _, err := o.Get(path + dir)
		require.NoError(t, err)
		require.Equal(t, "precious", string(data), dir)
	}
}

// If the directories must not be written, their versions show no count of permits or waiters. So
// each acquire enqueues.
func TestReadOnlyDirectoriesPreventOnlyTheDirectAcquire(t *testing.T) {
	for _, dir := range []string{"/leases", "/locks"} {
		path, c := testzk.Path(t), testzk.Connected(t, testzk.Connect())
		require.NoError(t, c.CreateContainers(testzk.Context(t), path+dir))
		testzk.Permit(t, path+dir, zk.PermAll&^zk.PermWrite)
		s := newSemaphore(t, c, path, 2, semaphore.WithSlots())
		for range 3 {
			hold := acquire(t, s, 2)
			all := crowd(t, s, 2, 0)
			require.Equal(t, all[0].Token, hold.Token(), "the token had to be read")
			refused(t, s, 1)
			release(t, hold)
		}
		empty(t, path)
	}
}

// A waiter that exchanges its queue node for the last permit has counted the permits. No direct
// acquire may take a permit meanwhile.
func TestDirectAcquireFailsWhileAWaiterTakesItsPermit(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		first := newSemaphore(t, client(t, srv, "first"), "/sem", 1)
		s := newSemaphore(t, client(t, srv, "s"), "/sem", 1)
		hold := acquire(t, first, 1)
		waiter := start(t, s, 1)
		time.Sleep(time.Second)
		exchange := srv.On(fault.Match{Client: "s", Op: fault.OpMulti}, fault.Hold())
		release(t, hold)
		require.NoError(t, exchange.Wait(t.Context()))
		other := start(t, first, 1)
		time.Sleep(time.Second)
		require.True(t, other.Waiting())
		exchange.Release()
		hold = waiter.Won(t)
		time.Sleep(time.Second)
		require.True(t, other.Waiting())
		release(t, hold)
		release(t, other.Won(t))
		requireEmpty(t, srv, "/sem")
	})
}

// Servers delete empty containers at any time, also between two requests of an acquire.
func TestContainersDeletedMeanwhileAreCreatedAgain(t *testing.T) {
	t.Parallel()
	own := testzk.Own(t, 100*time.Millisecond)
	var running sync.WaitGroup
	for range 4 {
		s := newSemaphore(t, testzk.Connected(t, own.Connect()), "/deep/sem", 2, semaphore.WithSlots())
		running.Go(func() {
			for range 60 {
				n := 1 + rand.IntN(2)
				hold := acquire(t, s, n)
				release(t, hold)
			}
		})
	}
	running.Wait()
}

// The first waiter may find no leases and create their directory. It then watches the directory as
// usual, because another client may have acquired and released a permit meanwhile.
func TestFirstWaiterWatchesTheDirectoryOfLeasesItCreated(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		all := map[string]*semaphore.Semaphore{}
		for _, name := range []string{"holder", "first", "other"} {
			all[name] = newSemaphore(t, client(t, srv, name), "/sem", 1, semaphore.WithSlots())
			release(t, acquire(t, all[name], 1))
		}
		hold := acquire(t, all["holder"], 1)
		first := start(t, all["first"], 1)
		time.Sleep(time.Second)

		leases := fault.Match{Client: "first", Op: fault.OpGetChildren2, Path: "/sem/leases", Times: 1}
		missing := srv.On(leases, fault.Hold())
		release(t, hold)
		require.NoError(t, missing.Wait(t.Context()))
		require.NoError(t, srv.Delete("/sem/leases"))
		made := srv.On(leases, fault.Hold())
		missing.Release()
		require.NoError(t, made.Wait(t.Context()))

		back := srv.On(fault.Match{Client: "other", Op: fault.OpDelete}, fault.Hold())
		other := start(t, all["other"], 1)
		require.NoError(t, back.Wait(t.Context()))
		made.Release()
		time.Sleep(time.Second)
		require.True(t, first.Waiting())
		back.Release()
		time.Sleep(time.Second)
		require.False(t, first.Waiting(), "%s", srv.Tree())
		release(t, first.Won(t))
		release(t, other.Won(t))
	})
}

// The containers are deleted when the semaphore has been unused for a while, even if no client ever
// had to wait.
func TestContainersOfAnUnusedSemaphoreAreDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := newSemaphore(t, client(t, srv, "s"), "/deep/sem", 2, semaphore.WithSlots())
		release(t, acquire(t, s, 2))
		time.Sleep(10 * time.Minute)
		require.False(t, srv.Exists("/deep"), "%s", srv.Tree())
		release(t, acquire(t, s, 2))
	})
}
