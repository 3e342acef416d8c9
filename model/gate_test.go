package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// gate is between a client and the servers. It keeps each request, reply and event until the replay
// passes it on. What the model does not have passes at once, unless something else is ahead of it.
type gate struct {
	client *zktest.Client
	server string   // address
	dirs   []string // of the nodes

	// parallel: the client waits in all directories at the same time. The order in which it sends the reads
	// of different ones is not known. So reads that follow one another are one step, and so are their answers.
	parallel bool

	mu      sync.Mutex
	open    bool            // everything passes
	paused  bool            // no reply passes by itself
	link    *link           // the connection of the present session; nil: there is none
	asking  []*link         // connections that have not been admitted
	former  int64           // the session that the servers have not expired; its connections wait
	held    map[string]bool // the nodes of the client's holds
	private map[string]bool // nodes that a holder has begun to watch, which no holder of the model does
	armed   map[string]bool // what the client knows to be watched; it reads that again to check the watch
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
	looks    map[string]int    // in each directory: searches whose sync is answered, and whose list was not sent
}

// message is a frame, and what it is in the model.
type message struct {
	frame []byte
	kind  string // "" if the model does not have it
	node  string // its path, in the model

	look    string // the directory of the search whose sync it is
	watched string // what is watched: of a read with a watch, its answer and its event
	event   bool   // a watch has fired
	found   bool   // it is the answer to a read with a watch of a node that exists
}

// Requests of the model that have other names in the protocol.
const (
	syncing  = "sync"
	rewatch  = "rewatch"
	special  = "special"     // a transaction about a node
	direct   = "special 100" // one that creates a permit
	counting = "special 101" // a list of the permits

	removeBoth = "removeBoth" // one that deletes nodes
)

func newGate(srv *zktest.Server, name string, dirs []string) *gate {
	return &gate{client: srv.Client(name), server: srv.MemAddr(), dirs: dirs, open: true,
		held: map[string]bool{}, private: map[string]bool{}, armed: map[string]bool{}, early: map[string]bool{}}
}

// DialContext is for framework.WithDialer.
func (g *gate) DialContext(context.Context, string, string) (net.Conn, error) {
	far, near := net.Pipe()
	l := &link{
		gate: g, near: near, admitted: make(chan struct{}), closed: make(chan struct{}),
		toServer: make(chan []byte, 100), toClient: make(chan []byte, 100), sent: map[int32]message{},
		looks: map[string]int{},
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

// receiveRequest keeps or passes on what the client has sent.
func (l *link) receiveRequest(frame []byte) {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	l.requests = append(l.requests, l.requestLocked(frame))
	l.passLocked()
}

// requestLocked finds out what a request is in the model.
func (l *link) requestLocked(frame []byte) message {
	g, m := l.gate, message{frame: frame}
	if l != g.link {
		return m // of a session that has ended
	}
	switch opOf(frame) {
	case fault.OpCreate, fault.OpCreate2:
		m.kind = "create"
	case fault.OpGetChildren, fault.OpGetChildren2:
		switch {
		case setsWatch(frame):
			m.watched = pathOf(frame)
			if !g.armed[m.watched] {
				m.kind = counting
			}
		case l.looks[pathOf(frame)] > 0:
			l.looks[pathOf(frame)]--
		case g.armed[pathOf(frame)]: // a check of the watch
		default:
			m.kind = fmt.Sprintf("list %d", slices.Index(g.dirs, pathOf(frame)))
		}
	case fault.OpGetData:
		node := pathOf(frame)
		if !setsWatch(frame) {
			break
		}
		m.watched = node
		switch {
		case !g.isNode(node), g.armed[node]:
		case g.held[node]:
			g.private[node] = true
		default:
			m.kind, m.node = "watch", node
		}
	case fault.OpDelete:
		m.kind, m.node = "remove", pathOf(frame)
	case fault.OpSetWatches, fault.OpSetWatches2:
		m.kind = rewatch
	case fault.OpMulti:
		g.transaction(&m, operationsOf(frame))
	}
	return m
}

// transaction finds out what a transaction is in the model.
func (g *gate) transaction(m *message, ops []part) {
	index := func(op fault.Op) int { return slices.IndexFunc(ops, func(p part) bool { return p.op == op }) }
	creates := slices.ContainsFunc(ops, func(p part) bool { return p.op == fault.OpCreate || p.op == fault.OpCreate2 })
	deleted := index(fault.OpDelete)
	switch first := ops[0]; {
	case creates && deleted >= 0: // a permit in exchange for a lock node
		m.kind, m.node = special, ops[deleted].path
	case deleted >= 0 && len(ops) == 1:
		m.kind, m.node = "remove", ops[deleted].path
	case deleted >= 0:
		m.kind, m.node = removeBoth, ops[deleted].path
	case creates && first.op == fault.OpCheck && g.isNode(first.path): // a node at the place of another one
		m.kind, m.node = special, first.path
	case creates && first.op == fault.OpCheck:
		m.kind = direct
	case creates:
		m.kind = "create"
	case g.isNode(first.path): // a check of nodes
		m.kind, m.node = special, first.path
	case first.path == "/":
		m.kind = syncing
	case slices.Contains(g.dirs, first.path):
		m.look = first.path
	}
}

// isNode reports whether a path is that of a node of the lock.
func (g *gate) isNode(p string) bool { return slices.Contains(g.dirs, path.Dir(p)) }

// receiveReply keeps or passes on what the server has sent.
func (l *link) receiveReply(frame []byte) {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	l.replies = append(l.replies, l.replyLocked(frame))
	l.passLocked()
}

// replyLocked finds out what a reply or an event is in the model.
func (l *link) replyLocked(frame []byte) message {
	m := message{frame: frame}
	if l != l.gate.link {
		return m
	}
	if xidOf(frame) == -1 {
		return l.gate.event(m)
	}
	request := l.sent[xidOf(frame)]
	delete(l.sent, xidOf(frame))
	failed := errorOf(frame) != 0
	m.look, m.watched, m.found = request.look, request.watched, request.watched != "" && !failed
	switch request.kind {
	case "create":
		m.kind, m.node = "created", textOf(frame)
		if opOf(request.frame) == fault.OpMulti {
			m.node = resultsOf(frame)[0].path
		}
	case "list 0", "list 1":
		m.kind = "listed"
	case "watch":
		m.kind, m.node = "there", request.node
		if failed {
			m.kind = "missing"
		}
	case "remove":
		m.kind, m.node = "removed", request.node
	case syncing:
		m.kind = "synced"
	case removeBoth:
		if m.kind, m.node = outcomeOf(resultsOf(frame), request.node); m.kind == "taken" {
			m.kind = "removed"
		} else {
			m.kind = "refused"
		}
	case special, direct:
		m.kind, m.node = outcomeOf(resultsOf(frame), request.node)
	case counting:
		m.kind = "counted"
	}
	return m
}

// outcomeOf returns what the answer to a transaction of a lock is in the model.
func outcomeOf(results []part, node string) (kind, about string) {
	const noNode = -101
	kind = "taken"
	for _, r := range results {
		switch {
		case r.err == noNode:
			return "missing", node
		case r.err != 0:
			kind = "refused"
		case r.path != "" && r.op != noOp:
			node = r.path
		}
	}
	return kind, node
}

// event finds out what an event is in the model.
func (g *gate) event(m message) message {
	const nodeDeleted, childrenChanged = 2, 4
	kind, node := eventOf(m.frame)
	m.event, m.watched = true, node
	if g.private[node] || g.early[node] {
		return m
	}
	switch kind {
	case nodeDeleted:
		m.kind, m.node = "deleted", node
	case childrenChanged:
		m.kind = "changed"
	}
	return m
}

// passLocked passes on what the model does not have, up to what it has.
func (l *link) passLocked() {
	for len(l.requests) > 0 && (l.requests[0].kind == "" || l.gate.open) {
		l.forwardLocked()
	}
	for len(l.replies) > 0 && (l.replies[0].kind == "" && !l.gate.paused || l.gate.open) {
		l.deliverLocked()
	}
}

// forwardLocked has the server receive the first request.
func (l *link) forwardLocked() {
	m := l.requests[0]
	l.requests = l.requests[1:]
	l.sent[xidOf(m.frame)] = m
	switch m.kind {
	case "watch", counting:
		delete(l.gate.early, m.watched)
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
	case m.look != "":
		l.looks[m.look]++
	case m.found:
		l.gate.armed[m.watched] = true
	case m.event:
		delete(l.gate.armed, m.watched)
		delete(l.gate.early, m.watched)
	}
	l.toClient <- m.frame
}

// forward has the server receive the first request, and the watches behind a sync.
func (g *gate) forward() {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.link
	wasSync, wasRead := l.requests[0].kind == syncing, l.requests[0].isRead()
	l.forwardLocked()
	for g.parallel && wasRead && len(l.requests) > 0 && l.requests[0].isRead() {
		l.forwardLocked()
	}
	if wasSync && len(l.requests) > 0 && l.requests[0].kind == rewatch {
		l.forwardLocked()
	}
	l.passLocked()
}

// deliver has the client receive the first reply or event, which is about node in the model.
func (g *gate) deliver(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = true
	l := g.link
	if g.parallel {
		l.advanceLocked(node)
	}
	wasAnswer := l.replies[0].isAnswer()
	l.deliverLocked()
	for g.parallel && wasAnswer && len(l.replies) > 0 && l.replies[0].isAnswer() {
		l.deliverLocked()
	}
}

// advanceLocked puts the event of a node ahead of other events. A client that waits in all directories at the
// same time sets its watches in any order, and after a reconnect the servers send the events in that order.
func (l *link) advanceLocked(node string) {
	for i, m := range l.replies {
		switch {
		case !m.event:
			return
		case m.node == node:
			copy(l.replies[1:], l.replies[:i])
			l.replies[0] = m
			return
		}
	}
}

func (m message) isRead() bool { return m.kind == "watch" || strings.HasPrefix(m.kind, "list ") }

func (m message) isAnswer() bool {
	return m.kind == "listed" || m.kind == "there" || m.kind == "missing"
}

// pass has the replies pass that the model does not have, once the client has done what follows a delivery.
func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = false
	if g.link != nil {
		g.link.passLocked()
	}
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
	g.held[node] = true
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
