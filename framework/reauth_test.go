package framework_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
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
		d := &frailDialer{client: srv.Client("a")}
		c := testzk.Connected(t, srv.MemAddr(), framework.WithAuth("digest", []byte("user:secret")),
			framework.WithDialer(d.DialContext))
		ctx := context.Background()
		_, err := c.Create(ctx, "/a", []byte("x"), framework.ACL(zk.DigestACL(zk.PermAll, "user", "secret")...))
		require.NoError(t, err)

		for done := 0; done < deaths; {
			died := d.kill(1 + done%3) // in a row
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

// frailDialer makes connections of which some die when credentials are written.
type frailDialer struct {
	client *zktest.Client

	mu   sync.Mutex
	left int           // how many are still to die
	died chan struct{} // closed by the last of them
}

// kill makes the next n connections die.
func (d *frailDialer) kill(n int) (died <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.died = n, make(chan struct{})
	return d.died
}

func (d *frailDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := d.client.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &frailConn{Conn: nc, dialer: d}, nil
}

// dies reports whether the connection that asks is one that has to.
func (d *frailDialer) dies() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return false
	}
	if d.left--; d.left == 0 {
		close(d.died)
	}
	return true
}

type frailConn struct {
	net.Conn
	dialer *frailDialer
}

func (c *frailConn) Write(p []byte) (int, error) {
	if isAuth(p) && c.dialer.dies() {
		c.dialer.client.Reset()
		time.Sleep(time.Millisecond) // the news travels
		_, err := c.Conn.Write(p)
		if err == nil {
			panic("the connection is not dead")
		}
		return 0, err
	}
	return c.Conn.Write(p)
}

// isAuth looks at the type of a request, behind its length and number.
func isAuth(frame []byte) bool {
	return len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == uint32(zktest.OpAuth)
}
