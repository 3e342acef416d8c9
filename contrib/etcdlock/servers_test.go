package etcdlock_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/recipes"
)

// startCluster starts servers of a cluster of their own.
func startCluster(t *testing.T, n int) []*server {
	t.Helper()
	all, err := newCluster(t.TempDir(), n)
	require.NoError(t, err)
	for _, s := range all {
		require.NoError(t, s.start())
		t.Cleanup(func() { s.kill() })
	}
	for _, s := range all {
		require.NoError(t, s.ready())
	}
	return all
}

func restart(t *testing.T, s *server) {
	t.Helper()
	require.NoError(t, s.start())
	require.NoError(t, s.ready())
}

// A server of its own is restarted with its data: holds and waiters go on. Then without: holds end,
// and waiters go on.
func TestRestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := startCluster(t, 1)[0]
	const long = 40 * time.Second // a start may take some seconds, and so may the pause before a connection
	c := newClient(t, connect(t, server.addr), etcdlock.WithTTL(long))
	lock := newLock(t, c, t.Name())
	hold := acquire(t, lock)
	first := hold.ValidUntil()
	won := make(chan *recipes.Hold, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
		defer cancel()
		hold, _ := lock.Acquire(ctx)
		won <- hold
	}()
	awaitKeys(t, connect(t, server.addr), t.Name(), 2)

	server.kill()
	restart(t, server)
	for end := bounded(t); !hold.ValidUntil().After(first); time.Sleep(10 * time.Millisecond) {
		require.NoError(t, end.Err())
		require.NoError(t, hold.Err())
	}

	server.kill()
	require.NoError(t, os.RemoveAll(server.dir))
	restart(t, server)
	await(t, hold.Done(), "the hold goes on without the data of the server")
	require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
	next := <-won
	require.NotNil(t, next)
	require.NoError(t, next.Release())
}

// leader returns the leader among servers, and the others.
func leader(t *testing.T, all []*server) (leader *server, others []*server) {
	t.Helper()
	c := connect(t, all[0].addr)
	for end := bounded(t); ; time.Sleep(10 * time.Millisecond) {
		leader, others = nil, nil
		for _, s := range all {
			status, err := c.Status(end, s.addr)
			require.NoError(t, err)
			if status.Leader == status.Header.MemberId {
				leader = s
			} else {
				others = append(others, s)
			}
		}
		if leader != nil && len(others) == len(all)-1 {
			return leader, others
		}
	}
}

func addrs(all []*server) string {
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, s.addr)
	}
	return strings.Join(addrs, ",")
}

// The leader of etcd is paused, with a holder that can only reach it. The others elect a new leader,
// and the lock is free when the lease expires: later than the hold ends. Then the former leader wakes.
// At last it is killed, and a hold goes on.
func TestLeaderThatIsPausedAndKilled(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	former, others := leader(t, all)
	a := newLock(t, newClient(t, connect(t, former.addr), etcdlock.WithTTL(12*time.Second)), t.Name())
	b := newLock(t, newClient(t, connect(t, addrs(others))), t.Name())
	observer := connect(t, addrs(others))

	hold := acquire(t, a)
	won := make(chan *recipes.Hold, 1)
	lost := make(chan error, 1)
	go func() {
		next, _ := b.Acquire(bounded(t))
		lost <- hold.Err()
		won <- next
	}()
	awaitKeys(t, observer, t.Name(), 2)
	require.NoError(t, former.cmd.Process.Signal(syscall.SIGSTOP))
	require.ErrorIs(t, <-lost, recipes.ErrForeignLost, "two clients hold the lock")
	next := <-won
	require.NotNil(t, next)
	require.Greater(t, next.Token(), hold.Token())

	require.NoError(t, former.cmd.Process.Signal(syscall.SIGCONT))
	_, err := a.TryAcquire(bounded(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
	require.NoError(t, next.Err())

	now, _ := leader(t, all)
	now.kill()
	first := next.ValidUntil()
	for end := bounded(t); !next.ValidUntil().After(first); time.Sleep(10 * time.Millisecond) {
		require.NoError(t, end.Err())
		require.NoError(t, next.Err())
	}
	require.NoError(t, next.Release())
	again := acquire(t, b)
	require.Greater(t, again.Token(), next.Token())
	require.NoError(t, again.Release())
}
