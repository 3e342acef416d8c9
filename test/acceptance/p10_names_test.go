package acceptance_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/proxy"
)

// A server's name moves from address A to address B, and A goes down. The client's next attempt
// goes to B, with the same session and the same lock.
func TestP10_SessionFollowsAServerToItsNewAddress(t *testing.T) {
	t.Parallel()
	a, b := testzk.Proxy(t), testzk.Proxy(t)
	names := &p10Names{}
	names.point("zk.test", a.Addr())
	before := 0 // more than one if the first attempt at a took too long
	p10Follows(t, "zk.test:2181", names.DialContext, a, func() { before = names.point("zk.test", b.Addr()) })
	dialled := names.dialled()
	require.Greater(t, len(dialled), before)
	require.Equal(t, b.Addr(), dialled[before], "the next attempt did not go to the name's new address")
}

// p10Follows moves a client from server a to another one, and checks that session and lock stay the
// same.
func p10Follows(t *testing.T, connect string, dial p10Dial, a *proxy.Proxy, move func()) {
	t.Helper()
	client := testzk.Connected(t, connect, framework.WithDialer(dial), long())
	ctx := testzk.Context(t)
	before, err := client.Session(ctx)
	require.NoError(t, err)
	hold := p01Hold(t, client, testzk.Path(t))

	move()
	require.NoError(t, a.Refuse(true))
	testzk.Eventually(t, func() bool { return client.State() != framework.Connected }, "the client does not notice")
	require.NoError(t, client.WaitConnected(ctx))
	after, err := client.Session(ctx)
	require.NoError(t, err)
	require.Equal(t, before.ID(), after.ID(), "another session")
	require.NoError(t, hold.Err())
	_, err = hold.Guard(ctx)
	require.NoError(t, err)
	require.NoError(t, hold.Release())
}

type p10Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// One of three server names does not resolve. The client starts and works, whichever name it tries
// first.
func TestP10_OneNameOfThreeThatDoesNotResolveIsNoObstacle(t *testing.T) {
	t.Parallel()
	for _, order := range []string{
		"unknown.test,zk1.test,zk2.test", "zk1.test,unknown.test,zk2.test", "zk1.test,zk2.test,unknown.test",
	} {
		names := &p10Names{}
		p := testzk.Proxy(t)
		names.point("zk1.test", p.Addr())
		names.point("zk2.test", p.Addr())
		inOrder := framework.WithRandom(func(int64) int64 { return 0 })
		client := testzk.Client(t, order, framework.WithDialer(names.DialContext), inOrder)
		require.NoError(t, client.WaitConnected(testzk.Context(t)), order)
		p.DropConnections() // the client reconnects, whichever server is next
		require.NoError(t, p01Hold(t, client, testzk.Path(t)).Release())
	}
}

// p10Names is a dialer with a resolver of its own.
type p10Names struct {
	mu    sync.Mutex
	table map[string]string // name: host:port
	dials []string
}

// point has a name resolve to an address. It returns how many attempts to connect were made before.
func (n *p10Names) point(name, to string) (before int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.table == nil {
		n.table = map[string]string{}
	}
	n.table[name] = to
	return len(n.dials)
}

func (n *p10Names) dialled() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dials)
}

func (n *p10Names) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := n.resolve(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

func (n *p10Names) resolve(address string) (string, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	to, ok := n.table[name]
	if !ok {
		return "", &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	n.dials = append(n.dials, to)
	return to, nil
}

// The same with Go's own resolver and a DNS server whose answer changes from 127.0.0.1 to
// 127.0.0.2. The client needs only a plain net.Dialer with that resolver.
func TestP10_SessionFollowsTheDNS(t *testing.T) {
	t.Parallel()
	a := testzk.Proxy(t)
	_, port, err := net.SplitHostPort(a.Addr())
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("this system has only one loopback address, or another test uses the port: ", err)
	}
	b := testzk.Proxy(t)
	p10Relay(t, listener, b.Addr())
	dns := p10Serve(t, net.IPv4(127, 0, 0, 1))
	dialer := &net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: dns.dial}}
	p10Follows(t, "zk.test.:"+port, dialer.DialContext, a, func() { dns.point(net.IPv4(127, 0, 0, 2)) })
	require.NotZero(t, b.Connections(), "the client did not resolve the name again")
}

// p10Relay forwards the connections that it accepts.
func p10Relay(t *testing.T, listener net.Listener, to string) {
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p10Join(conn, to) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
}

func p10Join(conn net.Conn, to string) {
	defer conn.Close()
	other, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer other.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer conn.Close()
		_, _ = other.(*net.TCPConn).WriteTo(conn)
	}()
	_, _ = conn.(*net.TCPConn).WriteTo(other)
	other.Close()
	<-back
}

// p10DNS answers each query for an IPv4 address with one address, and all others with none.
type p10DNS struct {
	conn net.PacketConn

	mu sync.Mutex
	ip net.IP
}

func p10Serve(t *testing.T, ip net.IP) *p10DNS {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &p10DNS{conn: conn, ip: ip}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.run()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return d
}

func (d *p10DNS) point(ip net.IP) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ip = ip
}

// dial is the Dial function of a net.Resolver.
func (d *p10DNS) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	if !strings.HasPrefix(network, "udp") {
		return nil, errors.New("no DNS over " + network)
	}
	return new(net.Dialer).DialContext(ctx, network, d.conn.LocalAddr().String())
}

func (d *p10DNS) run() {
	buf := make([]byte, 512)
	for {
		n, from, err := d.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		d.mu.Lock()
		answer := p10Answer(buf[:n], d.ip)
		d.mu.Unlock()
		_, _ = d.conn.WriteTo(answer, from)
	}
}

// p10Answer returns the reply to a query with one question: a header of twelve bytes, the question,
// and for type A a record that refers to the question's name, with a time to live of 0.
func p10Answer(query []byte, ip net.IP) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	question := query[12 : end+5]
	isA := binary.BigEndian.Uint16(query[end+1:]) == 1
	reply := append(slices.Clone(query[:2]), 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	reply = append(reply, question...)
	if isA {
		reply[7] = 1
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, ip.To4()...)
	}
	return reply
}

// The only server's name does not resolve for a while. WaitConnected reports that when its context
// ends. The client works at most 3 s after the name resolves.
func TestP10_ClientStartsOnceItsOnlyNameIsKnown(t *testing.T) {
	t.Parallel()
	p09Anywhere(t, func(t *testing.T, in p09Place) {
		routes := &p09Routes{}
		client := testzk.Client(t, "zk.test:2181", framework.WithDialer(routes.DialContext))
		testzk.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			err := client.WaitConnected(ctx)
			return err != nil && strings.Contains(err.Error(), "no such host")
		}, "the error does not name the cause")
		routes.lead("zk.test:2181", in.well)
		in.works(t, client)
	})
}
