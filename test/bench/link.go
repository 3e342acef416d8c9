package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// link passes on the connections to a server after a delay, in each direction. The delay of a byte does
// not depend on the bytes before it, unlike that of requests through zktest/proxy.
type link struct {
	listener net.Listener
	target   string
	delay    time.Duration
	running  sync.WaitGroup // the accepting goroutine, and those of connections

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// newLink returns a link to a server whose round trip takes trip longer.
func newLink(target string, trip time.Duration) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, target: target, delay: trip / 2}
	l.running.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

// close ends all connections and waits for all goroutines.
func (l *link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.closed = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.running.Wait()
}

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		far, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		if err := l.keep(near, far); err != nil {
			return
		}
		l.running.Go(func() { l.pass(near, far) })
		l.running.Go(func() { l.pass(far, near) })
	}
}

var errLinkClosed = errors.New("link closed")

// keep keeps connections for close. It closes them itself if close was called before.
func (l *link) keep(conns ...net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		for _, c := range conns {
			_ = c.Close()
		}
		return errLinkClosed
	}
	l.conns = append(l.conns, conns...)
	return nil
}

// piece is data with the time at which it arrives.
type piece struct {
	data []byte
	at   time.Time
}

// pass passes on what is read from one side, until one of the sides ends. It closes both.
func (l *link) pass(from, to net.Conn) {
	pieces := make(chan piece, 1024)
	l.running.Go(func() {
		defer close(pieces)
		for {
			data := make([]byte, 16<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			pieces <- piece{data[:n], time.Now().Add(l.delay)}
		}
	})
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.data); err != nil {
			_ = from.Close() // ends the reader, whose pieces are dropped from now on
		}
	}
	_ = from.Close()
	_ = to.Close()
}
