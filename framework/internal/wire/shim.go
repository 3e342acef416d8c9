package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Info is what the server told about the session.
type Info struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // negotiated
}

// request is one that was sent and waits for its reply.
type request struct {
	xid  int32
	op   int32
	sent Stamp
	done func(Reply) // nil: it is the driver's
}

// shim stands between the driver and the socket. The driver reads and writes on one goroutine each; what it reads also brings the replies to
// requests of ours, which are put between its own.
type shim struct {
	net.Conn
	owner     *Conn
	server    string
	handshake time.Time // until when the connect reply must have come
	zxid      int64     // the last that the session has seen before this connection

	// Of the reading goroutine.
	greeted bool          // the connect reply has been read
	in      *bufio.Reader // of the socket
	pending []byte        // what the driver is to read before anything else
	body    int           // how many bytes it is to read after that, as they come

	out      *outbox
	gone     chan struct{} // closed by Close
	once     sync.Once     // of gone
	farewell farewell

	mu        sync.Mutex
	asked     bool          // the connect request has been written
	askedFor  int64         // the session id in it
	wish      time.Duration // the session timeout in it
	welcome   bool          // there is a session on this connection
	connected Stamp         // when it was sent
	open      bool          // requests of ours may be made
	nextXid   int32         // of ours
	waiting   []request
	heard     time.Time // when something was read last
	limit     time.Time // the deadline that the driver has set
	limitSet  time.Time // when it has
}

func newShim(c net.Conn, owner *Conn, server string, handshake time.Time) *shim {
	s := &shim{
		Conn: c, owner: owner, server: server, handshake: handshake, zxid: owner.seen(), nextXid: firstXid,
		gone: make(chan struct{}), farewell: newFarewell(), out: newOutbox(c),
	}
	s.in = bufio.NewReaderSize(socket{s}, readAhead)
	owner.writing.Go(s.write)
	return s
}

// readAhead is how much is read from the socket at once, where there is so much.
const readAhead = 4 << 10

// Close closes the socket. Nobody will ever know what became of requests of ours that wait for a reply.
func (s *shim) Close() error {
	s.once.Do(func() { close(s.gone) })
	err := s.Conn.Close()
	for _, done := range s.orphans() {
		done(Reply{err: zk.ErrConnectionClosed})
	}
	return err
}

// admit allows requests of ours, behind the first ones.
func (s *shim) admit(first []Request) {
	s.mu.Lock()
	select {
	case <-s.gone:
	default:
		s.open = s.welcome
	}
	mine := false
	for _, r := range first {
		if s.open && !s.farewell.begun.Load() {
			_, writes := s.put(r, func(Reply) {})
			mine = mine || writes
		}
	}
	s.mu.Unlock()
	if mine {
		s.start(false)
	}
}

func (s *shim) admitted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// orphans are what is to be called for requests of ours that nobody answers any more.
func (s *shim) orphans() (all []func(Reply)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	for i, r := range s.waiting {
		if r.done != nil {
			all = append(all, r.done)
			s.waiting[i].done = nil
		}
	}
	return all
}

// Write never reports an error: the driver may wait for ever after one. The socket is closed instead, and the reading
// side tells the driver. Nor does it wait.
func (s *shim) Write(b []byte) (int, error) {
	if s.farewell.over() {
		s.heed(b)
		return len(b), nil
	}
	s.mu.Lock()
	frame, idle := s.note(b)
	mine := s.out.put(frame)
	s.mu.Unlock()
	if mine {
		s.start(idle && len(frame) <= atOnce)
	}
	if s.farewell.over() { // meanwhile: then this was asked too late, and would wait for an answer in vain
		s.Close()
	}
	return len(b), nil
}

// ask makes a request of ours, false if it cannot: then nobody will call done.
func (s *shim) ask(r Request, done func(Reply)) bool {
	s.mu.Lock()
	if !s.open || s.farewell.begun.Load() {
		s.mu.Unlock()
		return false
	}
	idle, mine := s.put(r, done)
	s.mu.Unlock()
	if mine {
		s.start(idle && len(r.frame) <= atOnce)
	}
	return true
}

// put numbers a request and puts it into the outbox, and reports whether no other waits for its reply, and whether the caller has to have it
// written. It is called with mu held.
func (s *shim) put(r Request, done func(Reply)) (idle, mine bool) {
	xid := s.nextXid
	if s.nextXid++; s.nextXid > lastXid {
		s.nextXid = firstXid
	}
	idle = s.await(request{xid: xid, op: r.op, sent: Now(), done: done})
	frame := r.numbered(xid)
	if r.op == opSetWatches {
		binary.BigEndian.PutUint64(frame[setWatchesZxid:], uint64(s.zxid))
	}
	return idle, s.out.put(frame)
}

// note records a request of the driver before it leaves, and returns what shall leave in its place, and whether no other waits for its
// reply. The driver writes one whole frame at a time. It tells the servers which zxid it has seen when it connects, but does not know of
// replies to us. So it never learns of one, and it is put in here. It is called with mu held.
func (s *shim) note(frame []byte) (out []byte, idle bool) {
	if !s.asked {
		s.asked, s.connected = true, Now()
		if len(frame) < connectRequestSession+8 {
			return frame, true
		}
		s.askedFor = int64(binary.BigEndian.Uint64(frame[connectRequestSession:]))
		s.wish = time.Duration(binary.BigEndian.Uint32(frame[connectRequestTimeout:])) * time.Millisecond
		frame = bytes.Clone(frame)
		binary.BigEndian.PutUint64(frame[connectRequestZxid:], uint64(s.zxid))
		return frame, true
	}
	if len(frame) < lengthSize+requestHeaderSize {
		return frame, false
	}
	xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
	op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:]))
	return frame, s.await(request{xid: xid, op: op, sent: Now()})
}

// await puts a request on the list of those that wait for a reply, and reports whether there is no other. It is called with mu held.
func (s *shim) await(r request) (idle bool) {
	s.waiting = append(s.waiting, r)
	idle = len(s.waiting) == 1
	if idle && s.owner.replyPatience() > 0 {
		_ = s.Conn.SetReadDeadline(s.until()) // a socket that refuses is closed, and Read tells
	}
	return idle
}

// Read hands the driver the connect reply as one piece, examined and perhaps changed; later replies as they come, but for those to requests
// of ours.
func (s *shim) Read(b []byte) (int, error) {
	if !s.greeted {
		if err := s.greet(); err != nil {
			s.owner.failed(s.server, err)
			return 0, err
		}
	}
	for {
		switch {
		case len(s.pending) > 0:
			n := copy(b, s.pending)
			s.pending = s.pending[n:]
			return n, nil
		case s.body > 0:
			n, err := s.in.Read(b[:min(len(b), s.body)])
			s.body -= n
			if err != nil {
				s.lost(err)
			}
			return n, err
		case s.farewell.over():
			return s.lastWords(b)
		}
		if err := s.next(); err != nil {
			s.lost(err)
			return 0, err
		}
	}
}

// next reads the beginning of a reply, and the rest if it is for us. The driver would panic at a length that is too short for a reply, and
// believe any other.
func (s *shim) next() error {
	if b, err := s.in.Peek(lengthSize); err != nil {
		return err
	} else if n := int(binary.BigEndian.Uint32(b)); n < replyHeaderSize || n > maxReply {
		return fmt.Errorf("a reply of %d bytes: not a ZooKeeper server", n)
	}
	head, err := s.in.Peek(lengthSize + replyHeaderSize)
	if err != nil {
		return err
	}
	h := headerOf(head)
	found, ok := s.answered(h)
	if !ok {
		return errors.New("a reply that no server gives to the end of a session")
	}
	if found.done == nil && h.body > maxDriverReply {
		return fmt.Errorf("a reply of %d bytes to a request that has a short one: not a ZooKeeper server", h.body)
	}
	if found.done == nil && !(h.xid == farewellXid && s.farewell.over()) {
		s.pending, s.body = append(s.pending[:0], head...), h.body
		clear(s.pending[replyZxid : replyZxid+zxidSize])
	}
	if _, err := s.in.Discard(len(head)); err != nil || found.done == nil {
		return err
	}
	body, err := s.rest(h)
	reply := Reply{Zxid: h.zxid, err: code(h.code), body: body}
	if err != nil {
		reply.err = zk.ErrConnectionClosed
	}
	found.done(reply)
	return err
}

// rest is the body of a reply to us. It takes room for what has come, not for what was announced.
func (s *shim) rest(h replyHeader) ([]byte, error) {
	if h.body <= atOnce {
		body := make([]byte, h.body)
		_, err := io.ReadFull(s.in, body)
		return body, err
	}
	var body bytes.Buffer
	_, err := io.CopyN(&body, s.in, int64(h.body))
	return body.Bytes(), err
}

// socket is what a shim reads from.
type socket struct{ *shim }

func (s socket) Read(b []byte) (int, error) {
	s.mu.Lock()
	err := s.Conn.SetReadDeadline(s.until())
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := s.Conn.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	return n, err
}

// lost ends a connection that cannot be read from. Who writes to it may be waiting, and would not notice.
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
	_ = s.Conn.SetWriteDeadline(time.Time{})
	return s.Conn.SetReadDeadline(time.Time{})
}

// examine learns about the session. A server that answers with another session than the one asked for has lost ours;
// the driver would not notice, so the reply is changed into what a server says of an expired session. So is one that grants no
// time, at which the driver would panic.
func (s *shim) examine(reply []byte) error {
	s.mu.Lock()
	askedFor, wish, sent := s.askedFor, s.wish, s.connected
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
	s.owner.established(info, wish, sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.welcome = true
	return nil
}

// answered takes the request that got the reply off the list. Replies come in the order of the requests, but for those to auth. Watch events
// answer nothing, and a ping shows nothing of the data. False means that no server replies so.
func (s *shim) answered(r replyHeader) (found request, ok bool) {
	if r.xid == farewellXid && s.farewell.begun.Load() {
		return request{}, s.farewell.answered(r)
	}
	found = s.takeOff(r.xid)
	if transaction := throughQuorum(found.op, r.code); transaction || found.op == opSync && r.code == 0 {
		s.owner.heard(found.sent, transaction)
	}
	if found.xid != 0 && r.xid != pingXid || r.xid == eventXid {
		s.owner.saw(r.zxid) // which servers before 3.9 do not tell of an event
	}
	if found.op == opAuth && (r.code == 0 || r.code == codeAuthFailed) {
		s.owner.credential(r.code == 0)
	}
	return found, true
}

// takeOff takes the request with this xid off the list; the zero request if it is not there.
func (s *shim) takeOff(xid int32) (found request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.waiting {
		if r.xid == xid {
			found = r
			copy(s.waiting[1:i+1], s.waiting[:i]) // nearly always nothing: it is the first
			s.waiting[0] = request{}
			s.waiting = s.waiting[1:]
			break
		}
	}
	return found
}

// SetReadDeadline is the driver's, who waits for so long for any reply; one of ours is as good as one of its own. It holds from the next read
// on. Until the connect reply has been read, ours stands, and so does that of a request that waits for its reply.
func (s *shim) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.limitSet = t, time.Now()
	return nil
}

// until is how long to wait for the server to say something: as long as the driver wants to, and while a request waits for its reply,
// no longer than our patience from when it was sent or anything was heard. It is called with mu held.
func (s *shim) until() time.Time {
	limit := s.limit
	if !limit.IsZero() && s.heard.After(s.limitSet) {
		limit = limit.Add(s.heard.Sub(s.limitSet))
	}
	patience := s.owner.replyPatience()
	if len(s.waiting) == 0 || patience == 0 {
		return limit
	}
	since := s.waiting[0].sent.Time()
	if s.heard.After(since) {
		since = s.heard
	}
	if overdue := since.Add(patience); limit.IsZero() || overdue.Before(limit) {
		return overdue
	}
	return limit
}

// SetWriteDeadline does nothing, for Write does not wait. A socket that takes no more is closed by who reads, because no reply comes.
func (s *shim) SetWriteDeadline(time.Time) error { return nil }
