package zktest

import (
	"context"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// MemAddr returns the address, host:port, of the server for clients that dial in memory. Nothing
// listens there, so a client without the dialer is refused. The dialers take any address as the
// server's, except a follower's [Follower.MemAddr]. It is not a host name, because some clients
// would look one up.
func (s *Server) MemAddr() string { return s.first.replica.memAddr() }

func (r *replica) memAddr() string { return "127.0.0." + strconv.Itoa(r.number) + ":1" }

// Dialer returns [Client.Dialer] of the client without a name.
func (s *Server) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return s.Client("").Dialer()
}

// DialContext calls [Client.DialContext] of the client without a name.
func (s *Server) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.Client("").DialContext(ctx, network, address)
}

// Dialer returns a function that connects in memory, without sockets and ports. In a bubble of
// testing/synctest the connection follows the bubble's clock. The connections behave as TCP
// connections do. The function has the type that the Go driver expects.
func (c *Client) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx := context.Background()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		return c.DialContext(ctx, network, address)
	}
}

// DialContext connects in memory, see [Client.Dialer]. It fails as a TCP dialer does: with
// "connection refused" if the server is stopped or refuses the client, and when ctx ends if the
// network is cut.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := c.dial(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: memoryAddr(address), Err: err}
	}
	return nc, nil
}

func (c *Client) dial(ctx context.Context, address string) (net.Conn, error) {
	if inBubble(time.Now()) != inBubble(c.srv.started) {
		panic("zktest: a dial in another bubble of testing/synctest than the server's, or in none: " +
			"make the server where its clients are")
	}
	number, r := c.nextDial(), c.srv.at(address)
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(c.number)), Port: 10_000 + number%50_000}
	client, server, takes := c.pipe(number, from, tcpAddr(r.memAddr()))
	if err := pause(ctx, takes); err != nil {
		return nil, err
	}
	if err := c.awaitCable(ctx, number); err != nil {
		return nil, err
	}
	if !c.srv.accept(c, r, server) {
		return nil, refused
	}
	return client, nil
}

// awaitCable waits until the network is not cut, or until the server stops.
func (c *Client) awaitCable(ctx context.Context, number int) error {
	for c.dialling.Closed() {
		select {
		case <-c.dialling.Opened():
			c.awaitSlot(requestArrives, number)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.srv.stopping():
			return refused
		}
	}
	return nil
}

var refused = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// stopping returns a channel that is closed when the server stops.
func (s *Server) stopping() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return closed
	}
	return s.life.done
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (c *Client) nextDial() int {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.dials++
	return c.dials
}

// at returns the replica that listens on an address in memory.
func (s *Server) at(address string) *replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.followers {
		if f.replica.memAddr() == address {
			return f.replica
		}
	}
	return s.first.replica
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func tcpAddr(address string) *net.TCPAddr {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return &net.TCPAddr{IP: net.ParseIP(host), Port: n}
}

// memoryAddr is an address as the caller of the dialer gave it.
type memoryAddr string

func (a memoryAddr) Network() string { return "tcp" }
func (a memoryAddr) String() string  { return string(a) }
