package zktest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/port"
)

// door is a listening socket: the port of one server for one client.
type door struct {
	client  *Client
	replica *replica
	addr    string
	port    *port.Port // nil if the caller gave the address

	mu       sync.Mutex
	listener net.Listener   // nil while closed
	running  sync.WaitGroup // the accepting goroutine
}

// Addr returns the address, host:port on the loopback interface, to which any client can connect.
// The first call opens the port, which stays the same as long as the server exists. Addr panics if
// no port can be opened, and in a bubble of testing/synctest, which has no sockets: use
// [Server.Dialer] there.
func (s *Server) Addr() string { return s.Client("").Addr() }

// Addr returns the address of a port for this client only, see [Server.Addr].
func (c *Client) Addr() string { return c.addrOf(c.srv.first.replica) }

// addrOf returns the address of a replica for this client.
func (c *Client) addrOf(r *replica) string {
	if inBubble(time.Now()) {
		panic("zktest: Addr in a bubble of testing/synctest, whose clock would stand still: use MemAddr and a dialer")
	}
	c.srv.switching.Lock()
	defer c.srv.switching.Unlock()
	for _, d := range c.listDoors() {
		if d.replica == r {
			return d.addr
		}
	}
	if c.srv.isClosed() {
		panic("zktest: first Addr of a server that was closed")
	}
	d, err := c.newDoor(r, "")
	if err != nil {
		panic(fmt.Sprintf("zktest: no port: %v", err))
	}
	return d.addr
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (c *Client) listDoors() []*door {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	return c.doors
}

// listen opens the door of the client without a name at a given address.
func (s *Server) listen(address string) error {
	s.switching.Lock()
	defer s.switching.Unlock()
	_, err := s.Client("").newDoor(s.first.replica, address)
	return err
}

// newDoor opens a door at address, or at any free port if address is empty. If the server is
// stopped, the door is closed again and keeps its address. The caller holds srv.switching.
func (c *Client) newDoor(r *replica, address string) (*door, error) {
	d := &door{client: c, replica: r, addr: address}
	if address == "" {
		var err error
		if d.port, err = port.New(); err != nil {
			return nil, err
		}
		d.addr = d.port.Addr()
	}
	if err := d.open(); err != nil {
		d.remove()
		return nil, err
	}
	c.srv.mu.Lock()
	c.doors = append(c.doors, d)
	running := c.srv.life != nil
	c.srv.mu.Unlock()
	if !running {
		d.close()
	}
	return d, nil
}

// open starts to accept connections.
func (d *door) open() error {
	listener, err := d.listen()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addr, d.listener = listener.Addr().String(), listener
	d.running.Go(func() { d.accept(listener) })
	return nil
}

func (d *door) listen() (net.Listener, error) {
	if d.port != nil {
		return d.port.Listen()
	}
	return net.Listen("tcp", d.addr)
}

func (d *door) close() {
	d.mu.Lock()
	listener := d.listener
	d.listener = nil
	d.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
	}
	d.running.Wait()
}

// remove releases the port.
func (d *door) remove() {
	if d.port != nil {
		d.port.Close()
	}
}

const acceptPause = 5 * time.Millisecond

// accept accepts connections until listener is closed. Other errors concern single connections, or
// are temporary.
func (d *door) accept(listener net.Listener) {
	for {
		nc, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause) // out of descriptors, for example; there is no event to wait for
			continue
		}
		if d.crowded(nc) || !d.client.srv.accept(d.client, d.replica, nc) {
			turnAway(nc)
		}
	}
}

// turnAway closes a connection as the real server does: the client sees the end of the stream, and
// a reset for everything after it.
func turnAway(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	reset(nc)
	_ = nc.Close()
}

// crowded reports whether there are too many connections from one address.
func (d *door) crowded(nc net.Conn) bool {
	s := d.client.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.maxConns == 0 || s.life == nil {
		return false
	}
	host, count := hostOf(nc.RemoteAddr()), 0
	for c := range s.life.conns {
		if !c.ended && hostOf(c.net.RemoteAddr()) == host {
			count++
		}
	}
	return count >= s.cfg.maxConns
}
