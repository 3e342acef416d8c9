package memnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Close ends the stream after the data that was written. If data has arrived and was not read, it
// resets the connection instead.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	now := time.Now()
	if c.in.buffered(now) > 0 {
		c.peer.abort(now)
	} else {
		c.finish(now)
		c.refuse()
	}
	c.end()
	return nil
}

// Reset closes the connection with a reset, whatever was written or read. On a closed end it does
// nothing.
func (c *Conn) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.peer.abort(time.Now())
	c.end()
}

// CloseWrite ends the stream to the peer after the data that was written. The other direction stays
// open.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	if reached(c.in.rst, now) || c.finished && reached(c.in.fin, now) {
		return c.opError("close", os.NewSyscallError("shutdown", syscall.ENOTCONN))
	}
	c.finish(now)
	return nil
}

// finish sends the end of the stream.
func (c *Conn) finish(now time.Time) {
	if c.finished {
		return
	}
	c.finished = true
	c.peer.in.fin = c.peer.expect(now)
}

// refuse answers data that arrives after this end is closed with a reset.
func (c *Conn) refuse() {
	if len(c.in.queue) > 0 {
		c.peer.abort(c.in.queue[0].at)
	}
}

func (c *Conn) end() {
	c.closed = true
	c.in.queue = nil
	c.turn.wake()
}

// ScheduleDeadlines makes each deadline that is set from now on pass at the instant that the
// schedule returns for it.
func (c *Conn) ScheduleDeadlines(deadlines Schedule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadlines = deadlines
}

// SetDeadline sets the deadline of Read and Write, including a pending Read. The zero time means
// none.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadline(t, &c.readBy, &c.writeBy)
}

// SetReadDeadline is SetDeadline for Read only.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(t, &c.readBy)
}

// SetWriteDeadline is SetDeadline for Write only.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(t, &c.writeBy)
}

func (c *Conn) setDeadline(t time.Time, deadlines ...*time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &net.OpError{Op: "set", Net: c.local.Network(), Addr: c.local, Err: net.ErrClosed}
	}
	if c.deadlines != nil && !t.IsZero() {
		t = c.deadlines(t)
	}
	for _, d := range deadlines {
		*d = t
	}
	c.turn.wakeAt(earliest(c.in.next(), c.readBy))
	return nil
}

// opError wraps an error as package net does, which leaves io.EOF unchanged.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}
