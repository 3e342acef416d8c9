package chaos

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// network is what stands between the servers of an ensemble, and between clients and servers.
type network struct {
	t *testing.T

	mu        sync.Mutex
	links     map[[2]int]*relay // for the quorum, by the numbers of servers
	elections map[[2]int]*relay
	all       []*relay
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, links: map[[2]int]*relay{}, elections: map[[2]int]*relay{}}
	t.Cleanup(func() {
		n.mu.Lock()
		all := n.all
		n.mu.Unlock()
		for _, r := range all {
			r.close()
		}
	})
	return n
}

// relay is a new relay to an address. It is closed with the test.
func (n *network) relay(to string) *relay {
	r, err := newRelay(to)
	require.NoError(n.t, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, r)
	return r
}

// between is for ensemble.WithQuorumLink.
func (n *network) between(from, to int, addr string) string {
	r := n.relay(addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	r.waits.Store(true)
	n.links[[2]int{from, to}] = r
	return r.addr()
}

// betweenElections is for ensemble.WithElectionLink.
func (n *network) betweenElections(from, to int, addr string) string {
	r := n.relay(addr)
	r.up.introduce(func() string { return n.election(to, from).addr() })
	n.mu.Lock()
	defer n.mu.Unlock()
	n.elections[[2]int{from, to}] = r
	return r.addr()
}

func (n *network) election(from, to int) *relay {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.elections[[2]int{from, to}]
}

// pair is all that two servers can send to each other: by the connection of one of them to the other
// if that leads, and for elections.
type pair struct{ quorum, elections []*relay }

func (n *network) pair(a, b *ensemble.Server) pair {
	n.mu.Lock()
	defer n.mu.Unlock()
	ab, ba := [2]int{a.ID(), b.ID()}, [2]int{b.ID(), a.ID()}
	return pair{[]*relay{n.links[ab], n.links[ba]}, []*relay{n.elections[ab], n.elections[ba]}}
}

func (p pair) all() []*relay { return slices.Concat(p.quorum, p.elections) }

// link is the way from a follower to the leader.
func (n *network) link(follower, leader *ensemble.Server) *relay {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.links[[2]int{follower.ID(), leader.ID()}]
}

// relay passes connections on to an address. What is sent in a direction can be kept back. Nothing is
// lost by that: what was kept back is delivered in order afterwards, as by a network that loses
// packets for a while.
type relay struct {
	listener net.Listener
	to       string
	up, down *way        // to the address, and back
	waits    atomic.Bool // until the address listens: a server listens for others when it begins to lead
	running  sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]end
	refusing bool
	ended    bool
}

// end is one of the two ends of a connection that a relay passes on.
type end int

const (
	near end = iota // has connected to the relay
	far             // is the address
)

func newRelay(to string) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, to: to, up: newWay(), down: newWay(), conns: map[net.Conn]end{}}
	r.running.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

// close ends all connections, and waits for what the relay runs.
func (r *relay) close() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	_ = r.listener.Close()
	r.drop()
	r.up.end()
	r.down.end()
	r.running.Wait()
}

func (r *relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.join(conn) })
	}
}

// join connects what has come with the address until one of the two ends.
func (r *relay) join(from net.Conn) {
	defer from.Close()
	if !r.admit(from, near) {
		return
	}
	defer r.forget(from)
	to, err := r.dial()
	if err != nil {
		return
	}
	defer to.Close()
	if !r.admit(to, far) {
		return
	}
	defer r.forget(to)
	var both sync.WaitGroup
	both.Go(func() { r.up.carry(from, to) })
	both.Go(func() { r.down.carry(to, from) })
	both.Wait()
}

// dial connects to the address. With waits it tries again as long as connections are admitted.
func (r *relay) dial() (net.Conn, error) {
	const limit = 5 * time.Second
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", r.to, limit)
		if err == nil || !r.waits.Load() || !r.admits() || time.Now().After(end) {
			return conn, err
		}
	}
}

func (r *relay) admits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admitsLocked()
}

func (r *relay) admitsLocked() bool { return !r.ended && !r.refusing }

func (r *relay) admit(conn net.Conn, which end) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.admitsLocked() {
		return false
	}
	r.conns[conn] = which
	return true
}

func (r *relay) forget(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}

// refuse ends all connections, and closes new ones at once until allow. It reports whether there were
// any.
func (r *relay) refuse() (some bool) {
	r.mu.Lock()
	r.refusing = true
	r.mu.Unlock()
	return r.drop()
}

func (r *relay) allow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusing = false
}

// drop ends all connections, and reports whether there were any. What is kept back of them is lost.
func (r *relay) drop() (some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		some = true
		_ = conn.Close()
	}
	clear(r.conns)
	return some
}

// dropNear ends the connections for those that have made them. After hold the other side learns it when
// release is called.
func (r *relay) dropNear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn, which := range r.conns {
		if which == near {
			_ = conn.Close()
		}
	}
}

// reset ends all connections as drop does, with a reset that both sides see.
func (r *relay) reset() (some bool) {
	r.mu.Lock()
	for conn := range r.conns { // all, before the end of one closes another
		_ = conn.(*net.TCPConn).SetLinger(0) // if it fails, the end is an ordinary one
	}
	r.mu.Unlock()
	return r.drop()
}

// hold keeps back what is sent in both directions until release.
func (r *relay) hold() {
	r.up.hold()
	r.down.hold()
}

func (r *relay) release() {
	r.up.release()
	r.down.release()
}

// keepsBack reports whether something that was sent is kept back.
func (r *relay) keepsBack() bool { return r.up.keepsBack() || r.down.keepsBack() }

// hasSlowed reports whether something that was sent took longer since the last call of slow.
func (r *relay) hasSlowed() bool { return r.up.hasSlowed() || r.down.hasSlowed() }

// session returns the session of a client's open connection, or 0.
func (r *relay) session() int64 { return r.down.session() }

// way is one direction of all connections of a relay.
type way struct {
	mu      sync.Mutex
	changed *sync.Cond
	held    bool
	ended   bool
	pace    pace
	slowed  bool          // by this pace
	address func() string // takes the place of that in the first message, or nil
	streams map[*stream]struct{}
	marked  bool
	passed  []byte // since mark
}

// stream is one connection's part of a way.
type stream struct {
	first   []byte // of what came: as much as a server's answer to a handshake has
	kept    []byte
	closed  bool          // nothing comes any more
	carried bool          // something has been delivered
	left    chan struct{} // closed when one of its ends has ended
}

func newWay() *way {
	w := &way{streams: map[*stream]struct{}{}}
	w.changed = sync.NewCond(&w.mu)
	return w
}

func (w *way) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.changed.Broadcast()
}

func (w *way) hold()    { w.set(func() { w.held = true }) }
func (w *way) release() { w.set(func() { w.held = false }) }
func (w *way) end()     { w.set(func() { w.ended = true }) }

// introduce puts another address into the first message of each connection, which is for elections.
func (w *way) introduce(address func() string) { w.set(func() { w.address = address }) }

// mark begins anew to remember what is delivered.
func (w *way) mark() { w.set(func() { w.marked, w.passed = true, nil }) }

// carry delivers what comes from one end to the other until one of them ends.
func (w *way) carry(from, to net.Conn) {
	s := &stream{left: make(chan struct{})}
	w.set(func() { w.streams[s] = struct{}{} })
	defer w.set(func() { delete(w.streams, s) })
	var reading sync.WaitGroup
	defer reading.Wait()
	defer from.Close() // ends the reading
	defer to.Close()
	defer close(s.left)
	reading.Go(func() { w.collect(s, from) })
	for {
		chunk := w.next(s)
		if chunk == nil {
			return
		}
		if _, err := to.Write(chunk); err != nil {
			return
		}
	}
}

func (w *way) collect(s *stream, from net.Conn) {
	buffer, first := make([]byte, 32<<10), w.introduction()
	for {
		chunk := w.current().limit(buffer)
		n, err := from.Read(chunk)
		slow := w.current().wait(n, s.left)
		came := first.replace(chunk[:n])
		w.set(func() {
			s.kept, s.closed, w.slowed = append(s.kept, came...), err != nil, w.slowed || slow
			s.first = append(s.first, came[:min(len(came), answerLength-len(s.first))]...)
		})
		if err != nil {
			return
		}
	}
}

// next waits for what may be delivered. It is nil once there is nothing any more.
func (w *way) next(s *stream) (chunk []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.ended && (w.held || len(s.kept) == 0 && !s.closed) {
		w.changed.Wait()
	}
	if w.ended {
		return nil
	}
	chunk, s.kept = s.kept, nil
	s.carried = true
	if w.marked {
		w.passed = append(w.passed, chunk...)
	}
	return chunk
}

// waiting says whether all that is looked for is kept back.
func (w *way) waiting(markers ...[]byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, marker := range markers {
		found := false
		for s := range w.streams {
			found = found || bytes.Contains(s.kept, marker)
		}
		if !found {
			return false
		}
	}
	return true
}

// keepsBack reports whether something that was sent is kept back.
func (w *way) keepsBack() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.streams {
		if w.held && len(s.kept) > 0 {
			return true
		}
	}
	return false
}

func (w *way) hasSlowed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slowed
}

// Where a server's answer to a handshake has the session.
const (
	sessionAt    = 12
	answerLength = sessionAt + 8
)

// session returns the session of an open connection on which a server has answered a client, or 0.
func (w *way) session() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.streams {
		if !s.closed && len(s.first) == answerLength {
			return int64(binary.BigEndian.Uint64(s.first[sessionAt:]))
		}
	}
	return 0
}

// introduction is the first message of a connection for elections: the version of the protocol, the
// number of the sender, the length of its address, and the address.
type introduction struct {
	address func() string // that the message gets; nil: it is another message
	came    []byte        // of the message
}

func (w *way) introduction() *introduction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &introduction{address: w.address}
}

// replace takes what has come, and returns what is to be delivered: nothing until the message is
// whole, and then the message with the other address and what follows.
func (i *introduction) replace(chunk []byte) []byte {
	const lengthAt, addressAt = 16, 20
	if i.address == nil {
		return chunk
	}
	i.came = append(i.came, chunk...)
	if len(i.came) < addressAt || len(i.came) < addressAt+int(word(i.came[lengthAt:])) {
		return nil
	}
	address := i.address()
	message := binary.BigEndian.AppendUint32(i.came[:lengthAt:lengthAt], uint32(len(address)))
	message = append(append(message, address...), i.came[addressAt+int(word(i.came[lengthAt:])):]...)
	i.address, i.came = nil, nil
	return message
}

// used says whether there is a connection on which something has been delivered.
func (w *way) used() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.streams {
		if s.carried && !s.closed {
			return true
		}
	}
	return false
}

// delivered is what has been delivered since mark.
func (w *way) delivered() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.passed)
}

// The types of packets between servers, and the length of those about one session.
const (
	packetRevalidate = 6
	sessionEntry     = 12
)

// revalidation is the packet by which a follower asks the leader whether a session that came to it is
// alive, from the session on. In front of it are the type, a transaction id, and the length of the
// rest.
func revalidation(session int64, timeout time.Duration) []byte {
	return append(binary.BigEndian.AppendUint32(nil, sessionEntry), entry(session, timeout)...)
}

// entry is how a follower names a session and its timeout to the leader.
func entry(session int64, timeout time.Duration) []byte {
	id := binary.BigEndian.AppendUint64(nil, uint64(session))
	return binary.BigEndian.AppendUint32(id, uint32(timeout.Milliseconds()))
}

// heard says what a follower has told the leader about a session: in reports of those that it has
// heard of, and because the session came to it.
func heard(passed []byte, session int64, timeout time.Duration) (reported, revalidated bool) {
	mark := entry(session, timeout)
	for {
		at := bytes.Index(passed, mark)
		if at < 0 {
			return reported, revalidated
		}
		if at >= 16 && word(passed[at-16:]) == packetRevalidate && word(passed[at-4:]) == sessionEntry {
			revalidated = true
		} else {
			reported = true
		}
		passed = passed[at+len(mark):]
	}
}

func word(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
