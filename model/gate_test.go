package model

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// gate is between a client and the servers. It keeps each request, reply and event until the replay
// passes it on. What the model does not have passes at once, unless something else is ahead of it.
type gate struct {
	client *zktest.Client
	server string // address
	dir    string // the queue's

	mu      sync.Mutex
	open    bool            // everything passes
	link    *link           // the connection of the present session; nil: there is none
	asking  []*link         // connections that have not been admitted
	former  int64           // the session that the servers have not expired; its connections wait
	held    string          // the node of the client's hold
	private map[string]bool // nodes that a holder has begun to watch, which no holder of the model does
	armed   map[string]bool // nodes that the client knows to be watched; it reads them again to check that
	early   map[string]bool // nodes that it watches again although it had no answer; the model reads them
}

// link is a connection through a gate.
type link struct {
	gate     *gate
	near     net.Conn // to the client
	session  int64    // that the client asks for; 0: a new one
	admitted chan struct{}
	closed   chan struct{}
	once     sync.Once
	toServer chan []byte
	toClient chan []byte

	// Guarded by the gate's mu.
	requests []message         // that the server has not received
	replies  []message         // that the client has not received
	sent     map[int32]message // requests whose replies have not come
	looks    int               // searches whose sync the client has the answer to, and whose list it has not sent
}

// message is a frame, and what it is in the model.
type message struct {
	frame []byte
	kind  string // "" if the model does not have it
	node  string // its path, of a watch, a remove, a created or a deleted
	look  bool   // it is the sync of a search
	event bool   // a watch has fired
	found bool   // it is the answer to a read with a watch of a node that exists
}

// Requests of the model that have other names in the protocol.
const (
	syncing = "sync"
	rewatch = "rewatch"
)

func newGate(srv *zktest.Server, name, dir string) *gate {
	return &gate{client: srv.Client(name), server: srv.MemAddr(), dir: dir, open: true, private: map[string]bool{},
		armed: map[string]bool{}, early: map[string]bool{}}
}

// DialContext is for framework.WithDialer.
func (g *gate) DialContext(context.Context, string, string) (net.Conn, error) {
	far, near := net.Pipe()
	l := &link{
		gate: g, near: near, admitted: make(chan struct{}), closed: make(chan struct{}),
		toServer: make(chan []byte, 100), toClient: make(chan []byte, 100), sent: map[int32]message{},
	}
	go l.run()
	return far, nil
}

// run passes frames on until one end is closed.
func (l *link) run() {
	var running sync.WaitGroup
	defer running.Wait()
	defer l.close()
	connect, err := readFrame(l.near)
	if err != nil {
		return
	}
	l.session = int64(binary.BigEndian.Uint64(connect[4+16:])) // version, zxid and timeout are before it
	running.Go(func() { l.read(l.near, l.receiveRequest) })
	if !l.awaitAdmission() {
		return
	}
	server, err := l.gate.client.DialContext(context.Background(), "tcp", l.gate.server)
	if err != nil {
		return
	}
	defer server.Close()
	if _, err := server.Write(connect); err != nil {
		return
	}
	granted, err := readFrame(server)
	if err != nil {
		return
	}
	l.gate.mu.Lock()
	if id := int64(binary.BigEndian.Uint64(granted[4+8:])); id != 0 && (l.session == 0 || id == l.session) {
		l.session = id
		if l.gate.link == nil {
			l.gate.link = l
			clear(l.gate.early)
		}
	}
	l.gate.mu.Unlock()
	l.toClient <- granted
	running.Go(func() { l.write(l.near, l.toClient) })
	running.Go(func() { l.write(server, l.toServer) })
	running.Go(func() { l.read(server, l.receiveReply) })
	<-l.closed
}

// awaitAdmission waits until the connection may be made. It reports false if the client gives up.
func (l *link) awaitAdmission() bool {
	g := l.gate
	g.mu.Lock()
	if g.open && (l.session == 0 || l.session != g.former) {
		close(l.admitted)
	} else {
		g.asking = append(g.asking, l)
	}
	g.mu.Unlock()
	select {
	case <-l.admitted:
		return true
	case <-l.closed:
		return false
	}
}

func (l *link) close() {
	l.once.Do(func() {
		l.gate.mu.Lock()
		defer l.gate.mu.Unlock()
		if l.gate.link == l {
			l.gate.link = nil
		}
		l.gate.asking = slices.DeleteFunc(l.gate.asking, func(other *link) bool { return other == l })
		close(l.closed)
		l.near.Close()
	})
}

func (l *link) read(from net.Conn, receive func([]byte)) {
	defer l.close()
	for {
		frame, err := readFrame(from)
		if err != nil {
			return
		}
		receive(frame)
	}
}

func (l *link) write(to net.Conn, frames <-chan []byte) {
	defer l.close()
	defer to.Close()
	for {
		select {
		case frame := <-frames:
			if _, err := to.Write(frame); err != nil {
				return
			}
		case <-l.closed:
			return
		}
	}
}

func readFrame(from io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(frame))
	_, err := io.ReadFull(from, body)
	return append(frame, body...), err
}

// fields of frames, behind their length
func xidOf(frame []byte) int32          { return int32(binary.BigEndian.Uint32(frame[4:])) }
func int32At(frame []byte, i int) int32 { return int32(binary.BigEndian.Uint32(frame[i:])) }

func stringAt(frame []byte, i int) string {
	if i+4 > len(frame) {
		return ""
	}
	n := int(int32At(frame, i))
	if n < 0 || i+4+n > len(frame) {
		return ""
	}
	return string(frame[i+4 : i+4+n])
}

// watchesOf returns the nodes with a data watch that a request sets again.
func watchesOf(frame []byte) (nodes []string) {
	const count = 4 + 4 + 4 + 8
	for i, at := 0, count+4; i < int(int32At(frame, count)); i++ {
		nodes = append(nodes, stringAt(frame, at))
		at += 4 + len(nodes[i])
	}
	return nodes
}

// receiveRequest keeps or passes on what the client has sent.
func (l *link) receiveRequest(frame []byte) {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	l.requests = append(l.requests, l.requestLocked(frame))
	l.passLocked()
}

// requestLocked finds out what a request is in the model.
func (l *link) requestLocked(frame []byte) message {
	const first = 4 + 4 + 4           // of the fields of a request
	const ofMulti = first + 4 + 1 + 4 // of those of the first operation of a transaction
	g, m := l.gate, message{frame: frame}
	if l != g.link {
		return m // of a session that has ended
	}
	switch fault.Op(int32At(frame, 8)) {
	case fault.OpCreate, fault.OpCreate2:
		m.kind = "create"
	case fault.OpGetChildren, fault.OpGetChildren2:
		if m.kind = "list"; l.looks > 0 {
			l.looks--
			m.kind = ""
		}
	case fault.OpGetData:
		m.node = stringAt(frame, first)
		switch {
		case g.armed[m.node]:
		case m.node == g.held:
			g.private[m.node] = true
		default:
			m.kind = "watch"
		}
	case fault.OpDelete:
		m.kind, m.node = "remove", stringAt(frame, first)
	case fault.OpSetWatches, fault.OpSetWatches2:
		m.kind = rewatch
	case fault.OpMulti:
		switch stringAt(frame, ofMulti) {
		case "/":
			m.kind = syncing
		case g.dir:
			m.look = true
		}
	}
	return m
}

// receiveReply keeps or passes on what the server has sent.
func (l *link) receiveReply(frame []byte) {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	l.replies = append(l.replies, l.replyLocked(frame))
	l.passLocked()
}

// replyLocked finds out what a reply or an event is in the model.
func (l *link) replyLocked(frame []byte) message {
	const first = 4 + 4 + 8 + 4 // of the fields of a reply or an event
	const nodeDeleted = 2
	m := message{frame: frame}
	if l != l.gate.link {
		return m
	}
	if xidOf(frame) == -1 {
		if node := stringAt(frame, first+8); int32At(frame, first) == nodeDeleted {
			if m.node = node; !l.gate.private[node] && !l.gate.early[node] {
				m.kind = "deleted"
			}
			m.event = true
		}
		return m
	}
	request := l.sent[xidOf(frame)]
	delete(l.sent, xidOf(frame))
	m.look = request.look
	switch failed := int32At(frame, 16) != 0; request.kind {
	case "":
		m.node, m.found = request.node, request.node != "" && !failed
	case "create":
		m.kind, m.node = "created", stringAt(frame, first)
	case "list":
		m.kind = "listed"
	case "watch":
		m.kind, m.node, m.found = "there", request.node, !failed
		if failed {
			m.kind = "missing"
		}
	case "remove":
		m.kind, m.node = "removed", request.node
	case syncing:
		m.kind = "synced"
	}
	return m
}

// passLocked passes on what the model does not have, up to what it has.
func (l *link) passLocked() {
	for len(l.requests) > 0 && (l.requests[0].kind == "" || l.gate.open) {
		l.forwardLocked()
	}
	for len(l.replies) > 0 && (l.replies[0].kind == "" || l.gate.open) {
		l.deliverLocked()
	}
}

// forwardLocked has the server receive the first request.
func (l *link) forwardLocked() {
	m := l.requests[0]
	l.requests = l.requests[1:]
	l.sent[xidOf(m.frame)] = m
	switch m.kind {
	case "watch":
		delete(l.gate.early, m.node)
	case rewatch:
		for _, node := range watchesOf(m.frame) {
			if !l.gate.armed[node] && !l.gate.private[node] {
				l.gate.early[node] = true
			}
		}
	}
	l.toServer <- m.frame
}

// deliverLocked has the client receive the first reply.
func (l *link) deliverLocked() {
	m := l.replies[0]
	l.replies = l.replies[1:]
	switch {
	case m.look:
		l.looks++
	case m.found:
		l.gate.armed[m.node] = true
	case m.event:
		delete(l.gate.armed, m.node)
		delete(l.gate.early, m.node)
	}
	l.toClient <- m.frame
}

// forward has the server receive the first request, and the watches behind a sync.
func (g *gate) forward() {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.link
	wasSync := l.requests[0].kind == syncing
	l.forwardLocked()
	if wasSync && len(l.requests) > 0 && l.requests[0].kind == rewatch {
		l.forwardLocked()
	}
	l.passLocked()
}

// deliver has the client receive the first reply or event.
func (g *gate) deliver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.link.deliverLocked()
	g.link.passLocked()
}

// drop breaks the connection of the present session.
func (g *gate) drop() {
	g.mu.Lock()
	l := g.link
	g.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// admit has the client connect to the server for a session; 0: a new one. It reports false if the client
// has not asked for that yet.
func (g *gate) admit(session int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, l := range g.asking {
		if l.session == session {
			g.asking = slices.Delete(g.asking, i, i+1)
			close(l.admitted)
			return true
		}
	}
	return false
}

// shut has the gate keep what the model has.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}

// unlock has the gate pass on everything.
func (g *gate) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	g.asking = slices.DeleteFunc(g.asking, func(l *link) bool {
		if l.session != 0 && l.session == g.former {
			return false
		}
		close(l.admitted)
		return true
	})
	if g.link != nil {
		g.link.passLocked()
	}
}

// loses says that the client has lost a session, whose connections wait; 0: the servers have expired it.
func (g *gate) loses(session int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.former = session
}

// hold says that the client holds the lock with a node.
func (g *gate) hold(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = node
}

// state returns whether the client is connected, and what is on its way, as the model prints it.
func (g *gate) state(number func(node string) string) (up bool, requests, replies []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.link == nil {
		return false, nil, nil
	}
	for _, m := range g.link.requests {
		if m.kind != "" && m.kind != rewatch {
			requests = append(requests, m.kind+number(m.node))
		}
	}
	for _, m := range g.link.replies {
		if m.kind != "" {
			replies = append(replies, m.kind+number(m.node))
		}
	}
	return true, requests, replies
}

// renew says that the client has another session: nothing is watched.
func (g *gate) renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.armed)
	clear(g.private)
}
