package framework_test

import (
	"context"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/proxy"
)

// faults are what may happen to a create whose answer does not come.
var faults = map[string]proxy.Action{
	"request lost":            proxy.DropBefore(),
	"reply lost":              proxy.DropAfter(),
	"request lost to a reset": proxy.Reset(),
}

var kinds = map[string][]framework.CreateOption{
	"lock node":  {framework.Protected(), framework.Ephemeral(), framework.Sequential()},
	"ephemeral":  {framework.Protected(), framework.Ephemeral()},
	"sequential": {framework.Protected(), framework.Sequential()},
	"persistent": {framework.Protected()},
	"container":  {framework.Protected(), framework.Container()},
}

func opOf(kind string) proxy.Op {
	if kind == "container" {
		return proxy.OpCreateContainer
	}
	return proxy.OpCreate
}

func TestProtectedCreateMakesExactlyOneNodeWhateverIsLost(t *testing.T) {
	t.Parallel()
	o := testzk.Observer(t)
	for fault, action := range faults {
		for kind, opts := range kinds {
			for _, namespaced := range []bool{false, true} {
				c, p := through(t)
				under, name := parent(t), "/n-"
				view := c
				if namespaced {
					view = c.Namespace(under[1:])
				} else {
					name = under + name
				}
				syncs := p.On(proxy.Match{Op: proxy.OpSync, Path: under, Times: proxy.Always}, proxy.Pass())
				rule := p.On(proxy.Match{Op: opOf(kind), Path: under}, action)
				made, err := view.Create(testzk.Context(t), name, []byte("data"), opts...)
				require.NoError(t, err, "%s, %s", fault, kind)
				require.Equal(t, 1, rule.Hits())
				require.Equal(t, path.Dir(name), path.Dir(made))
				require.Equal(t, []string{path.Base(made)}, children(t, o, under), "%s, %s", fault, kind)
				data, _, there := observe(t, o, under+"/"+path.Base(made))
				require.True(t, there)
				require.Equal(t, "data", string(data))
				want := 2
				if fault == "reply lost" {
					want = 1
				}
				require.Equal(t, want, p.Requests()[opOf(kind)], "creates sent: %s, %s", fault, kind)
				require.Positive(t, syncs.Hits(), "a follower may not have seen it yet")
				require.NoError(t, c.Close())
			}
		}
	}
}

func TestProtectedCreateThatGivesUpLeavesNothing(t *testing.T) {
	o := testzk.Observer(t)
	for fault, action := range faults {
		for kind, opts := range kinds {
			c, p := through(t, framework.WithRetry(retry.Never()))
			under := parent(t)
			rule := p.On(proxy.Match{Op: opOf(kind), Path: under}, action)
			_, err := c.Namespace(under[1:]).Create(testzk.Context(t), "/n-", nil, opts...)
			failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
			require.Equal(t, 1, rule.Hits())
			swept(t, o, under, fault == "reply lost")
		}
	}
}

// swept waits until a node that was created, if it was, is gone.
func swept(t testing.TB, o *zk.Conn, under string, created bool) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		_, stat, there := observe(t, o, under)
		return there && stat.NumChildren == 0 && (!created || stat.Cversion == 2)
	}, "a node is left, or never was, below %s", under)
}

func TestProtectedCreateThatIsAppliedAfterItsCallerLeftIsUndone(t *testing.T) {
	o := testzk.Observer(t)
	for kind, opts := range kinds {
		c, p := through(t)
		under := parent(t)
		held := p.On(proxy.Match{Op: opOf(kind), Path: under}, proxy.Hold())
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() {
			_, err := c.Create(ctx, under+"/n-", nil, opts...)
			result <- err
		}()
		require.NoError(t, held.Wait(testzk.Context(t)))
		cancel()
		failed(t, <-result, framework.Unknown, context.Canceled)
		require.Empty(t, children(t, o, under))
		held.Release()
		swept(t, o, under, true)
	}
}

func TestUnprotectedCreateIsNotRepeated(t *testing.T) {
	c, p := through(t)
	under := parent(t)
	p.On(proxy.Match{Op: proxy.OpCreate, Path: under}, proxy.DropAfter())
	_, err := c.Create(testzk.Context(t), under+"/n-", nil, framework.Sequential())
	failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
	require.Equal(t, 1, p.Requests()[proxy.OpCreate])
	require.Len(t, children(t, testzk.Observer(t), under), 1)
}

func TestProtectedMultiIsAppliedOnceWhateverIsLost(t *testing.T) {
	o := testzk.Observer(t)
	for fault, action := range faults {
		c, p := through(t)
		under := parent(t)
		p.On(proxy.Match{Op: proxy.OpMulti}, action)
		results, err := c.Namespace(under[1:]).Multi(testzk.Context(t),
			framework.CreateOp("/n-", nil, framework.Protected(), framework.Ephemeral(), framework.Sequential()),
			framework.SetOp("/", []byte("set"), -1),
			framework.CreateOp("/s-", nil, framework.Sequential()),
			framework.CreateOp("/plain", nil))
		require.NoError(t, err, fault)
		require.Len(t, results, 4)
		require.Contains(t, children(t, o, under), path.Base(results[0].Path))
		require.Equal(t, "/", path.Dir(results[0].Path))
		require.Equal(t, "/plain", results[3].Path)
		data, stat, _ := observe(t, o, under)
		require.Equal(t, "set", string(data))
		require.Equal(t, int32(1), stat.Version, "applied once")
		require.Equal(t, int32(3), stat.NumChildren)
		if fault == "reply lost" {
			require.Nil(t, results[1].Stat, "nobody knows")
			require.Empty(t, results[2].Path, "nobody knows the number")
		} else {
			require.Equal(t, int32(1), results[1].Stat.Version)
		}
	}
}

func TestProtectedMultiThatGivesUpLeavesNothing(t *testing.T) {
	c, p := through(t, framework.WithRetry(retry.Never()))
	under := parent(t)
	p.On(proxy.Match{Op: proxy.OpMulti}, proxy.DropAfter())
	results, err := c.Multi(testzk.Context(t), framework.CreateOp(under+"/n-", nil, kinds["lock node"]...))
	failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
	require.Nil(t, results)
	swept(t, testzk.Observer(t), under, true)
}

func TestProtectedMultiThatIsAppliedAfterItsCallerLeftIsUndone(t *testing.T) {
	c, p := through(t)
	under := parent(t)
	held := p.On(proxy.Match{Op: proxy.OpMulti}, proxy.Hold())
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := c.Multi(ctx, framework.CreateOp(under+"/n-", nil, kinds["sequential"]...))
		result <- err
	}()
	require.NoError(t, held.Wait(testzk.Context(t)))
	cancel()
	failed(t, <-result, framework.Unknown, context.Canceled)
	held.Release()
	swept(t, testzk.Observer(t), under, true)
}

// What has our GUID in its name and belongs to another session is as good as gone.
func TestNodeOfAnotherSessionIsNotTakenForOurs(t *testing.T) {
	p, o := testzk.Proxy(t), testzk.Observer(t)
	under := parent(t)
	var decoy string
	c := testzk.Connected(t, p.Addr(), framework.WithACL(func(full string) []zk.ACL {
		var err error
		decoy, err = o.Create(full, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		return nil
	}))
	p.On(proxy.Match{Op: proxy.OpCreate, Path: under}, proxy.DropBefore())
	made, err := c.Create(testzk.Context(t), under+"/n-", nil, kinds["lock node"]...)
	require.NoError(t, err)
	require.NotEqual(t, decoy, made)
	_, stat, there := observe(t, o, made)
	require.True(t, there)
	require.Equal(t, session(t, c).ID(), stat.EphemeralOwner)
}

// The first attempt ends with its session, or a while later; the next one found or made the node, which belongs to the caller.
func TestNodeThatWasHandedOverInTheNextSessionIsNotSwept(t *testing.T) {
	for fault, row := range map[string]struct {
		action proxy.Action
		deaf   bool
	}{
		"request held": {proxy.Hold(), false},
		"reply held":   {proxy.Pass(), true},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			c, p := through(t, testzk.Mortal(), framework.WithRetry(retry.Forever(50*time.Millisecond)))
			o, under := testzk.Observer(t), parent(t)
			lost := session(t, c).Done()
			quiet := chatter(t, c, o)
			defer quiet()
			p.BlackholeReplies(row.deaf)
			sent := p.On(proxy.Match{Op: proxy.OpCreate, Path: under}, row.action)
			created, errs := make(chan string, 1), make(chan error, 1)
			go func() {
				made, err := c.Create(testzk.Context(t), under+"/n-", nil, framework.Protected(), framework.Sequential())
				created <- made
				errs <- err
			}()
			require.NoError(t, sent.Wait(testzk.Context(t)))
			closes(t, lost, "the session is lost")
			p.BlackholeReplies(false)
			made := path.Base(<-created)
			require.NoError(t, <-errs)
			require.Equal(t, []string{made}, children(t, o, under), "created once")
			testzk.Eventually(t, func() bool { return p.Connections() == 1 }, "the connection of before never ends")
			for range 200 { // a sweep takes four requests
				require.NoError(t, c.Sync(testzk.Context(t), under))
			}
			require.Equal(t, []string{made}, children(t, o, under), "deleted behind its owner's back")
		})
	}
}

// chatter has the server talk to the client without being asked, so that the driver goes on listening when nothing is answered
// any more.
func chatter(t testing.TB, c *framework.Client, o *zk.Conn) (stop func()) {
	t.Helper()
	under, stopped := parent(t), make(chan struct{})
	name := func(i int) string { return fmt.Sprintf("%s/%d", under, i) }
	const events = 40
	for i := range events {
		_, _, err := c.ExistsW(testzk.Context(t), name(i))
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for i := range events {
			select {
			case <-stopped:
				return
			case <-time.After(500 * time.Millisecond): // for longer than the client takes to lose its session
				_ = create(o, name(i))
			}
		}
	})
	return func() { close(stopped); all.Wait() }
}
