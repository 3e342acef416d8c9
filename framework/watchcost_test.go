package framework_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/fault"
)

// requestFilter counts requests before they are written. It can spoil requests that set watches
// again.
type requestFilter struct {
	mu      sync.Mutex
	watches int // requests with a watch
	reads   int // requests with or without a watch
	silence bool
}

func (s *requestFilter) dialer() framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &filteredConn{conn, s.pass}, nil
	})
}

func (s *requestFilter) pass(frame []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch fault.Op(op(frame)) {
	case fault.OpExists, fault.OpGetData, fault.OpGetChildren2:
		s.reads++
		s.watches += int(frame[len(frame)-1])
	case fault.OpSetWatches:
		if s.silence { // as if the client had seen everything up to a distant zxid
			frame = append([]byte(nil), frame...)
			binary.BigEndian.PutUint64(frame[12:], 1<<62)
		}
	}
	return frame
}

func (s *requestFilter) count() (reads, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.watches
}

func TestCallersThatWatchTheSameShareOneWatch(t *testing.T) {
	s := &requestFilter{}
	c, _ := proxied(t, s.dialer())
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
		require.Equal(t, 1, now-before, "requests with a watch: %s", name)
	}
}

func TestFiredWatchIsSetAgain(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx, path := testzk.Context(t), parent(t)
	for i := range 20 {
		_, stat, w, err := c.GetW(ctx, path)
		require.NoError(t, err)
		require.Equal(t, int32(i), stat.Version)
		_, err = c.Set(ctx, path, nil, -1)
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDataChanged, w.Event(), "a watch fires before a write of the same client returns")
	}
}

func TestAbandonedWatchesAreOneWatchOnTheServer(t *testing.T) {
	const abandoned = 10_000
	s := &requestFilter{}
	c, p := proxied(t, s.dialer(), framework.WithSessionTimeout(time.Minute)) // the watches of one session are counted
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
	require.LessOrEqual(t, watches, 20, "want a watch only in the first requests")
	require.Equal(t, 1, strings.Count(command(t, "wchp"), path+"\n"), "paths watched on the server")

	// A watch is kept even if the caller has left before the answer.
	other := parent(t)
	held := p.On(fault.Match{Op: fault.OpGetData, Path: other}, fault.Hold())
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { _, _, _, err := c.GetW(ctx, other); result <- err }()
	require.NoError(t, held.Wait(testzk.Context(t)))
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	_, before := s.count()
	held.Release()
	require.NoError(t, c.Sync(testzk.Context(t), other))
	testzk.Eventually(t, func() bool { return framework.Armed(session(t, c)) == 2 }, "the watch was not kept")
	_, _, w, err := c.GetW(testzk.Context(t), other)
	require.NoError(t, err)
	_, after := s.count()
	require.Equal(t, before, after, "the watch was set again")
	require.NoError(t, changes["set"].do(testzk.Observer(t), other))
	closes(t, w.Fired(), "the watch fires")
}

// command sends a four-letter word to the first server and returns the answer.
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

func TestWatchesThatFiredOrFailedCostNothing(t *testing.T) {
	c, o := testzk.Connected(t, testzk.Connect()), testzk.Observer(t)
	path := parent(t)
	all := watchAll(t, c, path, false)
	watchAll(t, c, path+"/missing", true)
	s := session(t, c)
	require.Equal(t, 4, framework.Watched(s))
	require.NoError(t, create(o, path+"/missing"))
	require.NoError(t, o.Delete(path+"/missing", -1))
	require.NoError(t, o.Delete(path, -1))
	for _, w := range all {
		closes(t, w.Fired(), "the watch fires")
	}
	testzk.Eventually(t, func() bool { return framework.Watched(s) == 0 }, "watches are left in the table")
}
