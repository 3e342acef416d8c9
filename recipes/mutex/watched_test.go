package mutex_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// A client that waits for a lock may have persistent watches of the lock and of each of its nodes.
// Neither the waiters nor the watches miss anything.
func TestLockAndPersistentWatchesOfOneClient(t *testing.T) {
	t.Run("servers", func(t *testing.T) { lockWatched(t, testzk.Connect()) })
	t.Run("3.8", func(t *testing.T) { lockWatched(t, zktest.Start(t, zktest.WithCompat(zktest.V38)).Addr()) })
	t.Run("3.9", func(t *testing.T) { lockWatched(t, zktest.Start(t).Addr()) })
}

func lockWatched(t *testing.T, servers string) {
	const clients, rounds = 3, 8
	path := testzk.Path(t)
	var running sync.WaitGroup
	var locks [clients]*mutex.Mutex
	var logs [clients]nodeLog
	for i := range clients {
		c := testzk.Connected(t, servers)
		logs[i].follow(t, c, path)
		var err error
		locks[i], err = mutex.New(c, path)
		require.NoError(t, err)
	}
	for _, mu := range locks {
		running.Go(func() {
			for range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), testzk.Patience*2/3) // before watches are checked
				hold, err := mu.Acquire(ctx)
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
				if err := hold.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for i := range logs {
		testzk.Eventually(t, func() bool { return logs[i].count(zk.EventNodeDeleted) == clients*rounds },
			"client %d misses deletions", i)
		require.Equal(t, clients*rounds, logs[i].count(zk.EventNodeCreated))
		require.Zero(t, logs[i].count(zk.EventNotWatching))
		testzk.Eventually(t, func() bool { return logs[i].left() == 0 }, "the watches of single nodes miss deletions")
	}
}

// nodeLog counts the events of a lock's nodes.
type nodeLog struct {
	mu     sync.Mutex
	counts map[zk.EventType]int
	nodes  map[string]*framework.PersistentWatch // of nodes that are not known to be deleted
	busy   int                                   // callbacks that make requests
}

// follow watches the nodes of a lock together, and each on its own.
func (l *nodeLog) follow(t *testing.T, c *framework.Client, path string) {
	l.counts, l.nodes = map[zk.EventType]int{}, map[string]*framework.PersistentWatch{}
	_, err := c.AddWatch(testzk.Context(t), path, framework.WatchTree, func(e framework.WatchEvent) {
		if e.Path == path {
			return
		}
		if l.add(e.Type); e.Type != zk.EventNodeCreated {
			return
		}
		defer l.leave()
		w, err := c.AddWatch(context.Background(), e.Path, framework.WatchNode, func(e framework.WatchEvent) {
			switch e.Type {
			case zk.EventNodeDeleted:
				l.deleted(e.Path)
			case zk.EventNotWatching: // the lock read the node while the watch was being set
				l.enter()
				defer l.leave()
				l.check(t, c, e.Path)
			}
		})
		if err != nil {
			t.Error(err)
			return
		}
		l.mu.Lock()
		l.nodes[e.Path] = w
		l.mu.Unlock()
		l.check(t, c, e.Path)
	})
	require.NoError(t, err)
}

// check registers the deletion of a node, if it may have happened before the watch was set.
func (l *nodeLog) check(t *testing.T, c *framework.Client, path string) {
	_, err := c.Exists(context.Background(), path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		l.deleted(path)
	case err != nil:
		t.Error(err)
	}
}

func (l *nodeLog) deleted(path string) {
	l.mu.Lock()
	w := l.nodes[path]
	delete(l.nodes, path)
	l.mu.Unlock()
	if w != nil {
		w.Stop()
	}
}

// add counts an event. After the creation of a node leave must be called.
func (l *nodeLog) add(kind zk.EventType) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts[kind]++; kind == zk.EventNodeCreated {
		l.busy++
	}
}

func (l *nodeLog) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy++
}

func (l *nodeLog) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
}

func (l *nodeLog) count(kind zk.EventType) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[kind]
}

// left returns how many nodes and callbacks have not ended.
func (l *nodeLog) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.nodes) + l.busy
}
