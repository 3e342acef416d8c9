package framework_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// Requests are pending when a server confirms the end of the session. After that no server can be
// reached.
func TestCloseReturnsIfServersFailAfterTheEndIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Client("a")
		var broken atomic.Bool
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(dropReads(client, &broken)))
		broken.Store(true)
		var reading sync.WaitGroup
		for range 3 {
			reading.Go(func() { _, _, _ = c.Get(context.Background(), "/") })
		}
		synctest.Wait()
		client.Refuse(true)
		begun := time.Now()
		done := make(chan struct{})
		go func() { defer close(done); _ = c.Close() }()
		select {
		case <-done:
		case <-time.After(time.Hour):
			client.Refuse(false)
			t.Error("Close does not return")
			<-done
		}
		require.Less(t, time.Since(begun), soon)
		require.Empty(t, srv.Sessions(), "the session is left on the server")
		reading.Wait()
	})
}

// dropReads returns a dialer. While broken is set, its connections drop requests for data.
func dropReads(client *zktest.Client, broken *atomic.Bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := client.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &filteredConn{nc, func(frame []byte) []byte {
			if broken.Load() && op(frame) == int32(fault.OpGetData) {
				return nil
			}
			return frame
		}}, nil
	}
}

// filteredConn is a connection that replaces each written frame by the result of filter.
type filteredConn struct {
	net.Conn
	filter func(frame []byte) []byte
}

// Write gets whole frames. The first frame of a connection has no operation.
func (c *filteredConn) Write(frames []byte) (int, error) {
	var out []byte
	for rest := frames; len(rest) > 0; {
		frame := rest[:4+binary.BigEndian.Uint32(rest)]
		out, rest = append(out, c.filter(frame)...), rest[len(frame):]
	}
	_, err := c.Conn.Write(out)
	return len(frames), err
}

func op(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame[8:])) }

func TestErrorDoesNotConfirmTheEndOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		failed := srv.On(fault.Match{Op: fault.OpCloseSession}, fault.Fail(zktest.OperationTimeout))
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		require.NoError(t, c.Close())
		require.Equal(t, 1, failed.Hits())
		require.Empty(t, srv.Sessions())
	})
}
