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

// link is a connection to one server, which has admitted the session on it.
type link struct {
	net.Conn
	owner  *Conn
	server string
	zxid   int64         // the largest that the session had seen before
	in     *bufio.Reader // of the goroutine that reads
	out    *outbox
	closed chan struct{}
	ended  chan struct{} // closed when the server has confirmed the end of the session
	close  func()        // closes closed, once

	mu      sync.Mutex
	open    bool // requests are allowed
	ending  bool // the server has been asked to end the session: no further request is sent
	nextXid int32
	waiting []request // in the order in which they were sent
	heard   time.Time // when something was read last
}

// request is one that waits for its reply.
type request struct {
	xid  int32
	op   int32
	sent Stamp
	done func(Reply)
}

// readAhead is how much is read from the socket at once, where there is so much.
const readAhead = 4 << 10

func newLink(socket net.Conn, owner *Conn, server string, zxid int64) *link {
	closed := make(chan struct{})
	l := &link{
		Conn: socket, owner: owner, server: server, zxid: zxid, out: newOutbox(socket),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }), ended: make(chan struct{}),
		nextXid: firstXid, heard: time.Now(),
	}
	l.in = bufio.NewReaderSize(socketOf{l}, readAhead)
	return l
}

// Close closes the socket. The answers to requests that wait for one are lost.
func (l *link) Close() error {
	l.close()
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
	l.waiting = nil
	return all
}

// admit allows requests, behind the first ones, and reports whether it does: not if the link is closed or the session is being ended.
func (l *link) admit(first []Request) bool {
	l.mu.Lock()
	if l.ending || l.isClosed() {
		l.mu.Unlock()
		return false
	}
	l.open = true
	mine := false
	for _, r := range first {
		_, writes := l.putLocked(r, func(Reply) {})
		mine = mine || writes
	}
	l.mu.Unlock()
	if mine {
		l.start(false)
	}
	return true
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

// ask sends a request if requests are allowed; false: they are not, and done is not called.
func (l *link) ask(r Request, done func(Reply)) bool {
	l.mu.Lock()
	if !l.open || l.ending {
		l.mu.Unlock()
		return false
	}
	idle, mine := l.putLocked(r, done)
	l.mu.Unlock()
	if mine {
		l.start(idle && len(r.frame) <= atOnce)
	}
	return true
}

// send sends a request, also while requests are not allowed yet.
func (l *link) send(r Request, done func(Reply)) {
	l.mu.Lock()
	if l.ending || l.isClosed() {
		l.mu.Unlock()
		done(Reply{err: zk.ErrConnectionClosed})
		return
	}
	_, mine := l.putLocked(r, done)
	l.mu.Unlock()
	if mine {
		l.start(false)
	}
}

// putLocked numbers a request and puts it into the outbox. It reports whether no other one waits for its reply, and whether the caller
// has to have the outbox written.
func (l *link) putLocked(r Request, done func(Reply)) (idle, mine bool) {
	xid := l.nextXid
	if l.nextXid++; l.nextXid > lastXid {
		l.nextXid = firstXid
	}
	l.waiting = append(l.waiting, request{xid: xid, op: r.op, sent: Now(), done: done})
	idle = len(l.waiting) == 1
	if idle {
		_ = l.Conn.SetReadDeadline(l.untilLocked()) // a socket that refuses is closed, and read notices
	}
	frame := r.numbered(xid)
	if r.op == opSetWatches {
		binary.BigEndian.PutUint64(frame[setWatchesZxid:], uint64(l.zxid))
	}
	return idle, l.out.put(frame)
}

// end asks the server to end the session, behind all other requests, and reports whether the server has confirmed it before ctx
// ends.
func (l *link) end(ctx context.Context) bool {
	l.mu.Lock()
	first := !l.ending
	l.ending = true
	mine := first && l.out.put(closeSession)
	l.mu.Unlock()
	if !first {
		return false
	}
	stop := context.AfterFunc(ctx, func() { l.Close() }) // which ends a write that waits, too
	defer stop()
	if mine {
		l.start(false)
	}
	select {
	case <-l.ended:
		return true
	case <-l.closed: // perhaps after the answer
	}
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// read delivers replies and events until the connection ends, and returns why it has.
func (l *link) read() error {
	for {
		h, err := l.header()
		if err != nil {
			return err
		}
		switch {
		case h.xid == endXid && l.isEnding():
			if h.code != 0 || h.body != 0 {
				return errors.New("a reply that no server gives to the end of a session")
			}
			close(l.ended)
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

// header reads what each reply and event begins with.
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
	h := headerOf(head)
	_, err = l.in.Discard(len(head))
	return h, err
}

// event delivers an event of a watch.
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
		return fmt.Errorf("an event: %w", d.err)
	}
	l.owner.saw(h.zxid) // which servers before 3.9 do not tell of an event
	l.owner.cfg.Handler.Event(e)
	return nil
}

// reply delivers a reply to the request with its number. A reply to none is passed over.
func (l *link) reply(h replyHeader) error {
	found, ok := l.take(h.xid)
	if !ok {
		l.owner.log.Debug("a reply to no request", zap.String("server", l.server), zap.Int32("xid", h.xid))
		_, err := io.CopyN(io.Discard, l.in, int64(h.body))
		return err
	}
	if transaction := throughQuorum(found.op, h.code); transaction || found.op == opSync && h.code == 0 {
		l.owner.heard(found.sent, transaction)
	}
	l.owner.saw(h.zxid)
	body, err := l.body(h)
	reply := Reply{Zxid: h.zxid, err: code(h.code), body: body}
	if err != nil {
		reply.err = zk.ErrConnectionClosed
	}
	found.done(reply)
	return err
}

// take takes the request with a number off the list. Replies come in the order of the requests, except those to credentials.
func (l *link) take(xid int32) (found request, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.waiting {
		if r.xid == xid {
			copy(l.waiting[1:i+1], l.waiting[:i]) // nearly always nothing: it is the first
			l.waiting[0] = request{}
			l.waiting = l.waiting[1:]
			return r, true
		}
	}
	return request{}, false
}

// body reads what comes after a header. It takes memory for what has come, not for what was announced.
func (l *link) body(h replyHeader) ([]byte, error) {
	if h.body <= atOnce {
		body := make([]byte, h.body)
		_, err := io.ReadFull(l.in, body)
		return body, err
	}
	var body bytes.Buffer
	_, err := io.CopyN(&body, l.in, int64(h.body))
	return body.Bytes(), err
}

// socketOf is the socket of a link, which reads until the server is silent for too long.
type socketOf struct{ *link }

func (s socketOf) Read(b []byte) (int, error) {
	s.mu.Lock()
	err := s.Conn.SetReadDeadline(s.untilLocked())
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

// untilLocked is how long to wait for the server to say something: two thirds of the session timeout, after which the session cannot
// be relied on; and while a request waits for its reply, no longer than Conn.limits says from when it was sent or anything was
// read.
func (l *link) untilLocked() time.Time {
	silence, patience := l.owner.limits()
	limit := l.heard.Add(silence)
	if len(l.waiting) == 0 || patience == 0 {
		return limit
	}
	since := l.waiting[0].sent.Time()
	if l.heard.After(since) {
		since = l.heard
	}
	if overdue := since.Add(patience); overdue.Before(limit) {
		return overdue
	}
	return limit
}

// overdue reports whether read has ended because a reply is overdue.
func (l *link) overdue(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, patience := l.owner.limits()
	return errors.Is(err, os.ErrDeadlineExceeded) && len(l.waiting) > 0 && patience > 0
}
