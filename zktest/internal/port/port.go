// Package port keeps TCP ports, so that a server can stop listening for a while and keep its
// address. A port that is kept and not listened on refuses connections, and no other socket gets
// it.
package port

import (
	"context"
	"fmt"
	"net"
)

// Port is a port of the loopback interface.
type Port struct {
	addr string
	keep keeper
}

// New takes a free port.
func New() (*Port, error) {
	keep, number, err := take()
	if err != nil {
		return nil, fmt.Errorf("no port on the loopback interface: %w", err)
	}
	return &Port{fmt.Sprintf("127.0.0.1:%d", number), keep}, nil
}

// Addr returns host:port.
func (p *Port) Addr() string { return p.addr }

// Listen starts to listen on the port. There may be one listener at a time.
func (p *Port) Listen() (net.Listener, error) {
	lc := net.ListenConfig{Control: share}
	return lc.Listen(context.Background(), "tcp4", p.addr)
}

// Close releases the port. An open listener stays open.
func (p *Port) Close() { p.keep.close() }
