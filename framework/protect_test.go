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
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
)

// faults are the faults that lose the answer to a create.
var faults = map[string]fault.Action{
	"request lost":            fault.DropBefore(),
	"reply lost":              fault.DropAfter(),
	"request lost to a reset": fault.Reset(),
}

var kinds = map[string][]framework.CreateOption{
	"lock node":  {framework.Protected(), framework.Ephemeral(), framework.Sequential()},
	"ephemeral":  {framework.Protected(), framework.Ephemeral()},
	"sequential": {framework.Protected(), framework.Sequential()},
	"persistent": {framework.Protected()},
	"container":  {framework.Protected(), framework.Container()},
	"named":      {bridge.Named(), framework.Ephemeral()},
}

func opOf(kind string) fault.Op {
	if kind == "container" {
		return fault.OpCreateContainer
	}
	return fault.OpCreate
}

func TestProtectedCreateMakesOneNodeAfterALostRequestOrReply(t *testing.T) {
	t.Parallel()
	o := testzk.Observer(t)
	for what, action := range faults {
		for kind, opts := range kinds {
			for _, namespaced := range []bool{false, true} {
				c, p := proxied(t)
				under, name := parent(t), "/n-"
				view := c
				if namespaced {
					view = c.Namespace(under[1:])
				} else {
					name = under + name
				}
				syncs := p.On(fault.Match{Op: fault.OpMulti, Path: under, Times: fault.Always}, fault.Pass())
				rule := p.On(fault.Match{Op: opOf(kind), Path: under}, action)
				made, err := view.Create(testzk.Context(t), name, []byte("data"), opts...)
				require.NoError(t, err, "%s, %s", what, kind)
				require.Equal(t, 1, rule.Hits())
				require.Equal(t, path.Dir(name), path.Dir(made))
				require.Equal(t, []string{path.Base(made)}, children(t, o, under), "%s, %s", what, kind)
				data, _, there := observe(t, o, under+"/"+path.Base(made))
				require.True(t, there)
				require.Equal(t, "data", string(data))
				want := 2
				if what == "reply lost" {
					want = 1
				}
				require.Equal(t, want, p.Requests()[opOf(kind)], "creates sent: %s, %s", what, kind)
				require.Positive(t, syncs.Hits(), "no transaction before the list, although a server may be behind")
				require.NoError(t, c.Close())
			}
		}
	}
}

func TestFailedProtectedCreateLeavesNothing(t *testing.T) {
	o := testzk.Observer(t)
	for what, action := range faults {
		for kind, opts := range kinds {
			c, p := proxied(t, framework.WithRetry(retry.Never()))
			under := parent(t)
			rule := p.On(fault.Match{Op: opOf(kind), Path: under}, action)
			_, err := c.Namespace(under[1:]).Create(testzk.Context(t), "/n-", nil, opts...)
			failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
			require.Equal(t, 1, rule.Hits())
			awaitDeleted(t, o, under, what == "reply lost")
		}
	}
}

// awaitDeleted waits until a node below under has been deleted. created reports whether the node
// was created at all.
func awaitDeleted(t testing.TB, o *testzk.Conn, under string, created bool) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		_, stat, there := observe(t, o, under)
		return there && stat.NumChildren == 0 && (!created || stat.Cversion == 2)
	}, "a node is left below %s, or was not created", under)
}

func TestNodeOfAProtectedCreateAppliedAfterItsContextHasEndedIsDeleted(t *testing.T) {
	o := testzk.Observer(t)
	for kind, opts := range kinds {
		c, p := proxied(t)
		under := parent(t)
		held := p.On(fault.Match{Op: opOf(kind), Path: under}, fault.Hold())
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
		awaitDeleted(t, o, under, true)
	}
}

func TestUnprotectedCreateIsNotRepeated(t *testing.T) {
	c, p := proxied(t)
	under := parent(t)
	p.On(fault.Match{Op: fault.OpCreate, Path: under}, fault.DropAfter())
	_, err := c.Create(testzk.Context(t), under+"/n-", nil, framework.Sequential())
	failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
	require.Equal(t, 1, p.Requests()[fault.OpCreate])
	require.Len(t, children(t, testzk.Observer(t), under), 1)
}

func TestProtectedMultiIsAppliedOnceAfterALostRequestOrReply(t *testing.T) {
	o := testzk.Observer(t)
	for what, action := range faults {
		c, p := proxied(t)
		under := parent(t)
		p.On(fault.Match{Op: fault.OpMulti}, action)
		results, err := c.Namespace(under[1:]).Multi(testzk.Context(t),
			framework.CreateOp("/n-", nil, framework.Protected(), framework.Ephemeral(), framework.Sequential()),
			framework.SetOp("/", []byte("set"), -1),
			framework.CreateOp("/s-", nil, framework.Sequential()),
			framework.CreateOp("/plain", nil))
		require.NoError(t, err, what)
		require.Len(t, results, 4)
		require.Contains(t, children(t, o, under), path.Base(results[0].Path))
		require.Equal(t, "/", path.Dir(results[0].Path))
		require.Equal(t, "/plain", results[3].Path)
		data, stat, _ := observe(t, o, under)
		require.Equal(t, "set", string(data))
		require.Equal(t, int32(1), stat.Version, "applied once")
		require.Equal(t, int32(3), stat.NumChildren)
		if what == "reply lost" {
			require.Nil(t, results[1].Stat, "it is unknown")
			require.Empty(t, results[2].Path, "the number is unknown")
		} else {
			require.Equal(t, int32(1), results[1].Stat.Version)
		}
	}
}

func TestFailedProtectedMultiLeavesNothing(t *testing.T) {
	c, p := proxied(t, framework.WithRetry(retry.Never()))
	under := parent(t)
	p.On(fault.Match{Op: fault.OpMulti}, fault.DropAfter())
	results, err := c.Multi(testzk.Context(t), framework.CreateOp(under+"/n-", nil, kinds["lock node"]...))
	failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
	require.Nil(t, results)
	awaitDeleted(t, testzk.Observer(t), under, true)
}

func TestNodeOfAProtectedMultiAppliedAfterItsContextHasEndedIsDeleted(t *testing.T) {
	c, p := proxied(t)
	under := parent(t)
	held := p.On(fault.Match{Op: fault.OpMulti}, fault.Hold())
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
	awaitDeleted(t, testzk.Observer(t), under, true)
}

// A node with the client's GUID in its name that belongs to another session will be deleted with
// that session.
func TestProtectedCreateIgnoresANodeOfAnotherSession(t *testing.T) {
	p, o := testzk.Proxy(t), testzk.Observer(t)
	under := parent(t)
	var decoy string
	c := testzk.Connected(t, p.Addr(), framework.WithACL(func(full string) []zk.ACL {
		var err error
		decoy, err = o.Create(full, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		return zk.WorldACL(zk.PermAll)
	}))
	p.On(fault.Match{Op: fault.OpCreate, Path: under}, fault.DropBefore())
	made, err := c.Create(testzk.Context(t), under+"/n-", nil, kinds["lock node"]...)
	require.NoError(t, err)
	require.NotEqual(t, decoy, made)
	_, stat, there := observe(t, o, made)
	require.True(t, there)
	require.Equal(t, session(t, c).ID(), stat.EphemeralOwner)
}

// The first attempt ends with its session or later. The next attempt has found or created the node,
// and the node belongs to the caller.
func TestNodeReturnedInTheNextSessionIsNotDeleted(t *testing.T) {
	for what, row := range map[string]struct {
		action    fault.Action
		noReplies bool
	}{
		"request held": {fault.Hold(), false},
		"reply held":   {fault.Pass(), true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, p := proxied(t, testzk.Mortal(), framework.WithRetry(retry.Forever(50*time.Millisecond)))
			o, under := testzk.Observer(t), parent(t)
			lost := session(t, c).Done()
			quiet := sendEvents(t, c, o)
			defer quiet()
			p.BlackholeReplies(row.noReplies)
			sent := p.On(fault.Match{Op: fault.OpCreate, Path: under}, row.action)
			created, errs := make(chan string, 1), make(chan error, 1)
			go func() {
				made, err := c.Create(testzk.Context(t), under+"/n-", nil, kinds["sequential"]...)
				created <- made
				errs <- err
			}()
			require.NoError(t, sent.Wait(testzk.Context(t)))
			closes(t, lost, "the loss of the session")
			p.BlackholeReplies(false)
			made := path.Base(<-created)
			require.NoError(t, <-errs)
			require.Equal(t, []string{made}, children(t, o, under), "created once")
			testzk.Eventually(t, func() bool { return p.Connections() == 1 }, "the earlier connection does not end")
			for range 200 { // a cleanup takes four requests
				require.NoError(t, c.Sync(testzk.Context(t), under))
			}
			require.Equal(t, []string{made}, children(t, o, under), "the node of the caller was deleted")
		})
	}
}

// sendEvents has the server send events to the client, so that the client receives data although no
// request is answered.
func sendEvents(t testing.TB, c *framework.Client, o *testzk.Conn) (stop func()) {
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
