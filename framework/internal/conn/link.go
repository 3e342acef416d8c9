package conn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// link is a connection to one server that has accepted the session on it.
type link struct {
	net.Conn
	owner        *Conn
	server       string
	watched      int64         // the servers report what has changed since then
	in           *bufio.Reader // used only by the goroutine that reads
	out          *outbox
	closed       chan struct{}
	endConfirmed chan struct{} // closed when the server has confirmed the end of the session
	closeOnce    func()        // closes closed once

	mu       sync.Mutex
	open     bool // requests are allowed
	ending   bool // the server has been asked to end the session: no further request is sent
	nextXid  int32
	waiting  []request // in the order of sending
	array    []request // the array of waiting from its start, to be used again once none waits; may be nil
	lastRead time.Time // time of the last read
}

// request is a request that waits for its reply.
type request struct {
	xid  int32
	op   int32
	sent Stamp
	done func(Reply)
}

const (
	// readAhead is the size of the read buffer.
	readAhead = 4 << 10
	// maxKeptRequests is the largest capacity of an array of waiting requests that is kept for reuse.
	maxKeptRequests = 1 << 10
)

func newLink(socket net.Conn, owner *Conn, server string, watched int64) *link {
	closed := make(chan struct{})
	l := &link{
		Conn: socket, owner: owner, server: server, watched: watched, out: newOutbox(socket),
		closed: closed, closeOnce: sync.OnceFunc(func() { close(closed) }), endConfirmed: make(chan struct{}),
		nextXid: owner.nextXid, lastRead: time.Now(),
	}
	l.in = bufio.NewReaderSize(timedReader{l}, readAhead)
	return l
}

// Close closes the socket. The replies to all waiting requests are lost.
func (l *link) Close() error {
	l.closeOnce()
	err := l.Conn.Close()
	for _, r := range l.takeAll() {
		r.done(Reply{err: zk.ErrConnectionClosed})
	}
	return err
}

func (l *link) takeAll() []request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = false
	all := l.waiting
	l.waiting, l.array = nil, nil
	return all
}

// unusedXid returns the number of the next request. It does not change once the link is closed.
func (l *link) unusedXid() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nextXid
}

// admit allows requests and sends first before them. It reports whether it did so. It does not if
// the link is closed or the session is being ended.
func (l *link) admit(first []Request) bool {
	l.mu.Lock()
	if l.ending || l.isClosed() {
		l.mu.Unlock()
		return false
	}
	l.open = true
	mustStart := false
	for i, r := range first {
		done := r.finish
		if i == len(first)-1 {
			done = l.rewatched(r)
		}
		_, writes := l.putLocked(r, done)
		mustStart = mustStart || writes
	}
	l.mu.Unlock()
	if len(first) == 0 {
		l.owner.noteRewatched()
	}
	if mustStart {
		l.start(false)
	}
	return true
}

// rewatched returns what handles the reply to the last request of admit. All events for what has
// changed before come before that reply.
func (l *link) rewatched(last Request) func(Reply) {
	return func(reply Reply) {
		if !errors.Is(reply.err, zk.ErrConnectionClosed) {
			l.owner.noteRewatched()
		}
		last.finish(reply)
	}
}

func (l *link) admitted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

func (l *link) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// ask sends a request and reports whether requests are allowed. If they are not, done is not
// called.
func (l *link) ask(r Request, done func(Reply)) bool {
	l.mu.Lock()
	if !l.open || l.ending {
		l.mu.Unlock()
		return false
	}
	idle, mustStart := l.putLocked(r, done)
	l.mu.Unlock()
	if mustStart {
		l.start(idle && len(r.frame) <= smallFrame)
	}
	return true
}

// send sends a request even if requests are not allowed yet.
func (l *link) send(r Request, done func(Reply)) {
	l.mu.Lock()
	if l.ending || l.isClosed() {
		l.mu.Unlock()
		done(Reply{err: zk.ErrConnectionClosed})
		return
	}
	_, mustStart := l.putLocked(r, done)
	l.mu.Unlock()
	if mustStart {
		l.start(false)
	}
}

// putLocked numbers a request and puts it into the outbox. It reports whether no other request
// waits for a reply, and whether the caller must call start.
func (l *link) putLocked(r Request, done func(Reply)) (idle, mustStart bool) {
	xid := l.nextXid
	if l.nextXid++; l.nextXid > lastXid {
		l.nextXid = firstXid
	}
	if len(l.waiting) == 0 {
		l.waiting = l.array
	}
	before := l.waiting
	l.waiting = append(before, request{xid: xid, op: r.op, sent: Now(), done: done})
	if len(before) == cap(before) { // the requests were copied to another array
		clear(before)
		l.array = l.waiting[:0]
	}
	idle = len(l.waiting) == 1
	if idle {
		_ = l.Conn.SetReadDeadline(l.readDeadlineLocked()) // the next read sets it again and reports an error
	}
	frame := r.numbered(xid)
	if r.op == opSetWatches {
		binary.BigEndian.PutUint64(frame[setWatchesZxid:], uint64(l.watched))
	}
	return idle, l.out.put(frame)
}

// end asks the server to end the session after all earlier requests. It reports whether the server
// has confirmed that before ctx ended.
func (l *link) end(ctx context.Context) bool {
	l.mu.Lock()
	first := !l.ending
	l.ending = true
	mustStart := first && l.out.put(closeSession)
	l.mu.Unlock()
	if !first {
		return false
	}
	if mustStart {
		l.start(false)
	}
	select {
	case <-l.endConfirmed:
		return true
	case <-l.closed: // perhaps after the confirmation
	case <-ctx.Done():
	}
	select {
	case <-l.endConfirmed:
		return true
	default:
		return false
	}
}

// read delivers replies and events until the connection ends, and returns why it ended.
func (l *link) read() error {
	for {
		h, err := l.header()
		if err != nil {
			return err
		}
		switch {
		case h.xid == endXid && l.isEnding():
			if h.code != 0 || h.body != 0 {
				return errors.New("malformed reply to closeSession")
			}
			l.owner.cancel() // before the link is closed, after which another attempt would begin
			close(l.endConfirmed)
			return nil
		case h.xid == eventXid:
			err = l.event(h)
		default:
			err = l.reply(h)
		}
		if err != nil {
			return err
		}
	}
}

func (l *link) isEnding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending
}

// header reads the header of a reply or an event.
func (l *link) header() (replyHeader, error) {
	b, err := l.in.Peek(lengthSize)
	if err != nil {
		return replyHeader{}, err
	}
	if n := int(binary.BigEndian.Uint32(b)); n < replyHeaderSize || n > maxReply {
		return replyHeader{}, fmt.Errorf("a reply of %d bytes: not a ZooKeeper server", n)
	}
	head, err := l.in.Peek(lengthSize + replyHeaderSize)
	if err != nil {
		return replyHeader{}, err
	}
	h := parseHeader(head)
	_, err = l.in.Discard(len(head))
	return h, err
}

// event delivers the event of a watch.
func (l *link) event(h replyHeader) error {
	if h.body > maxEvent {
		return fmt.Errorf("an event of %d bytes: not a ZooKeeper server", h.body)
	}
	body, err := l.body(h)
	if err != nil {
		return err
	}
	d := decoder{rest: body}
	e := zk.Event{Type: zk.EventType(d.int()), State: zk.State(d.int()), Path: d.string()}
	if d.err != nil {
		return fmt.Errorf("malformed event: %w", d.err)
	}
	l.owner.noteZxid(h.zxid) // servers before 3.9 do not send the zxid of an event
	l.owner.cfg.Handler.Event(e, h.zxid)
	return nil
}

// reply delivers a reply to its request. It skips a reply if no waiting request has its number.
func (l *link) reply(h replyHeader) error {
	found, ok := l.take(h.xid)
	if !ok {
		l.owner.log.Debug("a reply without a request", zap.String("server", l.server), zap.Int32("xid", h.xid))
		_, err := io.CopyN(io.Discard, l.in, int64(h.body))
		return err
	}
	if transaction := throughQuorum(found.op, h.code); transaction || found.op == opSync && h.code == 0 {
		l.owner.noteAnswer(found.sent, transaction)
	}
	l.owner.noteZxid(h.zxid)
	body, err := l.body(h)
	reply := Reply{Zxid: h.zxid, err: code(h.code), body: body}
	if err != nil {
		reply.err = zk.ErrConnectionClosed
	}
	found.done(reply)
	return err
}

// take removes and returns the waiting request with number xid. Replies come in the order of the
// requests, except those to credentials.
func (l *link) take(xid int32) (found request, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.waiting {
		if r.xid == xid {
			copy(l.waiting[1:i+1], l.waiting[:i]) // mostly moves nothing: i is 0
			l.waiting[0] = request{}
			l.waiting = l.waiting[1:]
			if len(l.waiting) == 0 && cap(l.array) > maxKeptRequests {
				l.waiting, l.array = nil, nil
			}
			return r, true
		}
	}
	return request{}, false
}

// body reads what follows a header. Its memory grows with the bytes that arrive, not with the
// announced size.
func (l *link) body(h replyHeader) ([]byte, error) {
	if h.body <= smallFrame {
		body := make([]byte, h.body)
		_, err := io.ReadFull(l.in, body)
		return body, err
	}
	var body bytes.Buffer
	_, err := io.CopyN(&body, l.in, int64(h.body))
	return body.Bytes(), err
}

// timedReader reads from the socket of a link with a deadline.
type timedReader struct{ *link }

func (s timedReader) Read(b []byte) (int, error) {
	s.mu.Lock()
	err := s.Conn.SetReadDeadline(s.readDeadlineLocked())
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := s.Conn.Read(b)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = s.readAgain(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastRead = time.Now()
	return n, err
}

// againFor is how long a read that has come to its deadline is repeated for.
const againFor = 10 * time.Millisecond

// readAgain reads what may have arrived while the process did not run. A read whose deadline has
// passed does not look at the socket.
func (s timedReader) readAgain(b []byte) (int, error) {
	s.mu.Lock()
	err := s.Conn.SetReadDeadline(time.Now().Add(againFor))
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return s.Conn.Read(b)
}

// readDeadlineLocked returns how long to wait for the next byte from the server. That is two thirds
// of the session timeout after the last read; later the session cannot be relied on. While a
// request waits for its reply, the reply limit of Conn.limits applies as well. It runs from the
// time of sending or of the last read, whichever is later.
func (l *link) readDeadlineLocked() time.Time {
	silence, replyLimit := l.owner.limits()
	limit := l.lastRead.Add(silence)
	if len(l.waiting) == 0 || replyLimit == 0 {
		return limit
	}
	since := l.waiting[0].sent.Time()
	if l.lastRead.After(since) {
		since = l.lastRead
	}
	if due := since.Add(replyLimit); due.Before(limit) {
		return due
	}
	return limit
}

// replyOverdue reports whether read returned err because a reply was overdue.
func (l *link) replyOverdue(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, replyLimit := l.owner.limits()
	return errors.Is(err, os.ErrDeadlineExceeded) && len(l.waiting) > 0 && replyLimit > 0
}
