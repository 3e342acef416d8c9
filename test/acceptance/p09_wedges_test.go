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

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// p09Soon is within what time of a healthy server's being there the client must have a session that works: 3 s, of which 2.5 s are the
// connect timeout, and two more.
const p09Soon = 5 * time.Second

// p09Place is where the tests of wedges happen: in virtual time, or on the real server.
type p09Place struct {
	well func(ctx context.Context, network, address string) (net.Conn, error) // dials the healthy server, whatever the address
	drop func()                                                               // ends the connections to it
	slow time.Duration                                                        // how much longer than it should things may take, because the machine is busy
}

// p09Anywhere runs a test in virtual time, or on the real server if that is wanted.
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

// p09Timeouts are the session timeouts to try: a short one, and the default.
var p09Timeouts = []time.Duration{4 * time.Second, 30 * time.Second}

// p09Illnesses are what a sick server says to who connects, before it falls silent.
var p09Illnesses = map[string][]byte{"silent": nil, "four bytes then silent": {0, 0, 0, 37}}

// Something accepts connections where the server should be and says nothing, or four bytes and then nothing. Once a healthy
// server is there instead the client has a working session within 5 s, though it had just begun another attempt at the sick one.
func TestP09_ServerThatSaysNothingIsGivenUpFromTheStart(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, in p09Place, sick *p09Sick, timeout time.Duration) {
		road := &p09Road{}
		road.lead("zk.test:2181", sick.dial)
		client := testzk.Client(t, "zk.test:2181", framework.WithSessionTimeout(timeout), framework.WithDialer(road.DialContext))
		sick.await(t, 2)
		road.lead("zk.test:2181", in.well)
		in.works(t, client)
	})
}

// A client with a session loses its connection and finds something in the server's place that accepts and says nothing, or four
// bytes. Once the server is back the client has a working session within 5 s.
func TestP09_ServerThatSaysNothingIsGivenUpUnderASession(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, in p09Place, sick *p09Sick, timeout time.Duration) {
		road := &p09Road{}
		road.lead("zk.test:2181", in.well)
		client := testzk.Connected(t, "zk.test:2181",
			framework.WithSessionTimeout(timeout), framework.WithDialer(road.DialContext))
		road.lead("zk.test:2181", sick.dial)
		in.drop()
		sick.await(t, 2)
		road.lead("zk.test:2181", in.well)
		in.works(t, client)
	})
}

// One of two servers accepts and says nothing, or four bytes, and the client tries it first: it has a working session with the
// other one within 5 s.
func TestP09_ServerThatSaysNothingDoesNotHideTheOther(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, in p09Place, sick *p09Sick, timeout time.Duration) {
		road := &p09Road{}
		road.lead("sick.test:2181", sick.dial)
		road.lead("well.test:2181", in.well)
		inOrder := framework.WithRandom(func(int64) int64 { return 0 })
		in.works(t, testzk.Client(t, "sick.test:2181,well.test:2181", framework.WithSessionTimeout(timeout),
			framework.WithDialer(road.DialContext), inOrder))
	})
}

func p09ForEach(t *testing.T, do func(t *testing.T, in p09Place, sick *p09Sick, timeout time.Duration)) {
	for name, illness := range p09Illnesses {
		for _, timeout := range p09Timeouts {
			t.Run(fmt.Sprintf("%s, T=%v", name, timeout), func(t *testing.T) {
				t.Parallel()
				p09Anywhere(t, func(t *testing.T, in p09Place) { do(t, in, p09Serve(t, illness), timeout) })
			})
		}
	}
}

// The connection breaks whenever the client presents its credentials again after a reconnect, five times in a row and that three
// times over: a working session, with the credentials, is there within 5 s of the last time.
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
				require.FailNow(t, "the client does not connect any more")
			}
			in.works(t, client)
		}
	})
}

// The server comes back with nothing of what it had, so that it is behind what the client has seen and turns it away. The client
// has a working session, a new one, within two session timeouts.
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
	p09WorksWithin(t, client, 2*before.Timeout())
	t.Logf("after %v", time.Since(began))
	require.ErrorIs(t, before.Err(), framework.ErrSessionLost)
	_, err = client.Exists(ctx, "/node-0")
	require.Error(t, err, "nothing was wiped")
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
	require.Less(t, time.Since(began), limit, "a healthy server was there all the time")
}

// p09Sick is a server that accepts connections, greets, and does nothing more for them.
type p09Sick struct {
	greeting []byte
	running  sync.WaitGroup
	accepted chan struct{}
}

func p09Serve(t *testing.T, greeting []byte) *p09Sick {
	t.Helper()
	s := &p09Sick{greeting: greeting, accepted: make(chan struct{}, 1000)}
	t.Cleanup(s.running.Wait) // the client has closed its connections
	return s
}

func (s *p09Sick) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	s.running.Go(func() {
		defer far.Close()
		s.running.Go(func() { _, _ = far.Write(s.greeting) })
		_, _ = io.Copy(io.Discard, far)
	})
	s.accepted <- struct{}{}
	return near, nil
}

// await waits for so many connections.
func (s *p09Sick) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-s.accepted:
		case <-testzk.Context(t).Done():
			require.FailNow(t, "the client does not try any more")
		}
	}
}

type p09Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// p09Road leads from the addresses that a client knows to where it gets.
type p09Road struct{ leads sync.Map }

func (r *p09Road) lead(from string, to p09Dial) { r.leads.Store(from, to) }

func (r *p09Road) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := r.leads.Load(address)
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
	}
	return to.(p09Dial)(ctx, network, address)
}
