package framework_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// lowerTimeout changes the session timeout in the connect request. For the client and the server
// this looks as if the server granted less than requested, as after a change of its configuration.
type lowerTimeout struct {
	net.Conn
	timeout time.Duration
	asked   bool
}

func (l *lowerTimeout) Write(b []byte) (int, error) {
	const timeoutAt = 4 + 4 + 8 // after the length, the version and the zxid
	if !l.asked && len(b) >= timeoutAt+4 {
		l.asked = true
		b = append([]byte(nil), b...)
		binary.BigEndian.PutUint32(b[timeoutAt:], uint32(l.timeout.Milliseconds()))
	}
	return l.Conn.Write(b)
}

// clientWithTimeout returns a client with a session timeout of 30 s. Once granted is set, new
// connections get that timeout instead.
func clientWithTimeout(
	t *testing.T, srv *zktest.Server, name string, granted *atomic.Int64, opts ...framework.Option,
) *framework.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := srv.Client(name).DialContext(ctx, network, address)
		if less := time.Duration(granted.Load()); err == nil && less > 0 {
			conn = &lowerTimeout{Conn: conn, timeout: less}
		}
		return conn, err
	}
	opts = append(opts, framework.WithDialer(dial), framework.WithSessionTimeout(30*time.Second),
		framework.WithRetry(retry.Forever(100*time.Millisecond)))
	c, err := framework.New(srv.MemAddr(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.WaitConnected(t.Context()))
	return c
}

func acquire(t *testing.T, c *framework.Client) *recipes.Hold {
	mu, err := mutex.New(c, "/lock")
	require.NoError(t, err)
	hold, err := mu.Acquire(t.Context())
	require.NoError(t, err)
	return hold
}

// holdAfterReconnect returns a hold of client a. The session had a timeout of 30 s and got another
// one at a reconnect.
func holdAfterReconnect(t *testing.T, srv *zktest.Server, timeout time.Duration) *recipes.Hold {
	var granted atomic.Int64
	c := clientWithTimeout(t, srv, "a", &granted)
	hold := acquire(t, c)
	time.Sleep(21 * time.Second)
	granted.Store(int64(timeout))
	srv.Client("a").Drop()
	time.Sleep(100 * time.Millisecond)
	s, err := c.Session(t.Context())
	require.NoError(t, err)
	require.Equal(t, timeout, s.Timeout())
	return hold
}

func TestSessionIsKeptWithAShorterTimeout(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		hold := holdAfterReconnect(t, srv, 6*time.Second)
		before := srv.Client("a").Requests()[fault.OpSync]
		time.Sleep(12 * time.Second)
		syncs := srv.Client("a").Requests()[fault.OpSync] - before
		require.InDelta(t, 12, syncs, 1, "heartbeats within two of the new timeouts")
		require.NoError(t, hold.Err())
	})
}

// The replies on the earlier connection are older than the new timeout allows. The new connection
// counts with its first reply.
func TestSessionIsKeptWithAShorterTimeoutUntilTheFirstReply(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var granted atomic.Int64
		hold := acquire(t, clientWithTimeout(t, srv, "a", &granted))
		time.Sleep(24700 * time.Millisecond)
		granted.Store(int64(6 * time.Second))
		srv.On(fault.Match{Client: "a", Op: fault.OpMulti, Times: fault.Always}, fault.Delay(5*time.Millisecond))
		srv.Client("a").Drop()
		time.Sleep(20 * time.Second)
		require.NoError(t, hold.Err())
	})
}

func TestRefusedSessionsLeaveNothing(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext),
			framework.WithAuth("unknown", []byte("a:b")))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, framework.Replacing(c), 1)
	})
}

func TestHoldEndsByTheShorterTimeout(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		hold := holdAfterReconnect(t, srv, 12*time.Second)
		ctx := hold.Context(t.Context())
		other := clientWithTimeout(t, srv, "b", &atomic.Int64{})
		srv.Client("a").Refuse(true)
		srv.Client("a").Reset()
		next := acquire(t, other)
		// Not hold.Err: it would end the hold.
		require.Error(t, ctx.Err(), "the context is alive during another hold")
		require.NoError(t, next.Release())
		srv.Client("a").Refuse(false)
	})
}

func TestHoldEndsByTheShorterTimeoutWhileACredentialIsNotAnswered(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var granted atomic.Int64
		a := clientWithTimeout(t, srv, "a", &granted, framework.WithAuth("digest", []byte("u:p")))
		b := clientWithTimeout(t, srv, "b", &atomic.Int64{})
		first := acquire(t, a)
		time.Sleep(time.Second)
		granted.Store(int64(6 * time.Second))
		auth := srv.On(fault.Match{Client: "a", Op: fault.OpAuth}, fault.Hold())
		srv.Client("a").Drop()
		require.NoError(t, auth.Wait(t.Context()))
		srv.Client("a").Cut()
		second := acquire(t, b)
		require.Error(t, first.Err(), "two holds are valid")
		srv.Client("a").Heal()
		auth.Release()
		require.NoError(t, second.Release())
	})
}

func TestContextsEndWithinASecondAfterASuspension(t *testing.T) {
	for name, connected := range map[string]bool{"connected": true, "not connected": false} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				hold := acquire(t, clientWithTimeout(t, srv, "a", &atomic.Int64{}))
				ctx := hold.Context(t.Context())
				time.Sleep(8100 * time.Millisecond)
				if connected {
					srv.Client("a").Cut()
				} else {
					srv.Client("a").Refuse(true)
					srv.Client("a").Reset()
					time.Sleep(10 * time.Millisecond)
				}
				framework.PretendSuspension(time.Hour)
				woken := time.Now()
				<-ctx.Done()
				require.LessOrEqual(t, time.Since(woken), time.Second)
				srv.Client("a").Heal()
				srv.Client("a").Refuse(false)
			})
		})
	}
}

func TestSuspensionsMakeTheDeadlineEarlier(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		hold := acquire(t, clientWithTimeout(t, srv, "a", &atomic.Int64{}))
		before := hold.ValidUntil()
		framework.PretendSuspension(time.Second)
		require.Equal(t, time.Second, before.Sub(hold.ValidUntil()))
		framework.PretendSuspension(time.Hour)
		require.Zero(t, hold.ValidUntil())
	})
}

func TestHeartbeatsAreTransactionsDuringAHoldWithQuorumHeartbeat(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := clientWithTimeout(t, srv, "a", &atomic.Int64{}, framework.WithQuorumHeartbeat())
		heartbeats := func() (syncs, transactions int) {
			before := srv.Client("a").Requests()
			time.Sleep(30 * time.Second)
			after := srv.Client("a").Requests()
			return after[fault.OpSync] - before[fault.OpSync], after[fault.OpMulti] - before[fault.OpMulti]
		}
		syncs, transactions := heartbeats()
		require.InDelta(t, 6, syncs, 1)
		require.Zero(t, transactions)
		hold := acquire(t, c)
		syncs, transactions = heartbeats()
		require.Zero(t, syncs)
		require.InDelta(t, 6, transactions, 1)

		srv.On(fault.Match{Client: "a", Op: fault.OpMulti, Times: fault.Always}, fault.Hold())
		srv.Client("a").Drop()
		time.Sleep(25 * time.Second)
		_, err := c.Exists(t.Context(), "/")
		require.NoError(t, err)
		require.Error(t, hold.Err(), "the leader has answered and accepted a reconnect, but there was no transaction")
	})
}

// A connect takes 0.6 s, as over a network with round trips of 200 ms. One connection ends while
// all servers run.
func TestSessionIsKeptOnASlowNetwork(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		two, three := srv.Follower(0), srv.Follower(0)
		slow := func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case <-time.After(600 * time.Millisecond):
				return srv.Client("a").DialContext(ctx, network, address)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		c, err := framework.New(srv.MemAddr()+","+two.MemAddr()+","+three.MemAddr(), framework.WithDialer(slow),
			framework.WithSessionTimeout(6*time.Second), framework.WithConnectTimeout(2*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		hold := acquire(t, c)
		time.Sleep(3 * time.Second)
		srv.Client("a").Drop()
		time.Sleep(10 * time.Second)
		require.NoError(t, hold.Err())
	})
}

// One name stands for three servers. The server of the connection falls silent and accepts no
// connections.
func TestHoldSurvivesTheFailureOfOneServerOfAName(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		addresses := []string{
			host(t, srv.MemAddr()), host(t, srv.Follower(0).MemAddr()), host(t, srv.Follower(0).MemAddr()),
		}
		var silent atomic.Pointer[string]
		var conn atomic.Pointer[silentConn]
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if s := silent.Load(); s != nil && *s == address {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			socket, err := srv.Client("a").DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			m := &silentConn{Conn: socket, address: address}
			conn.Store(m)
			return m, nil
		}
		resolve := func(context.Context, string) ([]string, error) { return addresses, nil }
		c, err := framework.New("zk.example:1", framework.WithDialer(dial), framework.WithResolver(resolve),
			framework.WithSessionTimeout(9*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		hold := acquire(t, c)
		first := conn.Load()
		silent.Store(&first.address)
		first.silent.Store(true)
		time.Sleep(time.Minute)
		require.NoError(t, hold.Err())
		require.NotEqual(t, first.address, conn.Load().address)
	})
}

func host(t *testing.T, server string) string {
	host, _, err := net.SplitHostPort(server)
	require.NoError(t, err)
	return host
}

// silentConn is a connection that loses all writes once silent is set.
type silentConn struct {
	net.Conn
	address string
	silent  atomic.Bool
}

func (m *silentConn) Write(b []byte) (int, error) {
	if m.silent.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// The client has lost the session, and no server can be reached for longer than the session
// timeout. The servers were down too and count the timeout anew after their start.
func TestLostSessionIsClosedOnTheServersAfterALongOutage(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		hold := acquire(t, clientWithTimeout(t, srv, "a", &atomic.Int64{}))
		waiter := clientWithTimeout(t, srv, "b", &atomic.Int64{})
		srv.Stop()
		time.Sleep(2 * time.Minute)
		require.Error(t, hold.Err())
		require.NoError(t, srv.Start())
		back := time.Now()
		acquire(t, waiter)
		require.Less(t, time.Since(back), 10*time.Second, "the waiter waits for another timeout")
	})
}
