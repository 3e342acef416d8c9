package zktest_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

const (
	watchesEach   = 10
	sharedPath    = "/shared"
	capacityLimit = 1 << 30   // bytes
	silentFor     = time.Hour // longer than the test on a busy machine
)

// crowd returns the number of simultaneous sessions. The race detector fails at some 8,000
// goroutines, and each session has two.
func crowd() int {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return 2_000
	}
	return 10_000
}

// Ten thousand sessions with a hundred thousand watches take less than 1 GiB, including the clients
// and the test. All of them get the event of a change. When they have ended, their memory is
// released.
func TestServerHasRoomForManySessionsAndWatches(t *testing.T) {
	srv := zktest.Start(t)
	require.NoError(t, srv.Create(sharedPath, nil))
	before := memory()
	clients := make([]*rawzk.Conn, crowd())
	for i := range clients {
		clients[i] = enter(t, srv, i)
	}
	full := memory()
	require.Len(t, srv.Sessions(), len(clients))
	require.Equal(t, watchesEach*len(clients), watchCount(t, srv))

	require.NoError(t, srv.Set(sharedPath, []byte("news")))
	for i, c := range clients {
		requireEvent(t, i, c)
	}
	require.Equal(t, (watchesEach-1)*len(clients), watchCount(t, srv))

	leave(t, srv, clients)
	clients = nil
	require.Zero(t, watchCount(t, srv))
	require.Empty(t, srv.Sessions())
	eventually(t, "no connection is served any more", func() bool { return !serves() })
	after := memory()

	t.Logf("%d sessions with %d watches each: %d MiB in use and %d MiB taken from the system; "+
		"before %d MiB in use, afterwards %d MiB",
		crowd(), watchesEach, full.used>>20, full.taken>>20, before.used>>20, after.used>>20)
	require.Less(t, full.taken, int64(capacityLimit))
	require.Less(t, after.used-before.used, (full.used-before.used)/4, "the memory is released")
}

// usage is in bytes. taken includes memory in use, garbage, and the runtime's own memory.
type usage struct{ used, taken int64 }

func memory() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{int64(m.HeapAlloc + m.StackInuse), int64(m.Sys)}
}

// enter opens a session that watches the shared node and some of its own, which do not exist.
func enter(t *testing.T, srv *zktest.Server, number int) *rawzk.Conn {
	t.Helper()
	nc, err := srv.DialContext(context.Background(), "tcp", srv.MemAddr())
	require.NoError(t, err)
	c := rawzk.NewConn(nc)
	hello := rawzk.Connect{Timeout: int32(silentFor.Milliseconds()), Password: make([]byte, 16)}
	require.NoError(t, c.SendFrame(hello.Encode()))
	frame, err := c.ReadFrame(enough)
	require.NoError(t, err)
	connected, err := rawzk.DecodeConnected(frame)
	require.NoError(t, err)
	require.NotZero(t, connected.Session)
	for i := range watchesEach {
		path := fmt.Sprintf("/client-%d/watch-%d", number, i)
		if i == 0 {
			path = sharedPath
		}
		require.NoError(t, c.Send(int32(i), rawzk.Exists(path, true)))
	}
	for i := range watchesEach {
		require.EqualValues(t, i, nextHeader(t, c).Xid)
	}
	return c
}

func nextHeader(t *testing.T, c *rawzk.Conn) rawzk.Header {
	t.Helper()
	frame, err := c.ReadFrame(enough)
	require.NoError(t, err)
	return rawzk.Decode(frame).Header()
}

// requireEvent reads a frame that must be the event of the shared node.
func requireEvent(t *testing.T, number int, c *rawzk.Conn) {
	t.Helper()
	frame, err := c.ReadFrame(enough)
	require.NoError(t, err, "client %d", number)
	d := rawzk.Decode(frame)
	require.EqualValues(t, -1, d.Header().Xid, "client %d", number)
	const dataChanged, inSync = 3, 3
	require.EqualValues(t, dataChanged, d.Int())
	require.EqualValues(t, inSync, d.Int())
	require.Equal(t, sharedPath, d.Str())
	require.NoError(t, d.Err())
}

// leave closes the first half of the sessions. The others expire.
func leave(t *testing.T, srv *zktest.Server, clients []*rawzk.Conn) {
	t.Helper()
	half := len(clients) / 2
	for _, c := range clients[:half] {
		require.NoError(t, c.Send(1, rawzk.CloseSession()))
		require.Zero(t, nextHeader(t, c).Err)
	}
	require.Len(t, srv.Sessions(), len(clients)-half)
	srv.Advance(2 * silentFor)
	for _, c := range clients {
		_, err := c.ReadFrame(enough)
		require.ErrorIs(t, err, rawzk.ErrClosed)
		require.NoError(t, c.Close())
	}
}

// watchCount returns the server's number of watches.
func watchCount(t *testing.T, srv *zktest.Server) (count int) {
	t.Helper()
	answer, err := srv.Command("mntr")
	require.NoError(t, err)
	_, rest, found := strings.Cut(answer, "zk_watch_count")
	require.True(t, found, "%s", answer)
	_, err = fmt.Sscan(rest, &count)
	require.NoError(t, err)
	return count
}

// serves reports whether a goroutine of a server's connection is left.
func serves() bool {
	var all strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	return strings.Contains(all.String(), "zktest.(*conn)")
}
