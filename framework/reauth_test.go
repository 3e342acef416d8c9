package framework_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// Connections fail between the connect reply of the server and the credentials, many times.
func TestConnectionsThatFailBeforeTheCredentialsAreSent(t *testing.T) {
	const failures = 100
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		d := &testzk.Frail{Dial: srv.Client("a").DialContext, Break: reset(srv.Client("a"))}
		c := testzk.Connected(t, srv.MemAddr(), framework.WithAuth("digest", []byte("user:secret")),
			framework.WithDialer(d.DialContext))
		ctx := context.Background()
		_, err := c.Create(ctx, "/a", []byte("x"), framework.ACL(zk.DigestACL(zk.PermAll, "user", "secret")...))
		require.NoError(t, err)

		for done := 0; done < failures; {
			broken := d.Kill(1 + done%3) // so many connections one after the other
			srv.Client("a").Drop()
			select {
			case <-broken:
				done += 1 + done%3
			case <-time.After(time.Hour):
				require.FailNow(t, "the client does not connect any more", "after %d failures", done)
			}
			time.Sleep(time.Duration(done) * 100 * time.Millisecond)
		}

		longCtx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		data, _, err := c.Get(longCtx, "/a")
		require.NoError(t, err)
		require.Equal(t, "x", string(data))
		require.NoError(t, c.WaitConnected(longCtx))
		_, err = c.Set(longCtx, "/a", []byte("y"), -1)
		require.NoError(t, err)
		require.Equal(t, framework.Reconnected, c.State())
	})
}

// reset resets the connections of a client as a network does, and returns the error of the next
// write to conn.
func reset(client *zktest.Client) func(net.Conn, []byte) error {
	return func(conn net.Conn, frame []byte) error {
		client.Reset()
		time.Sleep(time.Millisecond) // so that the reset arrives
		_, err := conn.Write(frame)
		if err == nil {
			panic("the connection was not reset")
		}
		return err
	}
}
