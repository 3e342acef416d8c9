package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Info is what the server told about the session.
type Info struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // negotiated
}

// request is one that was sent and waits for its reply.
type request struct {
	xid     int32
	sent    Stamp
	touches bool // whether the server extends the session for it
}

// shim stands between the driver and the socket. The driver reads and writes on one goroutine each.
type shim struct {
	net.Conn
	owner     *Conn
	server    string
	handshake time.Time // until when the connect reply must have come

	// Of the reading goroutine.
	greeted bool   // the connect reply has been read
	pending []byte // of it, what the driver has not taken yet
	in      replies

	mu        sync.Mutex
	asked     bool  // the connect request has been written
	askedFor  int64 // the session id in it
	connected Stamp // when it was sent
	waiting   []request
}

func newShim(c net.Conn, owner *Conn, server string, handshake time.Time) *shim {
	return &shim{Conn: c, owner: owner, server: server, handshake: handshake}
}

// Write never reports an error: the driver may wait for ever after one. The socket is closed instead, and the reading
// side tells the driver.
func (s *shim) Write(b []byte) (int, error) {
	s.note(b)
	if _, err := s.Conn.Write(b); err != nil {
		s.owner.log.Debug("write failed: closing the connection", zap.String("server", s.server), zap.Error(err))
		s.Conn.Close()
	}
	return len(b), nil
}

// note records a request before it leaves. The driver writes one whole frame at a time.
func (s *shim) note(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked, s.connected = true, Now()
		if len(frame) >= connectRequestSession+8 {
			s.askedFor = int64(binary.BigEndian.Uint64(frame[connectRequestSession:]))
		}
		return
	}
	if len(frame) < lengthSize+8 {
		return
	}
	xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
	op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:]))
	s.waiting = append(s.waiting, request{xid, Now(), op != opAuth})
}

// Read hands the driver the connect reply as one piece, examined and perhaps changed; later replies as they come.
func (s *shim) Read(b []byte) (int, error) {
	if !s.greeted {
		if err := s.greet(); err != nil {
			s.owner.failed(s.server, err)
			return 0, err
		}
	}
	if len(s.pending) > 0 {
		n := copy(b, s.pending)
		s.pending = s.pending[n:]
		return n, nil
	}
	n, err := s.Conn.Read(b)
	s.in.feed(b[:n], s.answered)
	return n, err
}

// greet reads the connect reply.
func (s *shim) greet() error {
	if err := s.Conn.SetReadDeadline(s.handshake); err != nil {
		return err
	}
	frame := make([]byte, lengthSize)
	if _, err := io.ReadFull(s.Conn, frame); err != nil {
		return fmt.Errorf("no reply to the connect request: %w", err)
	}
	n := int(binary.BigEndian.Uint32(frame))
	if n < connectReplyMin || n > connectReplyMax {
		return fmt.Errorf("the reply to the connect request is %d bytes long: not a ZooKeeper server", n)
	}
	frame = append(frame, make([]byte, n)...)
	if _, err := io.ReadFull(s.Conn, frame[lengthSize:]); err != nil {
		return fmt.Errorf("half a reply to the connect request: %w", err)
	}
	s.examine(frame[lengthSize:])
	s.greeted, s.pending = true, frame
	return s.Conn.SetReadDeadline(time.Time{})
}

// examine learns about the session. A server that answers with another session than the one asked for has lost ours;
// the driver would not notice, so the reply is changed into what a server says of an expired session.
func (s *shim) examine(reply []byte) {
	s.mu.Lock()
	askedFor, sent := s.askedFor, s.connected
	s.mu.Unlock()
	id := int64(binary.BigEndian.Uint64(reply[connectReplySession:]))
	if id == 0 || askedFor != 0 && id != askedFor {
		clear(reply[connectReplyTimeout:connectReplyPassword])
		return
	}
	ms := int32(binary.BigEndian.Uint32(reply[connectReplyTimeout:]))
	info := Info{ID: id, Timeout: time.Duration(ms) * time.Millisecond}
	if n := int(int32(binary.BigEndian.Uint32(reply[connectReplyPassword:]))); n > 0 && n <= len(reply)-connectReplyMin {
		info.Password = append([]byte(nil), reply[connectReplyMin:connectReplyMin+n]...)
	}
	s.owner.established(info, sent)
}

// answered takes the request with this xid off the list and tells when it was sent. Replies come in the order of the
// requests, but for those to auth.
func (s *shim) answered(xid int32) {
	s.mu.Lock()
	var found request
	for i, r := range s.waiting {
		if r.xid == xid {
			found = r
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			break
		}
	}
	s.mu.Unlock()
	if found.touches {
		s.owner.touched(found.sent)
	}
}

// SetReadDeadline is the driver's; until the connect reply has been read, ours stands.
func (s *shim) SetReadDeadline(t time.Time) error {
	if !s.greeted {
		return nil
	}
	return s.Conn.SetReadDeadline(t)
}

// SetWriteDeadline keeps the driver from waiting longer for the handshake than we want.
func (s *shim) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	if !asked {
		t = s.handshake
	}
	return s.Conn.SetWriteDeadline(t)
}
