package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/proxy"
)

// p09Soon is within what time of a healthy server's being there the client must have a session that works: 3 s, of which 2.5 s are the
// connect timeout, and two more for a busy machine.
const p09Soon = 5 * time.Second

// p09Timeouts are the session timeouts to try: a short one, and the default.
var p09Timeouts = []time.Duration{4 * time.Second, 30 * time.Second}

// p09Illnesses are what a sick server says to who connects, before it falls silent.
var p09Illnesses = map[string][]byte{"silent": nil, "four bytes then silent": {0, 0, 0, 37}}

// Something accepts connections where the server should be and says nothing, or four bytes and then nothing. Once a healthy
// server is there instead the client has a working session within 5 s, though it had just begun another attempt at the sick one.
func TestP09_ServerThatSaysNothingIsGivenUpFromTheStart(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, illness []byte, timeout time.Duration) {
		sick := p09Listen(t, illness)
		road := &p09Road{}
		road.lead("zk.test:2181", sick.addr())
		client := testzk.Client(t, "zk.test:2181", framework.WithSessionTimeout(timeout), framework.WithDialer(road.DialContext))
		sick.await(t, 2)
		road.lead("zk.test:2181", p09Server())
		p09Works(t, client)
	})
}

// A client with a session loses its connection and finds something in the server's place that accepts and says nothing, or four
// bytes. Once the server is back the client has a working session within 5 s.
func TestP09_ServerThatSaysNothingIsGivenUpUnderASession(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, illness []byte, timeout time.Duration) {
		sick := p09Listen(t, illness)
		road := &p09Road{}
		p := proxy.Start(t, p09Server())
		road.lead("zk.test:2181", p.Addr())
		client := testzk.Connected(t, "zk.test:2181",
			framework.WithSessionTimeout(timeout), framework.WithDialer(road.DialContext))
		road.lead("zk.test:2181", sick.addr())
		p.DropConnections()
		sick.await(t, 2)
		road.lead("zk.test:2181", p.Addr())
		p09Works(t, client)
	})
}

// One of two servers accepts and says nothing, or four bytes, and the client tries it first: it has a working session with the
// other one within 5 s.
func TestP09_ServerThatSaysNothingDoesNotHideTheOther(t *testing.T) {
	t.Parallel()
	p09ForEach(t, func(t *testing.T, illness []byte, timeout time.Duration) {
		road := &p09Road{}
		road.lead("sick.test:2181", p09Listen(t, illness).addr())
		road.lead("well.test:2181", p09Server())
		inOrder := framework.WithRandom(func(int64) int64 { return 0 })
		p09Works(t, testzk.Client(t, "sick.test:2181,well.test:2181", framework.WithSessionTimeout(timeout),
			framework.WithDialer(road.DialContext), inOrder))
	})
}

func p09ForEach(t *testing.T, do func(t *testing.T, illness []byte, timeout time.Duration)) {
	for name, illness := range p09Illnesses {
		for _, timeout := range p09Timeouts {
			t.Run(fmt.Sprintf("%s, T=%v", name, timeout), func(t *testing.T) {
				t.Parallel()
				do(t, illness, timeout)
			})
		}
	}
}

// The connection breaks whenever the client presents its credentials again after a reconnect, five times in a row and that three
// times over: a working session, with the credentials, is there within 5 s of the last time.
func TestP09_WriteFailureDuringTheResendOfCredentialsIsNoWedge(t *testing.T) {
	t.Parallel()
	dialer := &testzk.Frail{Dial: new(net.Dialer).DialContext, Break: func(conn net.Conn, _ []byte) error {
		conn.Close()
		return errors.New("broken pipe")
	}}
	p := testzk.Proxy(t)
	client := testzk.Connected(t, p.Addr(),
		framework.WithAuth("digest", []byte("user:secret")), framework.WithDialer(dialer.DialContext))
	for range 3 {
		died := dialer.Kill(5)
		p.DropConnections()
		select {
		case <-died:
		case <-testzk.Context(t).Done():
			require.FailNow(t, "the client does not connect any more")
		}
		p09Works(t, client)
	}
}

// The server comes back with nothing of what it had, so that it is behind what the client has seen and turns it away. The client
// has a working session, a new one, within two session timeouts.
func TestP09_ClientOfAWipedServerStartsOver(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	client := testzk.Connected(t, server.Connect())
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
	p09WorksWithin(t, client, 2*testzk.SessionTimeout)
	t.Logf("after %v", time.Since(began))
	require.ErrorIs(t, before.Err(), framework.ErrSessionLost)
	_, err = client.Exists(ctx, "/node-0")
	require.Error(t, err, "nothing was wiped")
}

// p09Works checks that the client has a working session soon.
func p09Works(t *testing.T, client *framework.Client) {
	t.Helper()
	p09WorksWithin(t, client, p09Soon)
}

func p09WorksWithin(t *testing.T, client *framework.Client, limit time.Duration) {
	t.Helper()
	began := time.Now()
	require.NoError(t, client.WaitConnected(testzk.Context(t)))
	_, err := client.Exists(testzk.Context(t), "/")
	require.NoError(t, err)
	require.Less(t, time.Since(began), limit, "a healthy server was there all the time")
}

// p09Server is one of the servers.
func p09Server() string {
	server, _, _ := strings.Cut(testzk.Connect(), ",")
	return server
}

// p09Sick is a server that accepts connections and does nothing for them.
type p09Sick struct {
	net.Listener
	accepted chan struct{}
}

func p09Listen(t *testing.T, greeting []byte) *p09Sick {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &p09Sick{listener, make(chan struct{}, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Write(greeting)
			s.accepted <- struct{}{}
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return s
}

func (s *p09Sick) addr() string { return s.Addr().String() }

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

// p09Road leads from the addresses that a client knows to where it gets.
type p09Road struct{ leads sync.Map }

func (r *p09Road) lead(from, to string) { r.leads.Store(from, to) }

func (r *p09Road) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := r.leads.Load(address)
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
	}
	return new(net.Dialer).DialContext(ctx, network, to.(string))
}
