package rwlock_test

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

const guid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

func TestNodesHaveCuratorsLayout(t *testing.T) {
	lock := testzk.Path(t)
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), lock)
	observer := testzk.Observer(t)
	for marker, side := range map[string]*rwlock.Side{"__READ__": rw.Read(), "__WRIT__": rw.Write()} {
		hold := acquire(t, side)
		require.Equal(t, lock, path.Dir(hold.Path()))
		require.Regexp(t, "^_c_"+guid+"-"+marker+`[0-9]{10}$`, path.Base(hold.Path()))
		data, stat, err := observer.Get(hold.Path())
		require.NoError(t, err)
		require.Regexp(t, `^\d+\.\d+\.\d+\.\d+$`, string(data), "the host's IP address")
		require.Equal(t, hold.Token(), stat.Czxid)
		require.NotZero(t, stat.EphemeralOwner)
		acl, _, err := observer.GetACL(hold.Path())
		require.NoError(t, err)
		require.Equal(t, zk.WorldACL(zk.PermAll), acl)
		release(t, hold)
	}
}

// In Curator the read node of a downgrade is ephemeral and not sequential. Its name has the digits
// of the write node. The node of docent's upgrade is made in the same way from the read node.
func TestNodesOfDowngradesAndUpgradesHaveEqualDigits(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	observer := testzk.Observer(t)
	rw := newLock(t, c, testzk.Path(t), rwlock.WithData([]byte("me")))
	release(t, acquire(t, rw.Read())) // so that the digits are not 0
	for marker, pair := range map[string]func() (held, beside *recipes.Hold){
		"__READ__": func() (_, _ *recipes.Hold) { h := acquire(t, rw.Write()); return h, downgrade(t, rw, h) },
		"__WRIT__": func() (_, _ *recipes.Hold) { h := acquire(t, rw.Read()); return h, upgrade(t, rw, h) },
	} {
		held, beside := pair()
		require.Len(t, digits(held.Path()), 10)
		require.Regexp(t, "^_c_"+guid+"-"+marker+digits(held.Path())+"$", path.Base(beside.Path()))
		require.NotEqual(t, path.Base(held.Path())[:39], path.Base(beside.Path())[:39],
			"each node has its own protection id")
		require.Equal(t, held.Token(), beside.Token())
		data, stat, err := observer.Get(beside.Path())
		require.NoError(t, err)
		require.Equal(t, "me", string(data))
		_, other, err := observer.Exists(held.Path())
		require.NoError(t, err)
		require.Equal(t, other.EphemeralOwner, stat.EphemeralOwner)
		release(t, held, beside)
	}
}

// Curator: testSetNodeData.
func TestDataIsOnTheNodesOfBothSides(t *testing.T) {
	data := []byte("worker 7")
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t), rwlock.WithData(data))
	copy(data, "xxxxxx") // the caller may change its slice
	written := acquire(t, rw.Write())
	reading := downgrade(t, rw, written)
	require.Equal(t, "worker 7", string(queued(t, rw.Write(), 1)[0].Data))
	require.Equal(t, "worker 7", string(queued(t, rw.Read(), 1)[0].Data))
	release(t, reading, written)
}

func TestIdentityHasHostAndProcess(t *testing.T) {
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t), rwlock.WithIdentity())
	reading := acquire(t, rw.Read())
	require.NotNil(t, queued(t, rw.Read(), 1)[0].Identity)
	release(t, reading)
}

// foreignClient creates lock nodes as another program does.
type foreignClient struct {
	t    *testing.T
	c    *framework.Client
	lock string
}

func (s foreignClient) create(name string, how ...framework.CreateOption) (node string) {
	s.t.Helper()
	node, err := s.c.Create(testzk.Context(s.t), s.lock+"/"+name, nil, append(how, framework.Ephemeral())...)
	require.NoError(s.t, err)
	return node
}

func (s foreignClient) delete(node string) {
	s.t.Helper()
	require.NoError(s.t, s.c.Delete(testzk.Context(s.t), node, -1))
}

// withForeignClient runs a test with a foreignClient. The lock's directory exists.
func withForeignClient(t *testing.T, test func(t *testing.T, in env, s foreignClient, rw *rwlock.RWLock)) {
	anywhere(t, func(t *testing.T, in env) {
		c := in.client(t)
		require.NoError(t, c.CreateContainers(testzk.Context(t), in.path))
		test(t, in, foreignClient{t, c, in.path}, in.lock(t))
	})
}

func TestNodesOfOtherClientsAreRespected(t *testing.T) {
	for _, prefix := range []string{
		"_c_8026b758-0c64-4418-a4a7-a40067d845c1-", "_c_8026b7580c644418a4a7a40067d845c1-", "",
	} {
		t.Run(prefix, func(t *testing.T) {
			withForeignClient(t, func(t *testing.T, in env, s foreignClient, rw *rwlock.RWLock) {
				reader := s.create(prefix+"__READ__", framework.Sequential())
				release(t, acquire(t, rw.Read()))
				busy(t, rw.Write())
				writer := s.create(prefix+"__WRIT__", framework.Sequential())
				busy(t, rw.Read())
				waiters := []*testlock.Attempt{enter(t, rw.Read()), enter(t, rw.Write())}
				s.delete(reader)
				in.waits(t, waiters...)
				s.delete(writer)
				release(t, waiters[0].Won(t))
				release(t, waiters[1].Won(t))
			})
		})
	}
}

// After a downgrade of Curator two nodes have the same digits: that of the reader and that of the
// writer.
func TestDowngradeOfAnotherClientIsRespected(t *testing.T) {
	withForeignClient(t, func(t *testing.T, in env, s foreignClient, rw *rwlock.RWLock) {
		written := s.create("_c_8026b758-0c64-4418-a4a7-a40067d845c1-__WRIT__", framework.Sequential())
		writer, reader := enter(t, rw.Write()), enter(t, rw.Read())
		in.waits(t, writer, reader)
		read := s.create("_c_1026b758-0c64-4418-a4a7-a40067d845c2-__READ__" + digits(written))
		early := enter(t, rw.Read())
		s.delete(written)
		in.waits(t, writer, reader, early)
		s.delete(read)
		release(t, writer.Won(t))
		release(t, reader.Won(t), early.Won(t))
	})
}

func TestForeignChildrenAreIgnored(t *testing.T) {
	lock := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	rw := newLock(t, c, lock)
	require.NoError(t, c.CreateContainers(testzk.Context(t), lock))
	for _, name := range []string{"-x", "0", "config", "__READ__", "__WRIT__abc", "_c_x", "_c_x-lock-0000000000"} {
		_, err := c.Create(testzk.Context(t), lock+"/"+name, nil)
		require.NoError(t, err)
	}
	reading := acquire(t, rw.Read())
	writer := enter(t, rw.Write())
	written := upgrade(t, rw, reading)
	release(t, reading, downgrade(t, rw, written), written)
	release(t, writer.Won(t))
	for _, side := range []*rwlock.Side{rw.Read(), rw.Write()} {
		hold, err := side.TryAcquire(testzk.Context(t))
		require.NoError(t, err)
		release(t, hold)
	}
}

func TestLockInANamespaceIsTheSame(t *testing.T) {
	lock := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	rw, view := newLock(t, c, lock+"/deep/lock"), newLock(t, c.Namespace(lock[1:]), "/deep/lock")
	written := acquire(t, view.Write())
	busy(t, rw.Read())
	reading := downgrade(t, rw, written) // through another view of the client
	require.Equal(t, digits(written.Path()), digits(reading.Path()))
	require.True(t, strings.HasPrefix(reading.Path(), lock))
	release(t, written)
	release(t, upgrade(t, view, reading), reading)
	testzk.Empty(t, lock+"/deep/lock")
}

func TestRevokeReachesBothSides(t *testing.T) {
	lock := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	rw := newLock(t, c, lock)
	written := acquire(t, rw.Write())
	reading := downgrade(t, rw, written)
	for _, hold := range []*recipes.Hold{written, reading} {
		require.NoError(t, recipes.Revoke(testzk.Context(t), c, recipes.Participant{Node: hold.Path()}))
		<-hold.Revoked()
		require.NoError(t, hold.Err(), "a revocation is no loss")
		release(t, hold)
	}
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	c := testzk.Client(t, testzk.Connect())
	for name, make := range map[string]func() (*rwlock.RWLock, error){
		"no client":   func() (*rwlock.RWLock, error) { return rwlock.New(nil, "/lock") },
		"zero client": func() (*rwlock.RWLock, error) { return rwlock.New(&framework.Client{}, "/lock") },
		"root":        func() (*rwlock.RWLock, error) { return rwlock.New(c, "/") },
		"no path":     func() (*rwlock.RWLock, error) { return rwlock.New(c, "lock") },
		"nil option":  func() (*rwlock.RWLock, error) { return rwlock.New(c, "/lock", nil) },
		"two kinds of data": func() (*rwlock.RWLock, error) {
			return rwlock.New(c, "/lock", rwlock.WithData(nil), rwlock.WithIdentity())
		},
	} {
		rw, err := make()
		require.ErrorContains(t, err, "new read-write lock: ", name)
		require.Nil(t, rw, name)
	}
}

func TestZeroValuesReturnAnError(t *testing.T) {
	ctx := context.Background()
	for _, rw := range []*rwlock.RWLock{{}} {
		for _, side := range []*rwlock.Side{rw.Read(), rw.Write(), {}} {
			_, err := side.Acquire(ctx)
			require.ErrorIs(t, err, framework.ErrZeroValue)
			_, err = side.TryAcquire(ctx)
			require.ErrorIs(t, err, framework.ErrZeroValue)
			_, err = side.Participants(ctx)
			require.ErrorIs(t, err, framework.ErrZeroValue)
		}
		_, err := rw.TryUpgrade(ctx)
		require.ErrorIs(t, err, framework.ErrZeroValue)
	}
}
