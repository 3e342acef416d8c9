package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/docent-zk/docent/internal/port"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/gate"
)

// TB is the part of a test that [Start] needs. *testing.T and *testing.B implement it.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Proxy passes on connections to a target. Its methods may be called from any goroutine.
type Proxy struct {
	port     *port.Port
	up, down *gate.Gate // for requests, for replies
	rules    fault.Rules
	running  sync.WaitGroup // the accepting goroutine and one for each connection

	closing   sync.Once  // releases the port
	switching sync.Mutex // held while listener changes

	mu          sync.Mutex
	listener    net.Listener // nil while refusing
	target      string
	conns       map[*conn]struct{}
	counts      fault.Counts
	blackhole   bool
	holdReplies bool
	closed      bool
}

// Start returns a proxy in front of target, host:port, that is closed when the test ends.
func Start(t TB, target string) *Proxy {
	t.Helper()
	p, err := New(target)
	if err != nil {
		t.Fatalf("%v", err)
		return nil // in case Fatalf of a TB returns
	}
	t.Cleanup(p.Close)
	return p
}

// New returns a proxy in front of target, host:port. It sends nothing to target before a client
// connects. The proxy runs until Close.
func New(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("proxy: target %q: %w", target, err)
	}
	p := &Proxy{
		target: target, up: gate.New(), down: gate.New(), conns: map[*conn]struct{}{}, counts: fault.Counts{},
	}
	var err error
	if p.port, err = port.New(); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	listener, err := p.port.Listen()
	if err != nil {
		p.port.Close()
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.listen(listener)
	return p, nil
}

// Close ends all connections and waits for all goroutines of the proxy. Further calls do nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.shut()
	p.running.Wait()
	p.closing.Do(p.port.Close)
}

// listen starts to accept connections.
func (p *Proxy) listen(listener net.Listener) {
	p.mu.Lock()
	p.listener = listener
	p.mu.Unlock()
	p.running.Go(func() { p.accept(listener) })
}

// accept accepts connections until listener is closed. Other errors concern single connections, or
// are temporary.
func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.serve(listener, client)
		}
	}
}

// serve starts a connection, unless its listener is being closed.
func (p *Proxy) serve(listener net.Listener, client net.Conn) {
	c, ctx := newConn(p, client)
	p.mu.Lock()
	late := p.listener != listener
	if !late {
		p.conns[c] = struct{}{}
	}
	p.mu.Unlock()
	if late {
		c.close()
		return
	}
	p.running.Go(func() { c.run(ctx) })
}

// shut stops accepting and ends all connections.
func (p *Proxy) shut() {
	p.switching.Lock()
	defer p.switching.Unlock()
	p.mu.Lock()
	listener := p.listener
	p.listener = nil
	p.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
	}
	p.DropConnections()
}

// Addr returns the address, host:port, to which clients connect. It stays the same while the proxy
// refuses connections.
func (p *Proxy) Addr() string { return p.port.Addr() }

// SetTarget sends new connections to another server. Existing connections stay; call
// [Proxy.DropConnections] afterwards to move them.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

func (p *Proxy) currentTarget() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Requests returns the number of requests of each type that the clients have sent since the last
// [Proxy.ResetCounts]. A request is counted on arrival, even if a rule then drops or holds it. A
// request that [Proxy.Blackhole] keeps back is not counted yet. Opening a session is not a request.
// The caller may change the map.
func (p *Proxy) Requests() fault.Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts.Clone()
}

// ResetCounts sets the counts to 0. The hits of rules stay.
func (p *Proxy) ResetCounts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = fault.Counts{}
}

// meet counts a request and returns the rule that decides about it, or nil.
func (p *Proxy) meet(req request) *fault.Rule {
	p.mu.Lock()
	p.counts[req.op]++
	p.mu.Unlock()
	return p.rules.Meet(fault.Request{Op: req.op, Path: req.path})
}

// Blackhole(true) stops forwarding in both directions and keeps all sockets open: each side sees a
// silent network, not the end of a connection. New connections are accepted and get no answer.
// Blackhole(false) forwards what was kept back, in order on each connection, including the ends of
// connections. It drops a connection that was made meanwhile if its client has given up. What is
// already on its way when Blackhole is called may still arrive.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blackhole = on
	p.setGates()
}

// BlackholeReplies is [Proxy.Blackhole] for the direction from the server to the clients: requests
// are carried out, and replies and watch events are kept back. The two switches are independent.
func (p *Proxy) BlackholeReplies(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holdReplies = on
	p.setGates()
}

// setGates opens and closes the gates. The caller holds p.mu.
func (p *Proxy) setGates() {
	p.up.Set(!p.blackhole)
	p.down.Set(!p.blackhole && !p.holdReplies)
}

// Refuse(true) closes the port and all connections, as if the server's process had ended: the
// operating system refuses clients that connect. Refuse(false) opens the same port again. On
// systems other than Linux another process may have taken it. Refuse returns an error if the port
// cannot be opened, or if the proxy is closed.
func (p *Proxy) Refuse(on bool) error {
	if on {
		p.shut()
		return nil
	}
	p.switching.Lock()
	defer p.switching.Unlock()
	if p.listening() {
		return nil
	}
	listener, err := p.port.Listen()
	if err != nil {
		return fmt.Errorf("proxy: accept again: %w", err)
	}
	if p.isClosed() {
		_ = listener.Close()
		return fmt.Errorf("proxy: accept again on %s: %w", p.Addr(), net.ErrClosed)
	}
	p.listen(listener)
	return nil
}

func (p *Proxy) listening() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener != nil
}

func (p *Proxy) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// DropConnections closes all connections, on both sides. Clients may connect again at once.
func (p *Proxy) DropConnections() {
	p.mu.Lock()
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
}

// Connections returns the number of open connections from clients. A connection that its client has
// closed counts until its end is passed on, which a blackhole or a held request delays.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Proxy) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
