package testzk

import (
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/docent-zk/docent/zktest/fault"
)

// Frail makes connections, some of which break when a credential is written.
type Frail struct {
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Break func(conn net.Conn, frame []byte) error // breaks a connection, and returns the error of the write

	mu   sync.Mutex
	left int           // number of connections that are still to break
	died chan struct{} // closed when the last of them breaks
}

// Kill makes the next n connections break.
func (d *Frail) Kill(n int) (died <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.died = n, make(chan struct{})
	return d.died
}

// DialContext is for framework.WithDialer.
func (d *Frail) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &frailConn{conn, d}, nil
}

// dies reports whether the calling connection must break.
func (d *Frail) dies() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return false
	}
	if d.left--; d.left == 0 {
		close(d.died)
	}
	return true
}

type frailConn struct {
	net.Conn
	dialer *Frail
}

// Write is called with one whole frame at a time. The type of a request follows its length and xid.
func (c *frailConn) Write(frame []byte) (int, error) {
	if len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == uint32(fault.OpAuth) && c.dialer.dies() {
		return 0, c.dialer.Break(c.Conn, frame)
	}
	return c.Conn.Write(frame)
}
