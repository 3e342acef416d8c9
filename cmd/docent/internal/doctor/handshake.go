package doctor

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A client of package framework chooses the server itself, and none that is read-only. So this
// package opens sessions by itself to look at one server: connect request, reply, close request.

// session is what a connect request asks for, and what a reply grants.
type session struct {
	timeout  int32 // in milliseconds; of a reply, 0: the server refuses the session
	id       int64 // 0: a new session
	password [16]byte
	readOnly bool // of a reply: the server has no quorum
}

// granted returns the timeout of a reply.
func (s session) granted() time.Duration { return time.Duration(s.timeout) * time.Millisecond }

const (
	requestSize  = 45
	shortestSize = 36   // of a connect reply, without readOnly
	longestSize  = 4096 // of an answer
)

// request returns a connect request that a read-only server answers, too.
func (s session) request() []byte {
	b := binary.BigEndian.AppendUint32(nil, requestSize)
	b = append(b, make([]byte, 4+8)...) // the version of the protocol, and the last transaction seen
	b = binary.BigEndian.AppendUint32(b, uint32(s.timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(s.id))
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.password)))
	b = append(b, s.password[:]...)
	return append(b, 1)
}

// closeRequest is the request that closes a session.
var closeRequest = []byte{0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5} // of 8 bytes: number 1, code -11

// link is a connection with a session.
type link struct {
	net.Conn
	session
	took time.Duration // for the reply
	stop func() bool
}

// errNoReply means that a server has accepted a connection and has not answered.
var errNoReply = errors.New("no answer to the connect request")

// open connects to one server with a session. The connection ends with ctx.
func (e *examination) open(ctx context.Context, p *peer, ask session) (*link, error) {
	conn, err := e.Dial(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	if e.TLS != nil {
		settings := e.TLS.Clone()
		if settings.ServerName == "" {
			settings.ServerName = p.host
		}
		conn = tls.Client(conn, settings)
	}
	l := &link{Conn: conn, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	sent := time.Now()
	_, err = conn.Write(ask.request())
	if err == nil {
		l.session, err = readReply(conn)
	}
	if err != nil {
		l.drop()
		return nil, fmt.Errorf("%w: %w", errNoReply, err)
	}
	l.took = time.Since(sent)
	return l, nil
}

func readReply(r io.Reader) (session, error) {
	b, err := readFrame(r)
	if err == nil && len(b) < shortestSize {
		err = notZooKeeper(len(b))
	}
	if err != nil {
		return session{}, err
	}
	s := session{timeout: int32(binary.BigEndian.Uint32(b[4:])), id: int64(binary.BigEndian.Uint64(b[8:]))}
	copy(s.password[:], b[20:])
	s.readOnly = len(b) > shortestSize && b[shortestSize] != 0
	return s, nil
}

// readFrame reads an answer after its size.
func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > longestSize {
		return nil, notZooKeeper(int(n))
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

func notZooKeeper(size int) error {
	return fmt.Errorf("not a ZooKeeper server: an answer of %d bytes", size)
}

// drop closes the connection. The session goes on.
func (l *link) drop() {
	l.stop()
	_ = l.Close()
}

// end closes the session, and waits for the answer, or until the connection ends.
func (l *link) end() {
	if _, err := l.Write(closeRequest); err == nil {
		_, _ = readFrame(l)
	}
	l.drop()
}
