package acceptance_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// p21OldServer is a connection that ends after the answer that an operation is unknown, as those of
// ZooKeeper 3.4 do.
type p21OldServer struct {
	net.Conn
	frame []byte // the rest of the current frame
	last  bool   // the current frame is the last one
}

// Read reads at most one frame.
func (c *p21OldServer) Read(into []byte) (int, error) {
	if len(c.frame) == 0 {
		if c.last {
			_ = c.Conn.Close()
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(into, c.frame)
	c.frame = c.frame[n:]
	return n, nil
}

func (c *p21OldServer) next() error {
	length := make([]byte, 4)
	if _, err := io.ReadFull(c.Conn, length); err != nil {
		return err
	}
	reply := make([]byte, binary.BigEndian.Uint32(length))
	if _, err := io.ReadFull(c.Conn, reply); err != nil {
		return err
	}
	c.frame = append(length, reply...)
	c.last = len(reply) == 16 && int32(binary.BigEndian.Uint32(reply[12:])) == int32(zktest.Unimplemented)
	return nil
}

// p21Old makes the server act as ZooKeeper 3.4 for a client: it refuses the first transaction, in
// which it does not know the kind of a node, and refuses containers and closes the connection.
func p21Old(srv *zktest.Server, name string) (dial framework.Option, refused *fault.Rule, dials *atomic.Int32) {
	dials = &atomic.Int32{}
	srv.On(fault.Match{Op: fault.OpMulti, Client: name}, fault.Fail(zktest.BadArguments))
	refused = srv.On(fault.Match{Op: fault.OpCreateContainer, Client: name, Times: fault.Always},
		fault.Fail(zktest.Unimplemented))
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := srv.Client(name).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		dials.Add(1)
		return &p21OldServer{Conn: conn}, nil
	}), refused, dials
}

// A server of ZooKeeper 3.4 does not know containers and closes the connection when it gets a
// request for one. It gets one such request, and the acquire succeeds. The parents are persistent
// nodes then, also those of other locks.
func TestP21_ServersWithoutContainersAreAskedOnce(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, "today's servers know containers")
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		dial, refused, dials := p21Old(srv, "c")
		c := testzk.Connected(t, srv.MemAddr(), dial)
		session, err := c.Session(t.Context())
		require.NoError(t, err)
		for _, lock := range []string{"/locks/deep/a", "/locks/b", "/c"} {
			mu, err := mutex.New(c, lock)
			require.NoError(t, err)
			hold := acquired(t, mu)
			require.True(t, srv.Exists(hold.Path()))
			require.NoError(t, hold.Release())
		}
		require.Equal(t, 1, refused.Hits())
		require.EqualValues(t, 2, dials.Load(), "the server closed one connection")
		require.NoError(t, session.Err())
		require.Equal(t, "/c\n/locks\n/locks/b\n/locks/deep\n/locks/deep/a\n", srv.Tree(), "all of them persistent")
	})
}

// A server of ZooKeeper 3.4 gets no further such request in the client's next session either.
func TestP21_ServersWithoutContainersAreRememberedInTheNextSession(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, "today's servers know containers")
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		dial, refused, _ := p21Old(srv, "c")
		c := testzk.Connected(t, srv.MemAddr(), dial)
		require.NoError(t, c.CreateContainers(t.Context(), "/a"))
		session, err := c.Session(t.Context())
		require.NoError(t, err)
		for _, s := range srv.Client("c").Sessions() {
			require.NoError(t, s.Expire())
		}
		<-session.Done()
		require.NoError(t, c.CreateContainers(t.Context(), "/b"))
		require.Equal(t, 1, refused.Hits())
	})
}

// The servers reap the empty parent after the client has seen it and before the client joins the
// queue. The acquire creates it again and succeeds.
func TestP21_ParentThatIsReapedWhileAcquiringIsMadeAgain(t *testing.T) {
	t.Parallel()
	p, observer := testzk.Proxy(t), testzk.Observer(t)
	c := testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(30*time.Second))
	for name, known := range map[string]bool{"at the first acquire": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			above := testzk.Path(t)
			lock := above + "/lock"
			mu, err := mutex.New(c, lock)
			require.NoError(t, err)
			reaped, enter := above, fault.Match{Op: fault.OpMulti, Path: lock} // creates lock below above
			if known {
				require.NoError(t, acquired(t, mu).Release())
				reaped, enter.Op = lock, fault.OpCreate
			} else {
				require.NoError(t, c.CreateContainers(testzk.Context(t), above))
			}
			entering := p.On(enter, fault.Hold())
			result := make(chan error, 1)
			go func() {
				hold, err := mu.Acquire(testzk.Context(t))
				if err == nil {
					_, err = hold.Guard(testzk.Context(t))
				}
				result <- err
			}()
			require.NoError(t, entering.Wait(testzk.Context(t)))
			require.NoError(t, observer.Delete(reaped, -1))
			entering.Release()
			require.NoError(t, <-result)
		})
	}
}

// The parents that a lock created are deleted once it has not been used for a while. The servers
// check each second here.
func TestP21_ParentsOfUnusedLocksAreReaped(t *testing.T) {
	t.Parallel()
	srv := testzk.Own(t, time.Second)
	c := testzk.Connected(t, srv.Connect(), framework.WithSessionTimeout(30*time.Second))
	mu, err := mutex.New(c, "/locks/of/many")
	require.NoError(t, err)
	hold := acquired(t, mu)
	_, err = c.Exists(t.Context(), "/locks/of/many")
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	testzk.Eventually(t, func() bool {
		_, err := c.Exists(t.Context(), "/locks")
		return errors.Is(err, zk.ErrNoNode)
	}, "the parents are not deleted")
	require.NoError(t, acquired(t, mu).Release(), "the lock can be used again")
}
