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

// The driver hangs for good if a connection dies between the server's welcome and the credentials. The client does not, however often that
// happens.
func TestConnectionsThatDieBeforeTheCredentialsAreOut(t *testing.T) {
	const deaths = 100
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		d := &testzk.Frail{Dial: srv.Client("a").DialContext, Break: reset(srv.Client("a"))}
		c := testzk.Connected(t, srv.MemAddr(), framework.WithAuth("digest", []byte("user:secret")),
			framework.WithDialer(d.DialContext))
		ctx := context.Background()
		_, err := c.Create(ctx, "/a", []byte("x"), framework.ACL(zk.DigestACL(zk.PermAll, "user", "secret")...))
		require.NoError(t, err)

		for done := 0; done < deaths; {
			died := d.Kill(1 + done%3) // in a row
			srv.Client("a").Drop()
			select {
			case <-died:
				done += 1 + done%3
			case <-time.After(time.Hour):
				require.FailNow(t, "the client does not connect any more", "after %d deaths", done)
			}
			time.Sleep(time.Duration(done) * 100 * time.Millisecond)
		}

		patient, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		data, _, err := c.Get(patient, "/a")
		require.NoError(t, err)
		require.Equal(t, "x", string(data))
		require.NoError(t, c.WaitConnected(patient))
		_, err = c.Set(patient, "/a", []byte("y"), -1)
		require.NoError(t, err)
		require.Equal(t, framework.Reconnected, c.State())
	})
}

// reset kills the connections of a client as a network does, and returns what writing to one of them says then.
func reset(client *zktest.Client) func(net.Conn, []byte) error {
	return func(conn net.Conn, frame []byte) error {
		client.Reset()
		time.Sleep(time.Millisecond) // the news travels
		_, err := conn.Write(frame)
		if err == nil {
			panic("the connection is not dead")
		}
		return err
	}
}
