package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
	xid    int32
	sent   Stamp
	proves bool // whether only the leader can have answered it
	auth   bool // a credential
}

// shim stands between the driver and the socket. The driver reads and writes on one goroutine each.
type shim struct {
	net.Conn
	owner     *Conn
	server    string
	handshake time.Time // until when the connect reply must have come
	zxid      int64     // the last that the session has seen before this connection

	// Of the reading goroutine.
	greeted bool   // the connect reply has been read
	pending []byte // of it, what the driver has not taken yet
	in      replies

	gone     chan struct{} // closed by Close
	once     sync.Once     // of gone
	farewell farewell

	mu        sync.Mutex
	asked     bool  // the connect request has been written
	askedFor  int64 // the session id in it
	welcome   bool  // there is a session on this connection
	connected Stamp // when it was sent
	waiting   []request
	heard     time.Time // when something was read last
	limit     time.Time // the deadline that the driver has set
}

func newShim(c net.Conn, owner *Conn, server string, handshake time.Time) *shim {
	return &shim{
		Conn: c, owner: owner, server: server, handshake: handshake, zxid: owner.seen(),
		gone: make(chan struct{}), farewell: newFarewell(),
	}
}

// Close closes the socket.
func (s *shim) Close() error {
	s.once.Do(func() { close(s.gone) })
	return s.Conn.Close()
}

// Write never reports an error: the driver may wait for ever after one. The socket is closed instead, and the reading
// side tells the driver.
func (s *shim) Write(b []byte) (int, error) {
	if s.farewell.over() {
		s.heed(b)
		return len(b), nil
	}
	if _, err := s.Conn.Write(s.note(b)); err != nil {
		s.owner.log.Debug("write failed: closing the connection", zap.String("server", s.server), zap.Error(err))
		s.Close()
	}
	if s.farewell.over() { // meanwhile: then this was asked too late, and would wait for an answer in vain
		s.Close()
	}
	return len(b), nil
}

// note records a request before it leaves, and returns what shall leave in its place. The driver writes one whole frame at a
// time. It tells the servers which zxid it has seen, when it connects and when it sets its watches again; in the latter case it
// may already count replies on the new connection, and the servers would keep silent about what has changed. So it never
// learns of a zxid, and it is put in here.
func (s *shim) note(frame []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked, s.connected = true, Now()
		if len(frame) < connectRequestSession+8 {
			return frame
		}
		s.askedFor = int64(binary.BigEndian.Uint64(frame[connectRequestSession:]))
		return s.stamped(frame, connectRequestZxid)
	}
	if len(frame) < lengthSize+8 {
		return frame
	}
	xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
	op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:]))
	s.waiting = append(s.waiting, request{xid, Now(), throughLeader[op], op == opAuth})
	if len(s.waiting) == 1 && s.owner.replyPatience() > 0 {
		_ = s.Conn.SetReadDeadline(s.until()) // a socket that refuses is closed, and Read tells
	}
	if op == opSetWatches && len(frame) >= setWatchesZxid+zxidSize {
		return s.stamped(frame, setWatchesZxid)
	}
	return frame
}

func (s *shim) stamped(frame []byte, position int) []byte {
	frame = append([]byte(nil), frame...)
	binary.BigEndian.PutUint64(frame[position:], uint64(s.zxid))
	return frame
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
	if s.farewell.over() {
		return s.lastWords(b)
	}
	n, err := s.Conn.Read(b)
	if err == nil && !s.in.feed(b[:n], s.answered) {
		n, err = 0, fmt.Errorf("a reply of impossible length: not a ZooKeeper server")
	}
	if err != nil {
		s.lost(err)
		return n, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	return n, s.Conn.SetReadDeadline(s.until())
}

// lost ends a connection that cannot be read from. The driver's writing side may be waiting in Write and would not notice.
func (s *shim) lost(err error) {
	s.mu.Lock()
	impatient := s.owner.replyPatience() > 0 && len(s.waiting) > 0 && errors.Is(err, os.ErrDeadlineExceeded)
	s.mu.Unlock()
	if impatient {
		s.owner.left(s.server, err)
	}
	s.Close()
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
	if err := s.examine(frame[lengthSize:]); err != nil {
		return err
	}
	s.greeted, s.pending = true, frame
	return s.Conn.SetReadDeadline(time.Time{})
}

// examine learns about the session. A server that answers with another session than the one asked for has lost ours;
// the driver would not notice, so the reply is changed into what a server says of an expired session. So is one that grants no
// time, at which the driver would panic.
func (s *shim) examine(reply []byte) error {
	s.mu.Lock()
	askedFor, sent := s.askedFor, s.connected
	s.mu.Unlock()
	password := reply[connectReplyMin:]
	n := int(int32(binary.BigEndian.Uint32(reply[connectReplyPassword:])))
	if n > len(password) {
		return fmt.Errorf("the reply to the connect request has a password of %d bytes: not a ZooKeeper server", n)
	}
	id := int64(binary.BigEndian.Uint64(reply[connectReplySession:]))
	ms := int32(binary.BigEndian.Uint32(reply[connectReplyTimeout:]))
	if id == 0 || ms <= 0 || askedFor != 0 && id != askedFor {
		clear(reply[connectReplyTimeout:connectReplyPassword])
		return nil
	}
	info := Info{ID: id, Timeout: time.Duration(ms) * time.Millisecond}
	if n > 0 {
		info.Password = append([]byte(nil), password[:n]...)
	}
	s.owner.established(info, sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.welcome = true
	return nil
}

// answered takes the request that got the reply off the list and tells when it was sent. Replies come in the order of the requests, but
// for those to auth. Watch events answer nothing, and a ping shows nothing of the data. False means that no server replies so.
func (s *shim) answered(r replyHeader) bool {
	if r.xid == farewellXid && s.farewell.begun.Load() {
		return s.farewell.answered(r)
	}
	found := s.takeOff(r.xid)
	if found.proves && r.code == 0 {
		s.owner.proved(found.sent)
	}
	if found.xid != 0 && r.xid != pingXid {
		s.owner.saw(r.zxid)
	}
	if found.auth && (r.code == 0 || r.code == codeAuthFailed) {
		s.owner.credential(r.code == 0)
	}
	return true
}

// takeOff takes the request with this xid off the list; the zero request if it is not there.
func (s *shim) takeOff(xid int32) (found request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.waiting {
		if r.xid == xid {
			found = r
			copy(s.waiting[1:i+1], s.waiting[:i]) // nearly always nothing: it is the first
			s.waiting = s.waiting[1:]
			break
		}
	}
	return found
}

// SetReadDeadline is the driver's; until the connect reply has been read, ours stands, and so does that of a request that waits for
// its reply.
func (s *shim) SetReadDeadline(t time.Time) error {
	if !s.greeted {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = t
	return s.Conn.SetReadDeadline(s.until())
}

// until is how long to wait for the server to say something: as long as the driver wants to, and while a request waits for its reply,
// no longer than our patience from when it was sent or anything was heard. It is called with mu held.
func (s *shim) until() time.Time {
	patience := s.owner.replyPatience()
	if len(s.waiting) == 0 || patience == 0 {
		return s.limit
	}
	since := s.waiting[0].sent.Time()
	if s.heard.After(since) {
		since = s.heard
	}
	if overdue := since.Add(patience); s.limit.IsZero() || overdue.Before(s.limit) {
		return overdue
	}
	return s.limit
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
