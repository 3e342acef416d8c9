package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// A server finds the requests of its clients by session and number in the stream of transactions. So
// requests of a session with the same number on two connections get each other's answers.
func TestTransactionOfTheSameNumberAnswersTheFirstRequestThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/set", nil))
		f := srv.Follower(0)
		old := greet(t, dialRaw(t, srv.Client("old"), f.MemAddr()), newSession)
		f.HoldRequests()
		for i, o := range []rawzk.Op{
			createOp("/first"), rawzk.SetData("/set", nil, -1), rawzk.Delete("/set", -1), rawzk.Sync("/"),
		} {
			old.send(t, int32(i+1), o)
		}
		synctest.Wait()
		moved := old.again(t, srv, "moved")
		for _, xid := range []int32{2, 1} { // the first that waits has number 1
			moved.send(t, xid, createOp("/other-"+string('0'+xid)))
			require.Zero(t, moved.receive(t, xid).Err)
		}
		require.Equal(t, "/other-1", createdPath(t, old, 1))
		moved.send(t, 2, rawzk.GetChildren("/", false))
		moved.receive(t, 2)
		old.receiveNothing(t, time.Second) // a read is no transaction

		moved.send(t, 2, createOp("/another"))
		moved.receive(t, 2)
		require.EqualValues(t, zktest.MarshallingError, old.receive(t, 2).Err, "a create has no Stat for a set")
		for xid := int32(3); xid <= 4; xid++ {
			moved.send(t, xid, createOp("/other-"+string('0'+xid)))
			moved.receive(t, xid)
			require.Zero(t, old.receive(t, xid).Err)
		}
		require.True(t, srv.Exists("/set"), "the delete waits")

		back := greet(t, dialRaw(t, srv.Client("back"), f.MemAddr()), resumed(old))
		f.ReleaseRequests()
		back.send(t, 1, rawzk.Sync("/"))
		back.receive(t, 1)
		require.True(t, srv.Exists("/first"), "what waited is carried out all the same")
		require.False(t, srv.Exists("/set"))
		require.NoError(t, srv.Create("/more", nil))
		back.send(t, 2, rawzk.Exists("/more", false))
		back.receive(t, 2)
	})
}

// createdPath returns the path in the answer to a create.
func createdPath(t *testing.T, r *raw, xid int32) string {
	t.Helper()
	frame, err := r.ReadFrame(enough)
	require.NoError(t, err)
	d := rawzk.Decode(frame)
	require.Equal(t, xid, d.Header().Xid)
	return d.Str()
}
