package rawzk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	dialTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	frameLimit   = 64 << 20 // far above what any test's server sends
)

// The ways in which a connection ends, as returned by ReadFrame and ReadAll.
var (
	ErrClosed  = errors.New("rawzk: closed by the server")
	ErrReset   = errors.New("rawzk: reset by the server")
	ErrTimeout = errors.New("rawzk: nothing came in time")
)

// Conn is a connection to a server. One goroutine may write while another reads.
type Conn struct {
	tcp net.Conn
	in  []byte // received and not returned yet
}

// Dial connects to addr, host:port.
func Dial(addr string) (*Conn, error) {
	tcp, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	return NewConn(tcp), nil
}

// NewConn returns a Conn over tcp, which may be any connection.
func NewConn(tcp net.Conn) *Conn { return &Conn{tcp: tcp} }

// SendBytes sends b unchanged.
func (c *Conn) SendBytes(b []byte) error {
	if err := c.tcp.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.tcp.Write(b)
	return err
}

// SendFrame sends payload after its length.
func (c *Conn) SendFrame(payload []byte) error { return c.SendBytes(Frame(payload)) }

// Send sends a request.
func (c *Conn) Send(xid int32, o Op) error { return c.SendFrame(Request(xid, o)) }

// ReadFrame returns the next frame's payload. The errors are ErrClosed, ErrReset and ErrTimeout, or
// wrap them. After ErrTimeout it may be called again.
func (c *Conn) ReadFrame(timeout time.Duration) ([]byte, error) {
	deadline := time.Now().Add(timeout)
	if err := c.fill(4, deadline); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(c.in)))
	if n < 0 || n > frameLimit {
		return nil, fmt.Errorf("rawzk: frame of %d bytes", n)
	}
	if err := c.fill(4+n, deadline); err != nil {
		return nil, err
	}
	payload := c.in[4 : 4+n : 4+n]
	c.in = c.in[4+n:]
	return payload, nil
}

// ReadAll returns what arrives until the server closes the connection. A reset or a timeout is an
// error.
func (c *Conn) ReadAll(timeout time.Duration) ([]byte, error) {
	err := c.fill(frameLimit, time.Now().Add(timeout))
	all := c.in
	c.in = nil
	if errors.Is(err, ErrClosed) {
		err = nil
	}
	return all, err
}

// fill reads until n bytes have arrived.
func (c *Conn) fill(n int, deadline time.Time) error {
	if err := c.tcp.SetReadDeadline(deadline); err != nil {
		return err
	}
	var chunk [32 << 10]byte
	for len(c.in) < n {
		m, err := c.tcp.Read(chunk[:])
		c.in = append(c.in, chunk[:m]...)
		if err != nil && len(c.in) < n {
			return c.ending(err)
		}
	}
	return nil
}

func (c *Conn) ending(err error) error {
	kind := err
	switch {
	case errors.Is(err, io.EOF):
		kind = ErrClosed
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		kind = ErrReset
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	}
	if len(c.in) > 0 {
		return fmt.Errorf("%w in the middle of a message, after %d bytes of it", kind, len(c.in))
	}
	return kind
}

// CloseWrite ends the stream to the server, and leaves the other direction open.
func (c *Conn) CloseWrite() error {
	half, ok := c.tcp.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("rawzk: %T cannot be half closed", c.tcp)
	}
	return half.CloseWrite()
}

// Reset ends the connection with a TCP reset.
func (c *Conn) Reset() error {
	if tcp, ok := c.tcp.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	return c.tcp.Close()
}

// Close closes the connection.
func (c *Conn) Close() error { return c.tcp.Close() }

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.tcp.LocalAddr() }
