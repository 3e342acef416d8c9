package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/docent-zk/docent/zktest/internal/gate"
	"github.com/docent-zk/docent/zktest/internal/port"
	"github.com/docent-zk/docent/zktest/internal/rule"
)

// TB is what [Start] needs of a test. *testing.T and *testing.B have it.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Proxy passes on connections to a target. Its methods may be called from any goroutine.
type Proxy struct {
	port     *port.Port
	up, down *gate.Gate // for requests, for replies
	rules    rule.Set[Action]
	running  sync.WaitGroup // the accepting goroutine and one for each connection

	closing   sync.Once  // gives the port back
	switching sync.Mutex // held by those who change listener

	mu          sync.Mutex
	listener    net.Listener // nil while refusing
	target      string
	conns       map[*conn]struct{}
	counts      Counts
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
		return nil // for a TB whose Fatalf returns
	}
	t.Cleanup(p.Close)
	return p
}

// New returns a proxy in front of target, host:port. Nothing is sent there before a client connects. The proxy runs until
// Close.
func New(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("proxy: target %q: %w", target, err)
	}
	p := &Proxy{target: target, up: gate.New(), down: gate.New(), conns: map[*conn]struct{}{}, counts: Counts{}, rules: rule.Set[Action]{Package: "proxy"}}
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

// Close ends all connections and waits for everything that the proxy runs. Further calls do nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.shut()
	p.running.Wait()
	p.closing.Do(p.port.Close)
}

// listen begins to accept.
func (p *Proxy) listen(listener net.Listener) {
	p.mu.Lock()
	p.listener = listener
	p.mu.Unlock()
	p.running.Go(func() { p.accept(listener) })
}

// accept ends when listener is closed. Other errors are those of single connections, or pass.
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

// serve starts a connection, unless it came in while its listener was being closed.
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

// shut stops to accept and ends all connections.
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

// Addr is where clients connect, host:port. It stays the same while the proxy refuses connections.
func (p *Proxy) Addr() string { return p.port.Addr() }

// SetTarget sends new connections to another server. Those that exist stay where they are: follow with
// [Proxy.DropConnections] to move them.
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

// Requests counts what the clients have sent since the last [Proxy.ResetCounts], by type. A request counts as it comes, so
// one that a rule drops or holds counts, and one that [Proxy.Blackhole] keeps back does not yet. Opening a session is no
// request. The map is the caller's.
func (p *Proxy) Requests() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts.Clone()
}

// ResetCounts begins to count anew. The hits of rules stay.
func (p *Proxy) ResetCounts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = Counts{}
}

// meet counts a request and returns the rule that decides about it, or nil.
func (p *Proxy) meet(req request) *rule.Rule[Action] {
	p.mu.Lock()
	p.counts[req.op]++
	p.mu.Unlock()
	return p.rules.Meet(rule.Request{Op: req.op, Path: req.path})
}

// Blackhole on forwards nothing any more, in either direction, and keeps all sockets open: each side sees a silent
// network, not an end. New connections are accepted and get no answer. Off lets go what was kept back, in the order in
// which it came on each connection, ends of connections included; a connection made in the meantime whose client has
// given up is forgotten. What is already on its way when Blackhole is called may still arrive.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blackhole = on
	p.setGates()
}

// BlackholeReplies is [Proxy.Blackhole] for the direction from the server to the clients: requests are carried out, and
// replies and watch events are kept back. The two switches do not undo each other.
func (p *Proxy) BlackholeReplies(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holdReplies = on
	p.setGates()
}

// setGates needs p.mu.
func (p *Proxy) setGates() {
	p.up.Set(!p.blackhole)
	p.down.Set(!p.blackhole && !p.holdReplies)
}

// Refuse on closes the port and all connections, as if the server's process were gone: clients that connect are refused by
// the operating system. Off opens the same port again; on systems other than Linux somebody else may have taken it. It is an error
// if it cannot be opened, or if the proxy is closed.
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

// Connections is how many connections from clients are open. One that the client has closed counts until its end may be
// passed on, which a blackhole or a held request delays.
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
