package framework_test

import (
	"context"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
)

// watchers are the methods that set a watch, by the kind of the watch.
var watchers = map[string]func(ctx context.Context, o operations, path string) (*framework.Watch, error){
	"data": func(ctx context.Context, o operations, path string) (*framework.Watch, error) {
		_, _, w, err := o.GetW(ctx, path)
		return w, err
	},
	"exists": func(ctx context.Context, o operations, path string) (*framework.Watch, error) {
		_, w, err := o.ExistsW(ctx, path)
		return w, err
	},
	"children": func(ctx context.Context, o operations, path string) (*framework.Watch, error) {
		_, _, w, err := o.ChildrenW(ctx, path)
		return w, err
	},
}

// changes are changes of a node by another client, and the events of the node's watches.
var changes = map[string]struct {
	missing bool // the node does not exist before
	do      func(o *testzk.Conn, path string) error
	events  map[string]zk.EventType
}{
	"set": {
		do:     func(o *testzk.Conn, path string) error { _, err := o.Set(path, []byte("x"), -1); return err },
		events: map[string]zk.EventType{"data": zk.EventNodeDataChanged, "exists": zk.EventNodeDataChanged},
	},
	"delete": {
		do: func(o *testzk.Conn, path string) error { return o.Delete(path, -1) },
		events: map[string]zk.EventType{
			"data": zk.EventNodeDeleted, "exists": zk.EventNodeDeleted, "children": zk.EventNodeDeleted,
		},
	},
	"create a child": {
		do:     func(o *testzk.Conn, path string) error { return create(o, path+"/child") },
		events: map[string]zk.EventType{"children": zk.EventNodeChildrenChanged},
	},
	"create": {
		missing: true,
		do:      create,
		events:  map[string]zk.EventType{"exists": zk.EventNodeCreated},
	},
	"replace": {
		do: func(o *testzk.Conn, path string) error {
			if err := o.Delete(path, -1); err != nil {
				return err
			}
			return create(o, path)
		},
		events: map[string]zk.EventType{
			"data": zk.EventNodeDataChanged, "exists": zk.EventNodeDataChanged, "children": zk.EventNodeChildrenChanged,
		},
	},
}

func create(o *testzk.Conn, path string) error {
	_, err := o.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

// watchAll sets all watches that a node can have and returns them by name.
func watchAll(t testing.TB, c *framework.Client, path string, missing bool) map[string]*framework.Watch {
	t.Helper()
	testzk.Everywhere(t) // the node may have been created through another server
	all := map[string]*framework.Watch{}
	for name, watch := range watchers {
		w, err := watch(testzk.Context(t), c, path)
		if missing && name != "exists" {
			failed(t, err, framework.NotApplied, zk.ErrNoNode)
			require.Nil(t, w)
			continue
		}
		require.NoError(t, err)
		require.Zero(t, w.Event(), "an event before the watch has fired")
		all[name] = w
	}
	return all
}

func TestWatchesFireForTheirChanges(t *testing.T) {
	c, o := testzk.Connected(t, testzk.Connect()), testzk.Observer(t)
	for name, change := range changes {
		if name == "replace" {
			continue // two changes if the client is connected
		}
		path := parent(t) + "/n"
		if !change.missing {
			require.NoError(t, create(o, path))
			require.NoError(t, c.Sync(testzk.Context(t), path))
		}
		all := watchAll(t, c, path, change.missing)
		require.NoError(t, change.do(o, path))
		requireEvents(t, c, all, change.events, name)
	}
}

// requireEvents checks that the wanted watches fire, and that no others do.
func requireEvents(
	t testing.TB, c *framework.Client, all map[string]*framework.Watch, want map[string]zk.EventType, change string,
) {
	t.Helper()
	for name, w := range all {
		if kind, fires := want[name]; fires {
			closes(t, w.Fired(), "the %s watch after %s", name, change)
			require.Equal(t, kind, w.Event(), "the %s watch after %s", name, change)
		}
	}
	require.NoError(t, c.Sync(testzk.Context(t), "/"))
	for name, w := range all {
		if _, fires := want[name]; !fires {
			require.Zero(t, w.Event(), "the %s watch after %s", name, change)
		}
	}
}

func TestWatchesFireForChangesWhileDisconnected(t *testing.T) {
	for _, silent := range []bool{false, true} { // the server sends no event for the change
		o := testzk.Observer(t)
		for name, change := range changes {
			path, s := parent(t)+"/n", &requestFilter{silence: silent}
			c, p, states := traced(t, s.dialer())
			if !change.missing {
				require.NoError(t, create(o, path))
				require.NoError(t, c.Sync(testzk.Context(t), path))
			}
			all := watchAll(t, c, path, change.missing)
			require.NoError(t, p.Refuse(true))
			states.await(t, framework.Connected, framework.Suspended)
			require.NoError(t, change.do(o, path))
			testzk.Everywhere(t)
			require.NoError(t, p.Refuse(false))
			states.await(t, framework.Connected, framework.Suspended, framework.Reconnected)
			requireEvents(t, c, all, unspecified(change.events), name+" while disconnected")
			require.NoError(t, c.Close())
		}
	}
}

// unspecified returns the events of changes while disconnected: the client does not learn which
// changes there were.
func unspecified(want map[string]zk.EventType) map[string]zk.EventType {
	all := map[string]zk.EventType{}
	for name := range want {
		all[name] = zk.EventNotWatching
	}
	return all
}

func TestWatchesStillFireAfterReconnects(t *testing.T) {
	c, p, states := traced(t)
	o, path := testzk.Observer(t), parent(t)
	all := watchAll(t, c, path, false)
	want := []framework.State{framework.Connected}
	for range 3 {
		p.DropConnections()
		want = append(want, framework.Suspended, framework.Reconnected)
		states.await(t, want...)
	}
	for name, w := range all {
		require.Zero(t, w.Event(), "the %s watch fired without a change", name)
	}
	require.NoError(t, changes["create a child"].do(o, path))
	require.NoError(t, changes["set"].do(o, path))
	for name, w := range all {
		closes(t, w.Fired(), "the %s watch", name)
	}
}

func TestWatchIsUnbrokenUntilItFiresOrTheConnectionIsLost(t *testing.T) {
	c, p, states := traced(t)
	o, path := testzk.Observer(t), parent(t)
	fired := watchAll(t, c, path, false)
	for name, w := range fired {
		require.True(t, bridge.OfWatch(w).Unbroken(), name)
	}
	require.NoError(t, changes["create a child"].do(o, path))
	require.NoError(t, changes["set"].do(o, path))
	for name, w := range fired {
		closes(t, w.Fired(), "the %s watch", name)
		require.False(t, bridge.OfWatch(w).Unbroken(), name)
	}
	all := watchAll(t, c, path, false)
	p.DropConnections()
	states.await(t, framework.Connected, framework.Suspended, framework.Reconnected)
	for name, w := range all {
		require.Zero(t, w.Event(), "the %s watch fired without a change", name)
		require.False(t, bridge.OfWatch(w).Unbroken(), name)
	}
	other := parent(t)
	require.NoError(t, c.Sync(testzk.Context(t), other))
	for name, w := range watchAll(t, c, other, false) {
		require.True(t, bridge.OfWatch(w).Unbroken(), "the %s watch was set after the reconnect", name)
	}
}

func TestWatchesFireAtTheEndOfTheSession(t *testing.T) {
	c, _ := proxied(t)
	path := parent(t)
	all := watchAll(t, c, path, false)
	s := session(t, c)
	require.NoError(t, c.Close())
	for name, w := range all {
		closes(t, w.Fired(), "the %s watch", name)
		require.Equal(t, zk.EventNotWatching, w.Event())
	}
	_, _, w, err := s.GetW(testzk.Context(t), path)
	require.ErrorIs(t, err, framework.ErrClosed)
	require.Nil(t, w)
}

func TestNodeThatExistsIsNeverReportedDeleted(t *testing.T) {
	t.Parallel()
	c, p := proxied(t)
	o, path := testzk.Observer(t), parent(t)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = o.Set(path, nil, -1)
			}
		}
	})
	for i := range 100 {
		if i%10 == 0 {
			p.DropConnections()
		}
		for name, watch := range watchers {
			if name == "children" {
				continue
			}
			w, err := watch(testzk.Context(t), c, path)
			require.NoError(t, err)
			closes(t, w.Fired(), "a watch on a node that changes all the time")
			require.NotEqual(t, zk.EventNodeDeleted, w.Event())
		}
	}
	close(stop)
	writer.Wait()
}
