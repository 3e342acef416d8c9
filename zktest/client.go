package zktest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/docent-zk/docent/zktest/internal/gate"
	"github.com/docent-zk/docent/zktest/op"
)

// Client is the way from one client to the servers, by name: faults of its network, its counters, its part in traces. It is no client
// itself. The empty name is that of clients who use the server's own [Server.Addr] and [Server.Dialer]. Its methods may be called from
// any goroutine.
//
// Switches work on what the client sends and gets from the moment on at which they are called, on connections that exist and on new
// ones. Several may be on at once.
type Client struct {
	srv    *Server
	name   string
	number int // in the order in which they were named

	requests, replies *gate.Gate // closed while cut
	frozen, events    *gate.Gate
	dialling          *gate.Gate // closed while cut, in any direction

	// Guarded by srv.mu.
	refuses, blackhole bool
	doors              []*door
	dials              int
	counts             op.Counts
}

// Client returns the client of that name. Names are made by using them.
func (s *Server) Client(name string) *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.name == name {
			return c
		}
	}
	c := &Client{
		srv: s, name: name, number: len(s.clients), requests: gate.New(), replies: gate.New(), frozen: gate.New(),
		events: gate.New(), dialling: gate.New(), counts: op.Counts{},
	}
	s.clients = append(s.clients, c)
	return c
}

// Name is the client's name.
func (c *Client) Name() string { return c.name }

// MemAddr is the address of the server, host:port, for those who dial in memory. Nobody listens there, so a client that was not given the
// dialer is refused. The dialers also take any other address as that of the server, but for the [Follower.MemAddr] of a follower. Host
// names would be looked up by some clients; this is none.
func (s *Server) MemAddr() string { return s.leader.memAddr() }

func (r *replica) memAddr() string { return "127.0.0." + strconv.Itoa(r.number) + ":1" }

// Dialer is [Client.Dialer] of the client without a name.
func (s *Server) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return s.Client("").Dialer()
}

// DialContext is [Client.DialContext] of the client without a name.
func (s *Server) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.Client("").DialContext(ctx, network, address)
}

// Dialer returns a function that connects in memory: no sockets, no ports, and in a bubble of testing/synctest the connection follows the
// bubble's clock. The connections behave like those of TCP. The function is of the type that the Go driver wants.
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

// DialContext connects in memory, see [Client.Dialer]. It fails as a dialer of TCP would: refused if the server is stopped or the client's
// connections are refused, and when ctx ends if the network is cut.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := c.dial(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: memoryAddr(address), Err: err}
	}
	return nc, nil
}

func (c *Client) dial(ctx context.Context, address string) (net.Conn, error) {
	if inBubble(time.Now()) != inBubble(c.srv.started) {
		panic("zktest: a dial in another bubble of testing/synctest than the server's, or in none: make the server where its clients are")
	}
	number, r := c.nextDial(), c.srv.at(address)
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(c.number)), Port: 10_000 + number%50_000}
	client, server, takes := c.pipe(number, from, tcpAddr(r.memAddr()))
	if err := pause(ctx, takes); err != nil {
		return nil, err
	}
	if err := c.awaitCable(ctx); err != nil {
		return nil, err
	}
	if !c.srv.accept(c, r, server) {
		return nil, refused
	}
	return client, nil
}

// awaitCable waits until the network is not cut, or the server is not there.
func (c *Client) awaitCable(ctx context.Context) error {
	for c.dialling.Closed() {
		select {
		case <-c.dialling.Opened():
			c.settle(requestArrives)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.srv.stopping():
			return refused
		}
	}
	return nil
}

var refused = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// stopping is closed when the server stops.
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

// at is the replica that listens on an address in memory.
func (s *Server) at(address string) *replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.followers {
		if f.replica.memAddr() == address {
			return f.replica
		}
	}
	return s.leader
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

// memoryAddr is an address as it was given.
type memoryAddr string

func (a memoryAddr) Network() string { return "tcp" }
func (a memoryAddr) String() string  { return string(a) }

// Cut ends all traffic between the client and the servers, as a broken cable does: nobody is told. What is sent meanwhile arrives after
// [Client.Heal], even if its sender has given up by then; connections that the client tries to make in memory wait for that, until they
// time out. Over TCP they are made, and get no answer. The sessions' time goes on.
func (c *Client) Cut() {
	c.tell("cut")
	c.cut(c.requests)
	c.cut(c.replies)
}

// CutRequests is [Client.Cut] for what the client sends.
func (c *Client) CutRequests() {
	c.tell("requests cut")
	c.cut(c.requests)
}

// CutReplies is [Client.Cut] for what the client gets: requests are carried out, and answers and events are kept back.
func (c *Client) CutReplies() {
	c.tell("replies cut")
	c.cut(c.replies)
}

func (c *Client) cut(g *gate.Gate) {
	c.dialling.Set(false)
	g.Set(false)
}

// Heal undoes Cut, CutRequests and CutReplies, and nothing else.
func (c *Client) Heal() {
	c.tell("healed")
	c.requests.Set(true)
	c.replies.Set(true)
	c.dialling.Set(true)
}

// Freeze makes the server do nothing for this client, and keep what it sends: like [Client.Cut], but new connections are accepted. The
// sessions' time goes on.
func (c *Client) Freeze() {
	c.tell("frozen")
	c.frozen.Set(false)
}

// Thaw undoes Freeze.
func (c *Client) Thaw() {
	c.tell("thawed")
	c.frozen.Set(true)
}

// HoldEvents keeps back the next watch event to the client, and all that follows it on its connection: nothing overtakes, so a client that
// gets events late gets everything late.
func (c *Client) HoldEvents() {
	c.tell("events held")
	c.events.Set(false)
}

// ReleaseEvents undoes HoldEvents.
func (c *Client) ReleaseEvents() {
	c.tell("events released")
	c.events.Set(true)
}

// tell traces what the test does to the client.
func (c *Client) tell(what string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: what, Note: "by the test"})
}

// Blackhole on swallows for good what the client sends from now on and what it would be sent. Connections are accepted and get no answer.
// Off resets the connections that have lost something.
func (c *Client) Blackhole(on bool) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: fmt.Sprintf("black hole: %v", on), Note: "by the test"})
	c.blackhole = on
	for _, conn := range c.conns() {
		if on {
			conn.swallows.Store(true)
		} else if conn.swallows.Swap(false) && conn.lost.Load() {
			conn.end(resetAll)
		}
	}
}

// Refuse on refuses new connections of the client. Those that exist stay; see [Client.Drop]. Over TCP the system has accepted a connection
// before the server hears of it: there it ends at once.
func (c *Client) Refuse(on bool) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: fmt.Sprintf("refused: %v", on), Note: "by the test"})
	c.refuses = on
}

// Drop ends all connections of the client when all has been sent that it has been answered. It may connect again at once.
func (c *Client) Drop() { c.end(flushAll, "drop") }

// Reset is Drop with a TCP reset; what has not arrived yet is lost.
func (c *Client) Reset() { c.end(resetAll, "reset") }

func (c *Client) end(how ending, verb string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: verb, Note: "by the test"})
	for _, conn := range c.conns() {
		conn.end(how)
	}
}

// conns are the client's connections. It needs srv.mu.
func (c *Client) conns() []*conn {
	if c.srv.life == nil {
		return nil
	}
	var all []*conn
	for _, conn := range sortedConns(c.srv.life.conns) {
		if conn.client == c {
			all = append(all, conn)
		}
	}
	return all
}

// Connections is how many connections of the client are open.
func (c *Client) Connections() int {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	open := 0
	for _, conn := range c.conns() {
		if !conn.ended {
			open++
		}
	}
	return open
}

// WaitSession waits until the client has a session and a connection, and returns the session. It is an error if ctx ends before.
func (c *Client) WaitSession(ctx context.Context) (Session, error) {
	for {
		sess, joined := c.connected()
		if sess.srv != nil {
			return sess, nil
		}
		select {
		case <-joined:
		case <-ctx.Done():
			return Session{}, fmt.Errorf("zktest: wait for a session of %v: %w", c, context.Cause(ctx))
		}
	}
}

// connected is a session of the client that has a connection, and what is closed at the next.
func (c *Client) connected() (Session, <-chan struct{}) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	for _, id := range c.srv.sessionIDs() {
		if sess := c.srv.sessions[id]; sess.conn != nil && sess.conn.client == c {
			return c.srv.look(sess), nil
		}
	}
	return Session{}, c.srv.joined
}

// Sessions are the sessions that the client has opened and that have not ended.
func (c *Client) Sessions() []Session {
	var own []Session
	for _, s := range c.srv.Sessions() {
		if s.Client == c.name {
			own = append(own, s)
		}
	}
	return own
}

// Requests counts what the client has sent since the last [Server.ResetCounts], by type. A request counts when the server reads it.
func (c *Client) Requests() Counts {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	return c.counts.Clone()
}

// String names the client as traces do.
func (c *Client) String() string {
	if c.name == "" {
		return "-"
	}
	return c.name
}
