package zktest_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// A follower that learns of several transactions at once applies them one by one. A client that
// waits for one of them gets its answer before the next is applied.
func TestFollowerAnswersBetweenTransactions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/watched", nil))
		f := srv.Follower(0)
		first := greet(t, dialRaw(t, srv.Client("first"), f.MemAddr()), newSession)
		second := greet(t, dialRaw(t, srv.Client("second"), f.MemAddr()), newSession)
		for _, c := range []*raw{first, second} {
			c.send(t, 1, rawzk.GetData("/watched", true))
			c.receive(t, 1)
		}
		f.Freeze()
		first.send(t, 2, createOp("/first"))
		synctest.Wait()
		require.NoError(t, srv.Set("/watched", []byte("changed")))
		second.send(t, 2, createOp("/second"))
		synctest.Wait()
		f.Thaw()
		one, change, other := zxidOf(t, srv, "/first"), zxidOf(t, srv, "/watched"), zxidOf(t, srv, "/second")
		require.Equal(t, []int64{one + 1, one + 2}, []int64{change, other})
		require.Equal(t, one, first.receive(t, 2).Zxid, "its own transaction, not the last")
		first.receive(t, -1)
		second.receive(t, -1)
		require.Equal(t, other, second.receive(t, 2).Zxid)
	})
}

// zxidOf returns the transaction that last changed a node's data.
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

// requireSameStat compares the leader's Stat of a node's children with the client's.
func requireSameStat(t *testing.T, srv *zktest.Server, conn *zk.Conn, path string) {
	t.Helper()
	want, err := srv.Stat(path)
	require.NoError(t, err)
	_, got, err := conn.Get(path)
	require.NoError(t, err)
	require.Equal(t, want.Cversion, got.Cversion)
	require.Equal(t, want.NumChildren, got.NumChildren)
}
