package inspect_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// These tests run on real servers too.

// A tree with all recipes of docent, and a lock of the Go driver.
func TestWalkShowsTheRecipes(t *testing.T) {
	c, other, root := testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	ctx := testzk.Context(t)

	hold := testlock.Held(t, newMutex(t, c, root+"/a/mutex", mutex.WithIdentity()))
	testlock.Queue(t, newMutex(t, other, root+"/a/mutex"))
	kazoo := testlock.Held(t, newMutex(t, c, root+"/a/mutex-kazoo", mutex.WithKazooNames()))
	require.NotZero(t, kazoo.Token())

	rw, err := rwlock.New(c, root+"/b/rwlock")
	require.NoError(t, err)
	written := testlock.Held(t, rw.Write())
	_, err = rw.Read().Acquire(written.Context(ctx))
	require.NoError(t, err)
	rwOther, err := rwlock.New(other, root+"/b/rwlock")
	require.NoError(t, err)
	testlock.Queue(t, rwOther.Read())

	sem, err := semaphore.New(c, root+"/c/semaphore", 2, semaphore.WithSlots())
	require.NoError(t, err)
	two, err := sem.AcquireN(ctx, 2)
	require.NoError(t, err)
	t.Cleanup(func() { _ = two.Release() })
	semOther, err := semaphore.New(other, root+"/c/semaphore", 2, semaphore.WithSlots())
	require.NoError(t, err)
	testlock.Queue(t, semOther)
	once, err := semaphore.NewMutex(c, root+"/c/mutex")
	require.NoError(t, err)
	testlock.Held(t, once)
	shared, err := semaphore.New(c, root+"/c/shared", 3, semaphore.WithSharedLimit(root+"/c/shared-limit"))
	require.NoError(t, err)
	testlock.Held(t, shared)

	latch, err := leader.NewLatch(c, root+"/d/latch", leader.WithID("host-1"))
	require.NoError(t, err)
	require.NoError(t, latch.Start(ctx))
	t.Cleanup(func() { _ = latch.Close() })
	_, err = latch.Await(ctx)
	require.NoError(t, err)
	elect(t, c, root+"/d/election", leader.WithLockDelay(time.Second))

	for _, id := range []string{"host-1", "host-2"} {
		m, err := group.Join(ctx, c, root+"/e/group", id, []byte("10.0.0.3"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = m.Close() })
	}
	party, err := group.Join(ctx, c, root+"/e/party", "host-1", nil, group.WithKazooNames())
	require.NoError(t, err)
	t.Cleanup(func() { _ = party.Close() })
	registry, err := discovery.New(c, root+"/f")
	require.NoError(t, err)
	self, err := registry.Register(discovery.Instance{Name: "orders", Address: "10.0.0.3", Port: 8080})
	require.NoError(t, err)
	t.Cleanup(func() { _ = self.Close() })
	require.NoError(t, self.WaitReady(ctx))
	driver := zk.NewLock(testzk.Observer(t).Conn, root+"/g/driver", zk.WorldACL(zk.PermAll))
	require.NoError(t, driver.Lock())
	t.Cleanup(func() { _ = driver.Unlock() })

	testzk.Everywhere(t)
	queued(t, c, root+"/a/mutex", 2)
	queued(t, c, root+"/b/rwlock", 3)
	queued(t, c, root+"/c/semaphore", 3)
	term := show(t, c, root+"/d/election").Nodes[0].Token
	limit := func(at string) string {
		if at == root+"/c/shared" {
			return at + "-limit"
		}
		return ""
	}
	objects := walk(t, c, root, inspect.WithLimitNode(limit))
	for _, o := range objects {
		if o.Kind == inspect.KindTermRecord {
			require.EqualValues(t, term, *o.Value)
			o.Value = nil
		}
		requireWell(t, o)
	}
	require.Equal(t, []string{
		"/a/mutex mutex waited-for curator 1+1",
		"/a/mutex-kazoo mutex held docent 1+0",
		"/b/rwlock rwlock waited-for curator 2+1",
		"/c/mutex semaphore held curator 1+0 of 1",
		"/c/semaphore semaphore waited-for curator 2+1 of 2",
		"/c/shared semaphore held curator 1+0 of 3",
		"/c/shared-limit count? curator = 3",
		"/d/election mutex held curator 1+0",
		"/d/election-term term-record docent",
		"/d/latch latch held curator 1+0",
		"/e/group group? curator 2+0",
		"/e/party group kazoo 1+0",
		"/f/orders service curator 1+0",
		"/g/driver mutex held go-zookeeper 1+0",
	}, lines(objects, root))
	at := map[string]*inspect.Object{}
	for _, o := range objects {
		at[o.Path[len(root):]] = o
	}

	mu := at["/a/mutex"]
	require.Equal(t, []string{"lock 0 holds", "lock 1"}, roles(mu))
	holder := mu.Nodes[0]
	require.Equal(t, hold.Path(), holder.Path)
	require.EqualValues(t, hold.Token(), holder.Token)
	require.Equal(t, session(t, c), holder.Session)
	require.Equal(t, session(t, other), mu.Nodes[1].Session)
	require.NotEmpty(t, holder.Process)
	require.NotZero(t, holder.PID)
	require.Equal(t, mu.Nodes[1].Since, holder.HeldSince, "the last node came then, and nothing was deleted since")
	require.Zero(t, mu.Nodes[1].HeldSince)
	require.NotEmpty(t, mu.Nodes[1].Host, "the address is the data")
	all, err := newMutex(t, c, mu.Path).Participants(ctx)
	require.NoError(t, err)
	for i, p := range all {
		p.Data = nil
		same := mu.Nodes[i].Participant()
		same.Data = nil
		require.Equal(t, p, same)
	}

	require.Equal(t, []string{"writer 0 holds", "reader 0 holds", "reader 1"}, roles(at["/b/rwlock"]))
	require.Equal(t, []string{"permit 0 holds", "permit 0 holds", "waiter 0"}, roles(at["/c/semaphore"]))
	require.Equal(t, "host-1", at["/d/latch"].Nodes[0].ID)
	require.Equal(t, "host-2", at["/e/group"].Nodes[1].ID)
	require.Equal(t, "10.0.0.3", at["/e/group"].Nodes[1].Host)
	require.Equal(t, "host-1", at["/e/party"].Nodes[0].ID)
	require.Equal(t, self.Instance().ID, at["/f/orders"].Nodes[0].ID)
	require.Equal(t, "10.0.0.3", at["/f/orders"].Nodes[0].Host)
	require.Equal(t, 8080, at["/f/orders"].Nodes[0].Port)

	for _, o := range objects {
		if o.Kind != inspect.KindTermRecord {
			again := show(t, c, o.Path, inspect.WithLimitNode(limit))
			again.At = o.At
			require.Equal(t, o, again, "Show and Walk agree")
		}
	}
	view, err := inspect.Session(ctx, c, root, session(t, other))
	require.NoError(t, err)
	require.Empty(t, view.Holds)
	require.Len(t, view.Waits, 3)
	require.Equal(t, root+"/b/rwlock", view.Waits[1].Path)
	view, err = inspect.Session(ctx, c, root, session(t, c))
	require.NoError(t, err)
	require.Len(t, view.Holds, 10)
	require.Len(t, view.Members, 4)
	require.Empty(t, view.Waits)
}

// requireWell checks what is true of every object, and that it survives JSON.
func requireWell(t testing.TB, o *inspect.Object) {
	t.Helper()
	holds, waits := 0, 0
	for _, n := range o.Nodes {
		require.NotEmpty(t, n.Path)
		require.NotEmpty(t, n.Role)
		if n.Holds {
			holds++
		} else {
			waits++
		}
		require.GreaterOrEqual(t, o.Age(n), time.Duration(0))
	}
	require.LessOrEqual(t, holds, o.Holders, o.Path)
	require.LessOrEqual(t, waits, o.Waiters, o.Path)
	require.Equal(t, o.Holders+o.Waiters, len(o.Nodes)+o.Unread, o.Path)
	require.False(t, o.Sure && (o.Kind == inspect.KindEmpty || o.Kind == inspect.KindUnknown))
	text, err := json.Marshal(o)
	require.NoError(t, err)
	var back inspect.Object
	require.NoError(t, json.Unmarshal(text, &back))
	require.Len(t, back.Nodes, len(o.Nodes))
	for i, n := range back.Nodes {
		require.Equal(t, o.Nodes[i].Token, n.Token)
		require.Equal(t, o.Nodes[i].Session, n.Session)
	}
}

// elect leads an election until the test ends.
func elect(t testing.TB, c *framework.Client, path string, opts ...leader.Option) {
	t.Helper()
	e, err := leader.New(c, path, opts...)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	leads, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			close(leads)
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	testzk.Closes(t, leads, "the candidate does not lead")
}

func TestNodesThatMayNotBeReadAreErrorsAndTheWalkGoesOn(t *testing.T) {
	c, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	testlock.Held(t, newMutex(t, c, root+"/a/lock"))
	hidden := testlock.Held(t, newMutex(t, c, root+"/b"))
	create(t, c, root+"/c/below", "10.0.0.1")
	testlock.Held(t, newMutex(t, c, root+"/d"))
	testzk.Permit(t, hidden.Path(), zk.PermAll&^zk.PermRead)
	testzk.Permit(t, root+"/c", zk.PermAll&^zk.PermRead)
	var refused []string
	var objects []*inspect.Object
	for o, err := range inspect.Walk(testzk.Context(t), c, root) {
		require.NotNil(t, o, "%v", err)
		if err != nil {
			require.ErrorIs(t, err, zk.ErrNoAuth)
			refused = append(refused, o.Path)
			continue
		}
		objects = append(objects, o)
	}
	require.Equal(t, []string{root + "/c"}, refused)
	require.Equal(t, []string{
		"/a/lock mutex held curator 1+0", "/b mutex held curator 1+0", "/d mutex held curator 1+0",
	}, lines(objects, root))
	n := objects[1].Nodes[0]
	require.Contains(t, n.Err, "ACL")
	require.Zero(t, n.Session)
	require.True(t, n.Holds, "the names show the order")
	_, err := inspect.Show(testzk.Context(t), c, root+"/c")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	view, err := inspect.Session(testzk.Context(t), c, root, session(t, c))
	require.NoError(t, err)
	require.Equal(t, 2, view.Unread)
	require.Len(t, view.Holds, 2)
	testzk.Permit(t, root+"/c", zk.PermAll)
}
