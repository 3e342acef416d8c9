// Package port keeps TCP ports, so that a server can stop listening for a while and keep its
// address. A port that is kept and not listened on refuses connections. Only a server that asks for
// its number can listen on it: no other socket gets it by chance.
package port

import (
	"fmt"
	"net"
	"strconv"
)

// Port is a port of the loopback interface.
type Port struct {
	number int
	keep   keeper
}

// New takes a free port.
func New() (*Port, error) {
	keep, number, err := take()
	if err != nil {
		return nil, fmt.Errorf("no port on the loopback interface: %w", err)
	}
	return &Port{number, keep}, nil
}

// Number returns the number of the port.
func (p *Port) Number() int { return p.number }

// Addr returns host:port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Listen starts to listen on the port. There may be one listener at a time. Another process can
// listen instead, if it sets SO_REUSEADDR, as servers usually do.
func (p *Port) Listen() (net.Listener, error) { return net.Listen("tcp4", p.Addr()) }

// Close releases the port. An open listener stays open.
func (p *Port) Close() { p.keep.close() }
