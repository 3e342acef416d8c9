package zktest_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// A follower that learns of several transactions at once still goes from one to the next: who waits for one of them is answered in between.
func TestFollowerAnswersBetweenTransactions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/watched", nil))
		f := srv.Follower(0)
		first := greet(t, dialRaw(t, srv.Client("first"), f.MemAddr()), newcomer)
		second := greet(t, dialRaw(t, srv.Client("second"), f.MemAddr()), newcomer)
		for _, c := range []*raw{first, second} {
			c.send(t, 1, rawzk.GetData("/watched", true))
			c.hears(t, 1)
		}
		f.Freeze()
		first.send(t, 2, makes("/first"))
		synctest.Wait()
		require.NoError(t, srv.Set("/watched", []byte("changed")))
		second.send(t, 2, makes("/second"))
		synctest.Wait()
		f.Thaw()
		one, change, other := zxidOf(t, srv, "/first"), zxidOf(t, srv, "/watched"), zxidOf(t, srv, "/second")
		require.Equal(t, []int64{one + 1, one + 2}, []int64{change, other})
		require.Equal(t, one, first.hears(t, 2).Zxid, "its own transaction, not the last")
		first.hears(t, -1)
		second.hears(t, -1)
		require.Equal(t, other, second.hears(t, 2).Zxid)
	})
}

// zxidOf is the transaction that last changed a node's data.
func zxidOf(t *testing.T, srv *zktest.Server, path string) int64 {
	t.Helper()
	stat, err := srv.Stat(path)
	require.NoError(t, err)
	return stat.Mzxid
}

func TestFollowersKnowOfASequenceThatWasSet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/q", nil))
		f := srv.Follower(0)
		conn := connectTo(t, f.MemAddr(), srv.Client("a"))
		require.NoError(t, srv.SetSequence("/q", 1000))
		requireSameStat(t, srv, conn, "/q")
		path, err := conn.Create("/q/n-", nil, zk.FlagSequence, open)
		require.NoError(t, err)
		require.Equal(t, "/q/n-0000001000", path)
		requireSameStat(t, srv, conn, "/q")
	})
}

// requireSameStat compares what the leader says of a node's children with what a client is told.
func requireSameStat(t *testing.T, srv *zktest.Server, conn *zk.Conn, path string) {
	t.Helper()
	want, err := srv.Stat(path)
	require.NoError(t, err)
	_, got, err := conn.Get(path)
	require.NoError(t, err)
	require.Equal(t, want.Cversion, got.Cversion)
	require.Equal(t, want.NumChildren, got.NumChildren)
}
