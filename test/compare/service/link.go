package service

import (
	"net"
	"sync"
)

// Link is the network between a program and a server: a proxy that can be cut. It closes no connection
// then. What is held back arrives when the link is whole again.
type Link struct {
	listener net.Listener
	target   func() string
	running  sync.WaitGroup

	mu    sync.Mutex
	whole sync.Cond
	there bool // what is sent to the server is held back
	back  bool // what is sent to the program is held back
	ended bool
	sent  int64 // bytes let through to the server
	conns map[net.Conn]struct{}
}

// NewLink returns a link to the address that target returns for each connection.
func NewLink(target func() string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	l.whole.L = &l.mu
	l.running.Go(l.accept)
	return l, nil
}

// Addr returns the address that the program connects to.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Cut holds back what is sent in both directions, or lets it through.
func (l *Link) Cut(cut bool) { l.set(cut, cut) }

// HoldReplies holds back what the server sends.
func (l *Link) HoldReplies() { l.set(false, true) }

func (l *Link) set(there, back bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.there, l.back = there, back
	l.whole.Broadcast()
}

// Sent returns how many bytes of the program were let through to the server.
func (l *Link) Sent() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// Close closes all connections, and waits for the goroutines of the link.
func (l *Link) Close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.ended = true
	for c := range l.conns {
		_ = c.Close()
	}
	l.whole.Broadcast()
	l.mu.Unlock()
	l.running.Wait()
}

func (l *Link) accept() {
	for {
		program, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.running.Go(func() { l.serve(program) })
	}
}

func (l *Link) serve(program net.Conn) {
	defer l.forget(program)
	if !l.remember(program) || !l.pass(&l.there) {
		return
	}
	server, err := net.Dial("tcp", l.target())
	if err != nil {
		return
	}
	defer l.forget(server)
	if !l.remember(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.copy(program, server, &l.back) })
	l.copy(server, program, &l.there)
	both.Wait()
}

func (l *Link) remember(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return !l.ended
}

func (l *Link) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = c.Close()
	delete(l.conns, c)
}

// pass waits while held is true. It reports false if the link is closed.
func (l *Link) pass(held *bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for *held && !l.ended {
		l.whole.Wait()
	}
	return !l.ended
}

// copy copies until either end is closed, and then closes both.
func (l *Link) copy(to, from net.Conn, held *bool) {
	defer to.Close()
	defer from.Close()
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		if !l.pass(held) {
			return
		}
		if held == &l.there {
			l.count(n)
		}
		if _, failed := to.Write(b[:n]); failed != nil || err != nil {
			return
		}
	}
}

// count adds n bytes to those that were let through to the server. It is called before they are written,
// so that the reply to them never arrives first.
func (l *Link) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent += int64(n)
}
