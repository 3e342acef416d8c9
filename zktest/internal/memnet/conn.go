package memnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is one end of a connection. Its methods may be called from any goroutine.
type Conn struct {
	peer          *Conn
	local, remote *net.TCPAddr

	mu              *sync.Mutex // of both ends, because most operations concern both; never held while waiting
	in              inbound
	closed          bool // by Close or Reset
	finished        bool // the end of our stream was sent
	told            bool // a reset that arrived was returned as an error, which happens once
	readBy, writeBy time.Time
	deadlines       Schedule // maps a deadline to the instant at which it passes; nil means unchanged
	turn            turn
}

var _ net.Conn = (*Conn)(nil)

var errNothing = errors.New("nothing has arrived") // Read waits; never returned to a caller

// Read returns data that has arrived, and waits if there is none.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn.take(c.mu)
	defer c.turn.pass()
	for {
		n, err := c.tryRead(p, time.Now())
		if err != errNothing {
			return n, c.opError("read", err)
		}
		c.turn.wait(c.mu, earliest(c.in.next(), c.readBy))
	}
}

func (c *Conn) tryRead(p []byte, now time.Time) (int, error) {
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case len(p) == 0: // package net checks the deadline only after this
		return 0, nil
	case reached(c.readBy, now):
		return 0, os.ErrDeadlineExceeded
	case !reached(c.in.next(), now):
		return 0, errNothing
	}
	if n := c.in.read(p, now); n > 0 {
		return n, nil
	}
	return 0, c.streamEnd(now)
}

// streamEnd returns the error of a Read that has nothing left to read, now or ever.
func (c *Conn) streamEnd(now time.Time) error {
	if c.in.fin.IsZero() {
		if err := c.lost(now); err != nil {
			return os.NewSyscallError("read", err)
		}
	}
	return io.EOF
}

// lost returns the error for the first call after a reset has arrived, and nil afterwards.
func (c *Conn) lost(now time.Time) error {
	if c.told || !reached(c.in.rst, now) {
		return nil
	}
	c.told = true
	if !c.in.fin.IsZero() {
		return syscall.EPIPE
	}
	return syscall.ECONNRESET
}

// Write sends a copy of p without waiting. All of p arrives at one instant.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if err := c.writable(now); err != nil {
		return 0, c.opError("write", err)
	}
	if len(p) > 0 {
		c.send(p, now)
	}
	return len(p), nil
}

func (c *Conn) writable(now time.Time) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case reached(c.writeBy, now):
		return os.ErrDeadlineExceeded
	}
	if err := c.lost(now); err != nil {
		return os.NewSyscallError("write", err)
	}
	if c.finished || reached(c.in.rst, now) {
		return os.NewSyscallError("write", syscall.EPIPE)
	}
	return nil
}

func (c *Conn) send(p []byte, now time.Time) {
	at := c.peer.expect(now)
	if c.peer.closed {
		c.abort(at)
		return
	}
	c.peer.in.queue = append(c.peer.in.queue, delivery{at: at, data: bytes.Clone(p)})
}

// expect returns the time at which data that the peer sends now arrives here. It wakes a waiting
// Read then.
func (c *Conn) expect(now time.Time) time.Time {
	first := c.in.next().IsZero() // otherwise Read already waits for an earlier arrival
	at := c.in.arrival(now)
	if first {
		c.turn.wakeAt(earliest(at, c.readBy))
	}
	return at
}

// abort sends a reset from the peer to this end.
func (c *Conn) abort(now time.Time) {
	if !c.closed && c.in.rst.IsZero() {
		c.in.rst = c.expect(now)
	}
}

// Buffered returns the number of bytes that have arrived and have not been read.
func (c *Conn) Buffered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.buffered(time.Now())
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }
