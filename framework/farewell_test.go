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
)

// The driver is still writing requests when the servers confirm the session's end, and there are no servers any more after that.
func TestCloseReturnsThoughServersGoAwayOnceTheEndIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Client("a")
		var full atomic.Bool
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(stallReads(client, &full)))
		full.Store(true)
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
			t.Error("Close hangs")
			<-done
		}
		require.Less(t, time.Since(begun), soon)
		require.Empty(t, srv.Sessions(), "the end was confirmed")
		reading.Wait()
	})
}

// stallReads dials connections that take no reads while full, as if their buffer were full.
func stallReads(client *zktest.Client, full *atomic.Bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := client.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &stallingConn{Conn: nc, full: full, gone: make(chan struct{})}, nil
	}
}

type stallingConn struct {
	net.Conn
	full *atomic.Bool
	gone chan struct{} // closed by Close
	once sync.Once
}

func (c *stallingConn) Write(b []byte) (int, error) {
	if c.full.Load() && len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == uint32(zktest.OpGetData) {
		<-c.gone
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *stallingConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

func TestErrorIsNoConfirmationOfTheSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		failed := srv.On(zktest.Match{Op: zktest.OpCloseSession}, zktest.Fail(zktest.OperationTimeout))
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		require.NoError(t, c.Close())
		require.Equal(t, 1, failed.Hits())
		require.Empty(t, srv.Sessions())
	})
}
