package framework_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/proxy"
)

// tap looks at requests as they leave, and can spoil those that set watches again.
type tap struct {
	mu      sync.Mutex
	watches int // requests with a watch
	reads   int // requests that could have had one
	silence bool
}

func (s *tap) dialer() framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tapped{Conn: conn, tap: s}, nil
	})
}

type tapped struct {
	net.Conn
	tap *tap
}

// Write is called with one whole frame at a time.
func (c *tapped) Write(frame []byte) (int, error) { return c.Conn.Write(c.tap.pass(frame)) }

func (s *tap) pass(frame []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch proxy.Op(int32(binary.BigEndian.Uint32(frame[8:]))) {
	case proxy.OpExists, proxy.OpGetData, proxy.OpGetChildren2:
		s.reads++
		s.watches += int(frame[len(frame)-1])
	case proxy.OpSetWatches:
		if s.silence { // as if everything up to some distant future had been seen
			frame = append([]byte(nil), frame...)
			binary.BigEndian.PutUint64(frame[12:], 1<<62)
		}
	}
	return frame
}

func (s *tap) count() (reads, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.watches
}

// watchers are the ways to watch.
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

// changes are what others may do to a node, and what the watches on it hear of that.
var changes = map[string]struct {
	missing bool // the node is not there before
	do      func(o *zk.Conn, path string) error
	heard   map[string]zk.EventType
}{
	"set": {
		do:    func(o *zk.Conn, path string) error { _, err := o.Set(path, []byte("x"), -1); return err },
		heard: map[string]zk.EventType{"data": zk.EventNodeDataChanged, "exists": zk.EventNodeDataChanged},
	},
	"delete": {
		do:    func(o *zk.Conn, path string) error { return o.Delete(path, -1) },
		heard: map[string]zk.EventType{"data": zk.EventNodeDeleted, "exists": zk.EventNodeDeleted, "children": zk.EventNodeDeleted},
	},
	"create a child": {
		do:    func(o *zk.Conn, path string) error { return create(o, path+"/child") },
		heard: map[string]zk.EventType{"children": zk.EventNodeChildrenChanged},
	},
	"create": {
		missing: true,
		do:      create,
		heard:   map[string]zk.EventType{"exists": zk.EventNodeCreated},
	},
	"replace": {
		do: func(o *zk.Conn, path string) error {
			if err := o.Delete(path, -1); err != nil {
				return err
			}
			return create(o, path)
		},
		heard: map[string]zk.EventType{"data": zk.EventNodeDataChanged, "exists": zk.EventNodeDataChanged, "children": zk.EventNodeChildrenChanged},
	},
}

func create(o *zk.Conn, path string) error {
	_, err := o.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

// watchAll sets all watches that a node can have, and returns them by name.
func watchAll(t testing.TB, c *framework.Client, path string, missing bool) map[string]*framework.Watch {
	t.Helper()
	all := map[string]*framework.Watch{}
	for name, watch := range watchers {
		w, err := watch(testzk.Context(t), c, path)
		if missing && name != "exists" {
			failed(t, err, framework.NotApplied, zk.ErrNoNode)
			require.Nil(t, w)
			continue
		}
		require.NoError(t, err)
		require.Zero(t, w.Event(), "before it has fired")
		all[name] = w
	}
	return all
}

func TestWatchesFireForWhatConcernsThem(t *testing.T) {
	c, o := testzk.Connected(t, testzk.Connect()), testzk.Observer(t)
	for name, change := range changes {
		if name == "replace" {
			continue // is two changes while there is a connection
		}
		path := parent(t) + "/n"
		if !change.missing {
			require.NoError(t, create(o, path))
			require.NoError(t, c.Sync(testzk.Context(t), path))
		}
		all := watchAll(t, c, path, change.missing)
		require.NoError(t, change.do(o, path))
		heard(t, c, all, change.heard, name)
	}
}

// heard checks that those who should hear of a change do, and that nobody else does.
func heard(t testing.TB, c *framework.Client, all map[string]*framework.Watch, want map[string]zk.EventType, change string) {
	t.Helper()
	for name, w := range all {
		if kind, fires := want[name]; fires {
			closes(t, w.Fired(), "the watch for %s hears of %s", name, change)
			require.Equal(t, kind, w.Event(), "the watch for %s hears of %s", name, change)
		}
	}
	require.NoError(t, c.Sync(testzk.Context(t), "/"))
	for name, w := range all {
		if _, fires := want[name]; !fires {
			require.Zero(t, w.Event(), "the watch for %s hears of %s", name, change)
		}
	}
}

func TestWatchesFireForWhatHappenedWhileAway(t *testing.T) {
	for _, silent := range []bool{false, true} { // the server says nothing of it
		o := testzk.Observer(t)
		for name, change := range changes {
			path, s := parent(t)+"/n", &tap{silence: silent}
			c, p, states := traced(t, s.dialer())
			if !change.missing {
				require.NoError(t, create(o, path))
				require.NoError(t, c.Sync(testzk.Context(t), path))
			}
			all := watchAll(t, c, path, change.missing)
			require.NoError(t, p.Refuse(true))
			states.await(t, framework.Connected, framework.Suspended)
			require.NoError(t, change.do(o, path))
			require.NoError(t, p.Refuse(false))
			states.await(t, framework.Connected, framework.Suspended, framework.Reconnected)
			heard(t, c, all, unordered(change.heard), name+" while away")
			require.NoError(t, c.Close())
		}
	}
}

// unordered is what is heard of changes that happened while away: that there were some.
func unordered(want map[string]zk.EventType) map[string]zk.EventType {
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
		require.Zero(t, w.Event(), "nothing has happened to %s", name)
	}
	require.NoError(t, changes["create a child"].do(o, path))
	require.NoError(t, changes["set"].do(o, path))
	for name, w := range all {
		closes(t, w.Fired(), "the watch for %s fires", name)
	}
}

func TestWatchesFireAtTheEndOfTheSession(t *testing.T) {
	c, _ := through(t)
	path := parent(t)
	all := watchAll(t, c, path, false)
	s := session(t, c)
	require.NoError(t, c.Close())
	for name, w := range all {
		closes(t, w.Fired(), "the watch for %s fires", name)
		require.Equal(t, zk.EventNotWatching, w.Event())
	}
	_, _, w, err := s.GetW(testzk.Context(t), path)
	require.ErrorIs(t, err, framework.ErrClosed)
	require.Nil(t, w)
}

func TestOneWatchServesAllWhoWatchTheSame(t *testing.T) {
	s := &tap{}
	c, _ := through(t, s.dialer())
	path := parent(t)
	for name, watch := range watchers {
		reads, before := s.count()
		first, err := watch(testzk.Context(t), c, path)
		require.NoError(t, err)
		for range 10 {
			again, err := watch(testzk.Context(t), c, path)
			require.NoError(t, err)
			require.Same(t, first, again)
		}
		after, now := s.count()
		require.Equal(t, 11, after-reads, name)
		require.Equal(t, 1, now-before, "watches asked for: %s", name)
	}
}

func TestWatchThatHasFiredIsAskedForAgain(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx, path := testzk.Context(t), parent(t)
	for i := range 20 {
		_, stat, w, err := c.GetW(ctx, path)
		require.NoError(t, err)
		require.Equal(t, int32(i), stat.Version)
		_, err = c.Set(ctx, path, nil, -1)
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDataChanged, w.Event(), "a watch has fired before one's own write returns")
	}
}

func TestAbandonedWatchesCostOneOnTheServer(t *testing.T) {
	const abandoned = 10_000
	s := &tap{}
	c, p := through(t, s.dialer())
	path := parent(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range abandoned / 20 {
				if _, _, _, err := c.GetW(context.Background(), path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	reads, watches := s.count()
	require.Equal(t, abandoned, reads)
	require.LessOrEqual(t, watches, 20, "only those who came first")
	require.Equal(t, 1, strings.Count(command(t, "wchp"), path+"\n"), "paths watched on the server")

	// Those who leave before the answer is there do not lose the watch either.
	other := parent(t)
	held := p.On(proxy.Match{Op: proxy.OpGetData, Path: other}, proxy.Hold())
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { _, _, _, err := c.GetW(ctx, other); result <- err }()
	require.NoError(t, held.Wait(testzk.Context(t)))
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	_, before := s.count()
	held.Release()
	require.NoError(t, c.Sync(testzk.Context(t), other))
	testzk.Eventually(t, func() bool { return framework.Armed(session(t, c)) == 2 }, "the watch was forgotten")
	_, _, w, err := c.GetW(testzk.Context(t), other)
	require.NoError(t, err)
	_, after := s.count()
	require.Equal(t, before, after, "it is watched already")
	require.NoError(t, changes["set"].do(testzk.Observer(t), other))
	closes(t, w.Fired(), "the watch fires")
}

// command asks the first server.
func command(t testing.TB, word string) string {
	t.Helper()
	server, _, _ := strings.Cut(testzk.Connect(), ",")
	conn, err := net.Dial("tcp", server)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(word))
	require.NoError(t, err)
	var answer strings.Builder
	_, err = io.Copy(&answer, conn)
	require.NoError(t, err)
	return answer.String()
}

func TestNodeThatExistsIsNeverReportedDeleted(t *testing.T) {
	c, p := through(t)
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
			closes(t, w.Fired(), "a watch on a node that changes all the time fires")
			require.NotEqual(t, zk.EventNodeDeleted, w.Event())
		}
	}
	close(stop)
	writer.Wait()
}
