package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/listen"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Two goroutines tell of the loss of a connection and of the watch on the next one. If the loss is
// told last, it changes nothing: the cache would wait for a watch that is set already.
func TestLossThatIsToldLateIsIgnored(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		client := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		f := &follower{
			Cache: &Cache{client: client, current: make(chan struct{})}, ctx: t.Context(),
			inbox: listen.NewMailbox[func()](), jobs: map[string]*job{},
		}
		set := time.Now()
		s := &persistent{f: f}
		s.handle(framework.WatchEvent{Type: zk.EventNotWatching}, set)
		s.lost(set.Add(-time.Second))
		require.False(t, f.broken)
		s.lost(set.Add(time.Second))
		require.True(t, f.broken)
	})
}

// A watch that an earlier attempt has set may have been set again. What was lost after that is no loss of the
// watch that stays.
func TestWatchOfAnEarlierAttemptIsIgnored(t *testing.T) {
	c := &Cache{current: make(chan struct{})}
	f := &follower{Cache: c, inbox: listen.NewMailbox[func()]()}
	earlier := &persistent{f: f}
	f.source = &persistent{f: f}
	earlier.changed(framework.StateChange{State: framework.Suspended, At: time.Now()})
	handlers, _ := f.inbox.Take()
	require.Len(t, handlers, 1)
	handlers[0]()
	require.False(t, f.broken)
	f.source = earlier
	handlers[0]()
	require.True(t, f.broken)
}

// A read that was to be sent when the connection was lost is sent on the next one.
func TestReadThatWasNotSentIsNotForgotten(t *testing.T) {
	f := &follower{Cache: &Cache{}, broken: true}
	j := &job{path: "/a"}
	f.wantRead(j, bridge.ReadData)
	f.startReads()
	require.Equal(t, []*job{j}, f.queue)
	require.Empty(t, f.next)
}

// A small node does not keep the answer in memory that it shares with large ones.
func TestDataOfAReadThatSharesARequestIsACopy(t *testing.T) {
	together := []byte("small and large")
	a := partOf(framework.ReadResult{Data: together[:5]}, bridge.ReadData, 0)
	together[0] = 'S'
	require.Equal(t, "small", string(a.data))
	require.Nil(t, partOf(framework.ReadResult{}, bridge.ReadData, 0).data)
}

// The answer to one request is bounded, as far as the sizes are known.
func TestReadsThatShareARequestAreBounded(t *testing.T) {
	f := &follower{Cache: &Cache{tree: tree{entries: map[string]*entry{}}}, source: &persistent{}}
	add := func(stat zk.Stat, kind bridge.ReadKind) {
		at := fmt.Sprintf("/%d", len(f.next))
		f.tree.entries[at] = &entry{node: &Node{Path: at, Stat: stat}}
		f.wantRead(&job{path: at}, kind)
	}
	for range 100 {
		add(zk.Stat{DataLength: 10}, bridge.ReadData)
	}
	require.Equal(t, maxTogether, f.together())
	f.next = nil
	for range 20 {
		add(zk.Stat{DataLength: maxBytes / 10}, bridge.ReadData)
	}
	require.Equal(t, 10, f.together())
	f.next = nil
	for range 20 {
		add(zk.Stat{NumChildren: maxBytes / 32 / 2}, bridge.ReadChildren)
	}
	require.Equal(t, 2, f.together())
	f.next = nil
	add(zk.Stat{DataLength: 2 * maxBytes}, bridge.ReadData)
	require.Equal(t, 1, f.together())
}
