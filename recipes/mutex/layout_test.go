package mutex_test

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/ensemble"
)

var curatorName = regexp.MustCompile(
	`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-[0-9]{10}$`)

func TestNodesHaveCuratorsLayout(t *testing.T) {
	path := testzk.Path(t)
	hold := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	observer := testzk.Observer(t)
	require.Equal(t, path, hold.Path()[:strings.LastIndexByte(hold.Path(), '/')])
	require.Regexp(t, curatorName, hold.Path()[len(path)+1:])
	data, stat, err := observer.Get(hold.Path())
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+\.\d+\.\d+$`, string(data), "the host's IP address")
	require.Equal(t, hold.Token(), stat.Czxid)
	require.NotZero(t, stat.EphemeralOwner)
	acl, _, err := observer.GetACL(hold.Path())
	require.NoError(t, err)
	require.Equal(t, zk.WorldACL(zk.PermAll), acl)
	require.NoError(t, hold.Release())
}

func TestParentsKeepTheirData(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	observer := testzk.Observer(t)
	for name, data := range map[string][]byte{"text": []byte("precious"), "empty": {}, "null": nil} {
		lock := path + "/" + name
		require.NoError(t, client.CreateContainers(testzk.Context(t), path))
		_, err := observer.Create(lock, data, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.NoError(t, acquire(t, newMutex(t, client, lock)).Release())
		got, _, err := observer.Get(lock)
		require.NoError(t, err)
		require.Equal(t, data, got, name)
	}
}

// Curator's users may keep data in the node of a lock. A mutex does not change it, at whatever time
// and with whatever version it was written.
func TestDataOfThePathIsUnchanged(t *testing.T) {
	for name, put := range map[string]int{
		"before the first acquire": 0, "after the first acquire": 1, "after the second acquire": 2,
	} {
		t.Run(name, func(t *testing.T) {
			path := testzk.Path(t)
			one, other := testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect())
			locks := []*mutex.Mutex{
				newMutex(t, one, path), newMutex(t, other, path),
				newMutex(t, one, path, mutex.WithLocalHandoff(mutex.Handoff{Streak: 9, Span: time.Hour})),
			}
			observer := testzk.Observer(t)
			require.NoError(t, one.CreateContainers(testzk.Context(t), path))
			var version int32
			for round := range 6 {
				if round >= put {
					stat, err := observer.Set(path, []byte{byte(round)}, -1)
					require.NoError(t, err)
					version = stat.Version
				}
				for range 2 {
					for _, mu := range locks {
						require.NoError(t, acquire(t, mu).Release())
					}
				}
				if round >= put {
					data, stat, err := observer.Get(path)
					require.NoError(t, err)
					require.Equal(t, []byte{byte(round)}, data)
					require.Equal(t, version, stat.Version, "written by an acquire")
				}
			}
		})
	}
}

func TestMissingParentsAreEmptyContainersWithTheACLOfTheProvider(t *testing.T) {
	path := testzk.Path(t)
	own := []zk.ACL{
		{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}, {Perms: zk.PermRead, Scheme: "ip", ID: "127.0.0.1"},
	}
	var mu sync.Mutex
	asked := map[string]bool{}
	client := testzk.Connected(t, testzk.Connect(), framework.WithACL(func(path string) []zk.ACL {
		mu.Lock()
		defer mu.Unlock()
		asked[path] = true
		return own
	}))
	hold := acquire(t, newMutex(t, client, path))
	observer := testzk.Observer(t)
	for _, node := range []string{path, hold.Path()} {
		acl, _, err := observer.GetACL(node)
		require.NoError(t, err)
		require.Equal(t, own, acl, node)
	}
	data, stat, err := observer.Get(path)
	require.NoError(t, err)
	require.Empty(t, data)
	require.Zero(t, stat.EphemeralOwner)
	mu.Lock()
	defer mu.Unlock()
	require.True(t, asked[path])
	require.True(t, asked[strings.TrimRight(hold.Path(), "0123456789")],
		"with the protection, without the sequence number: %v", asked)
	require.NoError(t, hold.Release())
}

func TestDataOfTheNodeIsThatOfTheOption(t *testing.T) {
	path := testzk.Path(t)
	data := []byte("worker 7")
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path, mutex.WithData(data))
	copy(data, "xxxxxx") // the caller may change its slice
	hold := acquire(t, mu)
	require.Equal(t, "worker 7", string(queued(t, mu, 1)[0].Data))
	require.NoError(t, hold.Release())
}

// zkCli shows the token of the hold as cZxid.
func TestTokenIsTheCzxidOfZkCli(t *testing.T) {
	realzk.Need(t) // it has the command-line client
	path := testzk.Path(t)
	hold := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	zookeeper, err := ensemble.Find()
	require.NoError(t, err)
	ctx := testzk.Context(t)
	out, err := exec.CommandContext(ctx, zookeeper.Java, "-cp", strings.Join(zookeeper.ClassPath, ":"),
		"org.apache.zookeeper.ZooKeeperMain", "-server", testzk.Connect(), "stat", hold.Path()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), fmt.Sprintf("cZxid = %#x", hold.Token()))
	require.NoError(t, hold.Release())
}

// Other clients write other names: Curator with negative numbers, the Go driver with a GUID without
// dashes, kazoo with its own marker.
func TestNodesOfOtherClientsAreRespected(t *testing.T) {
	for _, name := range []string{
		"_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-",
		"_c_8026b7580c644418a4a7a40067d845c1-lock-",
		"lock-",
		"8026b7580c644418a4a7a40067d845c1__lock__",
	} {
		t.Run(name, func(t *testing.T) {
			path := testzk.Path(t)
			client := testzk.Connected(t, testzk.Connect())
			require.NoError(t, client.CreateContainers(testzk.Context(t), path))
			observer := testzk.Observer(t)
			other, err := observer.Create(path+"/"+name, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			mu := newMutex(t, client, path)
			_, err = mu.TryAcquire(testzk.Context(t))
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			waiter := testlock.Start(t, mu.Acquire)
			queued(t, mu, 2)
			require.True(t, waiter.Waiting())
			require.NoError(t, observer.Delete(other, -1))
			require.NoError(t, waiter.Won(t).Release())
		})
	}
}

func ExampleMutex_Acquire() {
	client, err := framework.New(testzk.Connect())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	mu, err := mutex.New(client, "/locks/example")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	hold, err := mu.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx = hold.Context(ctx) // ends if the lock is lost
	inner, err := mu.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the same ownership:", inner.Token() == hold.Token())
	fmt.Println(inner.Release(), hold.Release(), hold.Err())
	// Output:
	// the same ownership: true
	// <nil> <nil> recipes: not held
}
