package zktest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/docent-zk/docent/zktest/internal/port"
)

// door is a listening socket: the way of one client to one of the servers.
type door struct {
	client  *Client
	replica *replica
	addr    string
	port    *port.Port // nil if the address was given

	mu       sync.Mutex
	listener net.Listener   // nil while closed
	running  sync.WaitGroup // the accepting goroutine
}

// Addr is where clients of any kind connect, host:port on the loopback interface. The port is opened at the first call, and stays
// the same for as long as the server exists. If it cannot be opened Addr panics, and also in a bubble of testing/synctest, which knows no
// sockets: use [Server.Dialer] there.
func (s *Server) Addr() string { return s.Client("").Addr() }

// Addr is a port of this client's own, see [Server.Addr].
func (c *Client) Addr() string { return c.addrOf(c.srv.first.replica) }

// addrOf is the address of a replica for this client.
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

// listen opens the door of the nameless client at a given address.
func (s *Server) listen(address string) error {
	s.switching.Lock()
	defer s.switching.Unlock()
	_, err := s.Client("").newDoor(s.first.replica, address)
	return err
}

// newDoor needs srv.switching. The door of a server that is stopped is closed again, but has its address. An empty address is any.
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

// open begins to accept.
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

// remove gives the port back, too.
func (d *door) remove() {
	if d.port != nil {
		d.port.Close()
	}
}

const acceptPause = 5 * time.Millisecond

// accept ends when listener is closed. Other errors are those of single connections, or pass.
func (d *door) accept(listener net.Listener) {
	for {
		nc, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause) // out of descriptors, say; there is nothing to wait for
			continue
		}
		if d.crowded(nc) || !d.client.srv.accept(d.client, d.replica, nc) {
			turnAway(nc)
		}
	}
}

// turnAway ends a connection as the real server does: the client sees its end, and everything after that as a reset.
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
