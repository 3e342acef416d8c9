package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// p09Soon is the time in which a client must have a working session once there is a healthy server:
// 3 s, of which 2.5 s are the connect timeout, and two more.
const p09Soon = 5 * time.Second

// p09Place is where these tests run: in virtual time, or on the real server.
type p09Place struct {
	// It dials the healthy server, whatever the address.
	well func(ctx context.Context, network, address string) (net.Conn, error)
	drop func() // ends the connections to the healthy server
	// Is added to time limits, because the machine may be busy.
	slow time.Duration
}

// p09Anywhere runs a test on the real server if one is asked for, and otherwise in virtual time.
func p09Anywhere(t *testing.T, test func(t *testing.T, in p09Place)) {
	t.Helper()
	if realzk.Wanted() != "" {
		p := testzk.Proxy(t)
		test(t, p09Place{p09To(p.Addr()), p.DropConnections, 10})
		return
	}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := srv.Client("c")
		dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
			return c.DialContext(ctx, network, srv.MemAddr())
		}
		test(t, p09Place{dial, c.Drop, 1})
	})
}

func p09To(server string) p09Dial {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server)
	}
}

// p09Timeouts are the session timeouts of the tests: a short one, and the default.
var p09Timeouts = []time.Duration{4 * time.Second, 30 * time.Second}

// p09Faults are what a faulty server sends on each connection before it falls silent.
var p09Faults = map[string][]byte{"silent": nil, "four bytes then silent": {0, 0, 0, 37}}

// In place of the server something accepts connections and sends nothing, or four bytes and then
// nothing. Once a healthy server replaces it, the client has a working session within 5 s, although
// it has just begun another attempt at the faulty one.
func TestP09_ServerThatSaysNothingIsGivenUpFromTheStart(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, in p09Place, faulty *p09Faulty, timeout time.Duration) {
		routes := &p09Routes{}
		routes.lead("zk.test:2181", faulty.dial)
		client := testzk.Client(t, "zk.test:2181", framework.WithSessionTimeout(timeout),
			framework.WithDialer(routes.DialContext))
		faulty.await(t, 2)
		routes.lead("zk.test:2181", in.well)
		in.works(t, client)
	})
}

// A client with a session loses its connection. A faulty server replaces the server, accepts
// connections and sends nothing, or four bytes. Once the server is back, the client has a working
// session within 5 s.
func TestP09_ServerThatSaysNothingIsGivenUpUnderASession(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, in p09Place, faulty *p09Faulty, timeout time.Duration) {
		routes := &p09Routes{}
		routes.lead("zk.test:2181", in.well)
		client := testzk.Connected(t, "zk.test:2181",
			framework.WithSessionTimeout(timeout), framework.WithDialer(routes.DialContext))
		routes.lead("zk.test:2181", faulty.dial)
		in.drop()
		faulty.await(t, 2)
		routes.lead("zk.test:2181", in.well)
		in.works(t, client)
	})
}

// One of two servers accepts connections and sends nothing, or four bytes, and the client tries it
// first. The client has a working session with the other server within 5 s.
func TestP09_ServerThatSaysNothingDoesNotHideTheOther(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, in p09Place, faulty *p09Faulty, timeout time.Duration) {
		routes := &p09Routes{}
		routes.lead("faulty.test:2181", faulty.dial)
		routes.lead("well.test:2181", in.well)
		inOrder := framework.WithRandom(func(int64) int64 { return 0 })
		in.works(t, testzk.Client(t, "faulty.test:2181,well.test:2181", framework.WithSessionTimeout(timeout),
			framework.WithDialer(routes.DialContext), inOrder))
	})
}

func p09ForEach(t *testing.T, do func(t *testing.T, in p09Place, faulty *p09Faulty, timeout time.Duration)) {
	for name, fault := range p09Faults {
		for _, timeout := range p09Timeouts {
			t.Run(fmt.Sprintf("%s, T=%v", name, timeout), func(t *testing.T) {
				t.Parallel()
				p09Anywhere(t, func(t *testing.T, in p09Place) { do(t, in, p09Serve(t, fault), timeout) })
			})
		}
	}
}

// The connection breaks whenever the client presents its credentials again after a reconnect, five
// times in a row. This is repeated three times. The client has a working session with the
// credentials within 5 s of the last time.
func TestP09_WriteFailureDuringTheResendOfCredentialsIsNoWedge(t *testing.T) {
	t.Parallel()
	p09Anywhere(t, func(t *testing.T, in p09Place) {
		dialer := &testzk.Frail{Dial: in.well, Break: func(conn net.Conn, _ []byte) error {
			conn.Close()
			return errors.New("broken pipe")
		}}
		client := testzk.Connected(t, "zk.test:2181",
			framework.WithAuth("digest", []byte("user:secret")), framework.WithDialer(dialer.DialContext))
		for range 3 {
			died := dialer.Kill(5)
			in.drop()
			select {
			case <-died:
			case <-testzk.Context(t).Done():
				require.FailNow(t, "the client no longer connects")
			}
			in.works(t, client)
		}
	})
}

// The server loses all its data and restarts, so that it is behind the client's last zxid and
// refuses the client. The client has a working new session within two session timeouts.
func TestP09_ClientOfAWipedServerStartsOver(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	client := testzk.Connected(t, server.Connect(), testzk.Mortal())
	ctx := testzk.Context(t)
	before, err := client.Session(ctx)
	require.NoError(t, err)
	for i := range 50 {
		_, err := client.Create(ctx, fmt.Sprintf("/node-%d", i), nil)
		require.NoError(t, err)
	}
	server.Kill(t)
	server.Wipe(t)
	server.Start(t)
	began := time.Now()
	testzk.Eventually(t, func() bool {
		_, err := client.Exists(testzk.Context(t), "/node-0")
		return errors.Is(err, zk.ErrNoNode)
	}, "there is no session that works, or the data was not deleted")
	took := time.Since(began)
	t.Logf("after %v", took)
	require.Less(t, took, 2*before.Timeout(), "a healthy server was available all the time")
	require.ErrorIs(t, before.Err(), framework.ErrSessionLost)
}

// works checks that the client has a working session soon.
func (in p09Place) works(t *testing.T, client *framework.Client) {
	t.Helper()
	p09WorksWithin(t, client, in.slow*p09Soon)
}

func p09WorksWithin(t *testing.T, client *framework.Client, limit time.Duration) {
	t.Helper()
	began := time.Now()
	require.NoError(t, client.WaitConnected(testzk.Context(t)))
	_, err := client.Exists(testzk.Context(t), "/")
	require.NoError(t, err)
	require.Less(t, time.Since(began), limit, "a healthy server was available all the time")
}

// p09Faulty is a server that accepts connections, sends a greeting, and does nothing more.
type p09Faulty struct {
	greeting []byte
	running  sync.WaitGroup
	accepted chan struct{}
}

func p09Serve(t *testing.T, greeting []byte) *p09Faulty {
	t.Helper()
	s := &p09Faulty{greeting: greeting, accepted: make(chan struct{}, 1000)}
	t.Cleanup(s.running.Wait) // the client has closed its connections by then
	return s
}

func (s *p09Faulty) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	s.running.Go(func() {
		defer far.Close()
		s.running.Go(func() { _, _ = far.Write(s.greeting) })
		_, _ = io.Copy(io.Discard, far)
	})
	s.accepted <- struct{}{}
	return near, nil
}

// await waits for n connections.
func (s *p09Faulty) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-s.accepted:
		case <-testzk.Context(t).Done():
			require.FailNow(t, "the client no longer tries")
		}
	}
}

type p09Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// p09Routes maps the addresses that a client knows to the functions that dial.
type p09Routes struct{ dials sync.Map }

func (r *p09Routes) lead(from string, to p09Dial) { r.dials.Store(from, to) }

func (r *p09Routes) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := r.dials.Load(address)
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
	}
	return to.(p09Dial)(ctx, network, address)
}
