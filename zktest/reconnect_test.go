package zktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

func TestSessionHasOneAlarmHoweverOftenItConnects(t *testing.T) {
	const connects, handshakesOver = 1000, 21 * time.Second
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		for range connects {
			require.NoError(t, c.Close())
			c = c.again(t, srv, "a")
		}
		time.Sleep(handshakesOver)
		require.Len(t, srv.Sessions(), 1)
		require.Equal(t, 1, zktest.Alarms(srv))
		time.Sleep(timeoutOfAll)
		require.Empty(t, srv.Sessions())
		require.Zero(t, zktest.Alarms(srv))
	}, zktest.WithSessionTimeouts(timeoutOfAll, timeoutOfAll))
}

// timeoutOfAll is longer than the server waits for handshakes.
const timeoutOfAll = time.Minute

func TestNoSessionIDIsGivenTwice(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		given := map[int64]bool{}
		began := time.Now()
		for range 3 {
			for range 3 {
				id := enterRaw(t, srv, "a").session
				require.False(t, given[id], "0x%x is given again", id)
				given[id] = true
			}
			srv.Stop()
			require.NoError(t, srv.Wipe())
			require.NoError(t, srv.Start())
		}
		require.Zero(t, time.Since(began), "a later clock would hide it")
	})
}

func TestWipedSessionIsNotTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		old := enterRaw(t, srv, "a")
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.NoError(t, srv.Start())
		fresh := enterRaw(t, srv, "b")
		hello := newSession
		hello.Session, hello.Password = old.session, old.password
		require.Zero(t, greet(t, dialRaw(t, srv.Client("a"), srv.MemAddr()), hello).session)
		fresh.send(t, 1, createOp("/x"))
		require.Zero(t, fresh.receive(t, 1).Err, "its session is still its own")
	})
}
