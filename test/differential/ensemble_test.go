package differential

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// The following tests are on requests that wait between a follower and the ZooKeeper leader. The
// same scripts run on three real servers, with a proxy between the follower and the leader, and on
// zktest. The lines of a script must be equal on both.

// linked is an ensemble in which the packets from one follower to the leader can be delayed.
type linked interface {
	leader() string
	follower() string
	hold()
	release()
	// waits reports whether count packets wait. last has the bytes of the last one.
	waits(count int, last []byte) bool
}

const (
	linkTick   = time.Second
	linkLimit  = 20 // ticks for which packets may be delayed
	linkExpiry = 40 * time.Second
)

// fakeLinked is zktest.
type fakeLinked struct {
	srv *zktest.Server
	f   *zktest.Follower
}

func (l fakeLinked) leader() string             { return l.srv.Addr() }
func (l fakeLinked) follower() string           { return l.f.Addr() }
func (l fakeLinked) hold()                      { l.f.CutToLeader() }
func (l fakeLinked) release()                   { l.f.Restore() }
func (l fakeLinked) waits(n int, _ []byte) bool { return l.f.Waiting() == n }

func startFakeLinked(t *testing.T) linked {
	srv := zktest.Start(t, zktest.WithCompat(zktest.V38), zktest.WithTick(linkTick),
		zktest.WithConfig("syncLimit", fmt.Sprint(linkLimit)))
	return fakeLinked{srv, srv.Follower(0)}
}

// realLinked is three real servers.
type realLinked struct {
	lead, follow *ensemble.Server
	link         *oneWay
}

func (l realLinked) leader() string                  { return l.lead.Addr() }
func (l realLinked) follower() string                { return l.follow.Addr() }
func (l realLinked) hold()                           { l.link.set(true) }
func (l realLinked) release()                        { l.link.set(false) }
func (l realLinked) waits(_ int, marker []byte) bool { return l.link.holds(marker) }

func startRealLinked(t *testing.T) linked {
	links := map[[2]int]*oneWay{}
	t.Cleanup(func() {
		for _, l := range links {
			l.close()
		}
	})
	e := ensemble.Start(t, 3, ensemble.WithTick(linkTick), ensemble.WithConfig("syncLimit", strconv.Itoa(linkLimit)),
		ensemble.WithQuorumLink(func(from, to int, addr string) string {
			if old := links[[2]int{from, to}]; old != nil {
				old.close()
			}
			l := newOneWay(t, addr)
			links[[2]int{from, to}] = l
			return l.listener.Addr().String()
		}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lead, err := e.Leader(ctx)
	require.NoError(t, err)
	for _, s := range e.Servers() {
		if s != lead {
			return realLinked{lead, s, links[[2]int{s.ID(), lead.ID()}]}
		}
	}
	return nil
}

// oneWay forwards connections to an address, and can delay what is sent there.
type oneWay struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu    sync.Mutex
	open  *sync.Cond
	held  bool
	ended bool
	kept  []byte // received since hold and not forwarded yet
	conns []net.Conn
}

func newOneWay(t *testing.T, to string) *oneWay {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &oneWay{listener: listener, to: to}
	l.open = sync.NewCond(&l.mu)
	l.running.Go(l.accept)
	return l
}

func (l *oneWay) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.to)
		if err != nil || !l.add(from, to) {
			_ = from.Close()
			continue
		}
		l.running.Go(func() { l.pass(to, from) })
		l.running.Go(func() {
			_, _ = io.Copy(from, to)
			_ = from.Close()
		})
	}
}

func (l *oneWay) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conns...)
	if l.ended {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	return !l.ended
}

// pass forwards data in chunks. While they are delayed it continues to read.
func (l *oneWay) pass(to, from net.Conn) {
	chunks := make(chan []byte, 4096)
	l.running.Go(func() {
		defer func() { _ = to.Close() }()
		for chunk := range chunks {
			l.await(len(chunk))
			if _, err := to.Write(chunk); err != nil {
				break
			}
		}
		for range chunks { // near the end of from
		}
	})
	defer close(chunks)
	for {
		chunk := make([]byte, 32<<10)
		n, err := from.Read(chunk)
		if n > 0 {
			l.mu.Lock()
			l.kept = append(l.kept, chunk[:n]...)
			l.mu.Unlock()
			chunks <- chunk[:n]
		}
		if err != nil {
			return
		}
	}
}

// await waits until n bytes may be forwarded.
func (l *oneWay) await(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.held && !l.ended {
		l.open.Wait()
	}
	l.kept = l.kept[min(n, len(l.kept)):]
}

func (l *oneWay) set(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	l.open.Broadcast()
}

func (l *oneWay) holds(marker []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held && bytes.Contains(l.kept, marker)
}

func (l *oneWay) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.ended = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.open.Broadcast()
	l.mu.Unlock()
	l.running.Wait()
}

// linkScript is one script and its lines.
type linkScript struct {
	linked
	t     *testing.T
	lines []string
}

func (s *linkScript) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// linkClient is a connection with a session.
type linkClient struct {
	*rawzk.Conn
	s        *linkScript
	session  int64
	password []byte
	xid      int32
}

// enter opens a session, or attaches to that of old.
func (s *linkScript) enter(addr string, old *linkClient) *linkClient {
	c := s.begin(addr, old)
	s.welcome(c, old)
	return c
}

// begin sends a handshake.
func (s *linkScript) begin(addr string, old *linkClient) *linkClient {
	conn, err := rawzk.Dial(addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	hello := rawzk.Connect{Timeout: int32(linkExpiry.Milliseconds()), Password: make([]byte, 16)}
	if old != nil {
		hello.Session, hello.Password = old.session, old.password
	}
	require.NoError(s.t, conn.SendFrame(hello.Encode()))
	return &linkClient{Conn: conn, s: s}
}

// welcome waits for the answer to a handshake.
func (s *linkScript) welcome(c, old *linkClient) {
	frame, err := c.ReadFrame(time.Minute)
	require.NoError(s.t, err)
	connected, err := rawzk.DecodeConnected(frame)
	require.NoError(s.t, err)
	c.session, c.password = connected.Session, connected.Password
	s.say("session: new %v, the same %v", old == nil, old != nil && old.session == c.session)
}

// send sends a request without a line in the transcript. hears waits for the answer.
func (c *linkClient) send(o rawzk.Op) int32 {
	c.xid++
	require.NoError(c.s.t, c.Send(c.xid, o))
	return c.xid
}

// hears adds a line with the next frame that the client receives, and returns its error code.
func (c *linkClient) hears(name string) (code int32) {
	frame, err := c.ReadFrame(time.Minute)
	if err != nil {
		c.s.say("%s: ended %v", name, err == rawzk.ErrClosed || err == rawzk.ErrReset)
		return lost
	}
	d := rawzk.Decode(frame)
	h := d.Header()
	c.s.say("%s: xid %d, error %d, %x", name, h.Xid, h.Err, shown(h, d.Rest()))
	return h.Err
}

// lost is the error code of a connection that has ended.
const lost = -4

// shown returns the part of an answer that does not depend on the server, without a Stat and its
// times.
func shown(_ rawzk.Header, rest []byte) []byte {
	if len(rest) > 60 {
		return nil
	}
	return rest
}

func (c *linkClient) do(name string, o rawzk.Op) (code int32) {
	c.send(o)
	return c.hears(name + " " + strings.SplitN(o.Text, " ", 2)[0])
}

// waitsFor waits until count packets wait in the link, the last of which is the request with the
// xid.
func (s *linkScript) waitsFor(count int, c *linkClient, xid int32, o rawzk.Op) {
	marker := binary.BigEndian.AppendUint64(nil, uint64(c.session))
	marker = binary.BigEndian.AppendUint32(marker, uint32(xid))
	s.waitsForBytes(count, binary.BigEndian.AppendUint32(marker, uint32(o.Code)))
}

// waitsForReturn waits for the packet that reports a reattached session.
func (s *linkScript) waitsForReturn(count int, c *linkClient) {
	const revalidate = 6 // the type of the packet between servers; then a transaction id of −1, and 12 bytes
	marker := binary.BigEndian.AppendUint32(nil, revalidate)
	marker = append(marker, bytes.Repeat([]byte{0xff}, 8)...)
	marker = binary.BigEndian.AppendUint32(marker, 12)
	s.waitsForBytes(count, binary.BigEndian.AppendUint64(marker, uint64(c.session)))
}

func (s *linkScript) waitsForBytes(count int, marker []byte) {
	require.Eventually(s.t, func() bool { return s.waits(count, marker) }, time.Minute, 5*time.Millisecond)
}

// ephemeral returns a request for an ephemeral node.
func ephemeral(path string) rawzk.Op { return rawzk.Create(path, nil, rawzk.Open(), rawzk.Ephemeral) }

func persistent(path string) rawzk.Op {
	return rawzk.Create(path, nil, rawzk.Open(), rawzk.Persistent)
}

// sessionComesBack moves a session from one server to another and back, while a create waits at the
// first. The leader learns of the return right after it has read the create. Transactions of
// another client keep the leader busy in between, because it checks the owner when it begins with a
// request, and not when it reads it. This is repeated if the leader was not busy for long enough: it has
// refused the create then.
func sessionComesBack(s *linkScript) {
	const tries = 5
	for n := range tries {
		s.lines = nil
		if s.comesBack(n) {
			return
		}
	}
}

// comesBack reports whether the create was applied.
func (s *linkScript) comesBack(n int) bool {
	const transactions, nodes = 40, 200
	busyNode, ghostNode := fmt.Sprintf("/busy-%d", n), fmt.Sprintf("/ghost-%d", n)
	busy, c := s.enter(s.follower(), nil), s.enter(s.follower(), nil)
	s.hold()
	var last rawzk.Op
	for i := range transactions {
		var parts []rawzk.Op
		for j := range nodes {
			parts = append(parts, persistent(fmt.Sprintf("%s-%d-%d", busyNode, i, j)))
		}
		last = rawzk.Multi(parts...)
		busy.send(last)
	}
	s.waitsFor(transactions, busy, busy.xid, last)
	ghost := ephemeral(ghostNode)
	s.waitsFor(transactions+1, c, c.send(ghost), ghost)
	require.NoError(s.t, c.Close())
	elsewhere := s.enter(s.leader(), c)
	elsewhere.do("elsewhere", rawzk.Sync("/"))
	elsewhere.do("elsewhere", rawzk.Exists(ghostNode, false))
	require.NoError(s.t, elsewhere.Close())
	back := s.begin(s.follower(), c)
	s.waitsForReturn(transactions+2, c)
	s.release()
	s.welcome(back, c)
	back.do("back", rawzk.Sync("/"))
	applied := back.do("back", rawzk.Exists(ghostNode, false)) == 0
	back.do("back", rawzk.CloseSession())
	back.hears("back")
	return applied
}

func sessionHasMoved(s *linkScript) {
	c := s.enter(s.follower(), nil)
	s.hold()
	create := persistent("/moved")
	s.waitsFor(1, c, c.send(create), create)
	moved := s.enter(s.leader(), c)
	s.release()
	c.hears("old")
	moved.do("moved", rawzk.Sync("/"))
	moved.do("moved", rawzk.Exists("/moved", false))
	moved.do("moved", rawzk.CloseSession())
}

func multiOfASessionThatHasMoved(s *linkScript) {
	c := s.enter(s.follower(), nil)
	s.hold()
	multi := rawzk.Multi(persistent("/multi-1"), persistent("/multi-2"))
	s.waitsFor(1, c, c.send(multi), multi)
	moved := s.enter(s.leader(), c)
	s.release()
	c.hears("old")
	c.do("old", rawzk.Exists("/multi-1", false))
	moved.do("moved", rawzk.CloseSession())
	c.hears("old")
}

// endOfASessionThatHasMoved shows that the follower takes the transaction of the create for that of
// the closeSession, because both have the number 1. The closeSession is held until its connection
// has ended: the follower that executes it closes the connections of the session at once, with or
// without the answers that they have to send.
func endOfASessionThatHasMoved(s *linkScript) {
	c := s.enter(s.follower(), nil)
	s.hold()
	end := rawzk.CloseSession()
	s.waitsFor(1, c, c.send(end), end)
	moved := s.enter(s.leader(), c)
	moved.do("moved", ephemeral("/mine"))
	c.hears("old")
	c.hears("old")
	s.release()
	moved.hears("moved")
	other := s.enter(s.leader(), nil)
	other.do("other", rawzk.Exists("/mine", false))
	other.do("other", rawzk.CloseSession())
}

// numbersThatRepeat sends requests with the same numbers on two connections of a session. A server
// finds the requests of its clients in the stream of transactions by session and number, and looks
// only at the first of those that wait.
func numbersThatRepeat(s *linkScript) {
	setup := s.enter(s.leader(), nil)
	setup.do("setup", persistent("/set"))
	c := s.enter(s.follower(), nil)
	s.hold()
	waiting := []rawzk.Op{
		persistent("/kept"), rawzk.Delete("/set", -1), rawzk.Multi(persistent("/kept-multi")), rawzk.Sync("/"),
		rawzk.SetACL("/set", rawzk.Open(), -1), rawzk.Multi(persistent("/kept-second")), persistent("/kept-last"),
	}
	for _, o := range waiting {
		c.send(o)
	}
	s.waitsFor(len(waiting), c, c.xid, waiting[len(waiting)-1])
	moved := s.enter(s.leader(), c)
	for _, xid := range []int32{2, 1, 2, 3, 4} {
		moved.xid = xid - 1
		moved.do("moved", persistent(fmt.Sprintf("/other-%d-%d", xid, len(s.lines))))
		if xid != 2 || len(s.lines) > 6 {
			c.hears("old")
		}
	}
	moved.do("moved", rawzk.SetData("/set", nil, -1))
	c.hears("old")
	moved.do("moved", rawzk.Multi(rawzk.Check("/", -1), rawzk.Check("/set", -1)))
	c.hears("old")
	s.release()
	c.hears("old")
	moved.do("moved", rawzk.Exists("/kept", false))
	moved.do("moved", rawzk.CloseSession())
	setup.do("setup", rawzk.Delete("/set", -1))
	setup.do("setup", rawzk.CloseSession())
}

func connectionThatStaysAtTheFollower(s *linkScript) {
	c := s.enter(s.follower(), nil)
	moved := s.enter(s.leader(), c)
	c.do("old", rawzk.Ping())
	c.do("old", rawzk.Sync("/"))
	c.do("old", rawzk.GetChildren("/zookeeper", false))
	c.do("old", persistent("/stays"))
	back := s.enter(s.follower(), c)
	moved.do("moved", rawzk.Exists("/", false))
	back.do("back", rawzk.Exists("/stays", false))
	back.do("back", rawzk.CloseSession())
}

func returnToTheSameFollower(s *linkScript) {
	c := s.enter(s.follower(), nil)
	s.hold()
	create := persistent("/same")
	s.waitsFor(1, c, c.send(create), create)
	back := s.begin(s.follower(), c)
	c.hears("old")
	s.waitsForReturn(2, c)
	s.release()
	s.welcome(back, c)
	back.do("back", rawzk.Sync("/"))
	back.do("back", rawzk.Exists("/same", false))
	back.do("back", rawzk.CloseSession())
}

// watchesAtAFollower shows which events a follower sends, when, and what a client receives that
// moves to another server with its watches. Each sync makes the events before it arrive.
func watchesAtAFollower(s *linkScript) {
	writer, w := s.enter(s.leader(), nil), s.enter(s.follower(), nil)
	trial := func(name string) {
		for _, o := range []rawzk.Op{
			persistent("/watched/x"), rawzk.SetData("/watched/x", nil, -1), persistent("/watched/x/kid"),
			rawzk.SetData("/watched", nil, -1), rawzk.Delete("/watched/x/kid", -1), rawzk.Delete("/watched/x", -1),
		} {
			writer.doPlainly("writer", o)
			w.doUntilAnswer(name, rawzk.Sync("/"))
		}
		w.doUntilAnswer(name+" writes", rawzk.SetData("/watched", nil, -1)) // its events come first
	}
	writer.doPlainly("writer", persistent("/watched"))
	w.doUntilAnswer("follower", rawzk.Sync("/"))
	for _, o := range []rawzk.Op{
		rawzk.AddWatch("/watched", 1), rawzk.AddWatch("/watched/x", 0), rawzk.GetChildren("/watched", true),
	} {
		w.doUntilAnswer("follower", o)
	}
	trial("follower")
	w.doUntilAnswer("follower", ephemeral("/watched/mine"))
	for _, o := range []rawzk.Op{
		rawzk.GetEphemerals("/watched"), rawzk.GetAllChildrenNumber("/watched"),
		rawzk.MultiRead(rawzk.GetChildren("/watched", false), rawzk.GetChildren("/none", false)),
		rawzk.CheckWatches("/watched", 3), rawzk.RemoveWatches("/watched/x", 3),
	} {
		w.doUntilAnswer("follower", o)
	}
	require.NoError(s.t, w.Close())
	writer.doPlainly("writer", rawzk.SetData("/watched", nil, -1))
	w = s.enter(s.leader(), w)
	w.doUntilAnswer("moved", rawzk.SetWatches2(0, []string{"/watched"}, []string{}, []string{"/none"},
		[]string{"/watched/x"}, []string{"/watched"}))
	trial("moved")
	w.doUntilAnswer("moved", rawzk.GetEphemerals("/"))
	w.doUntilAnswer("moved", rawzk.CloseSession())
	writer.doUntilAnswer("writer", rawzk.CloseSession())
}

// doPlainly makes a request of a client without watches and shows only its error.
func (c *linkClient) doPlainly(name string, o rawzk.Op) {
	xid := c.send(o)
	frame, err := c.ReadFrame(time.Minute)
	require.NoError(c.s.t, err)
	h := rawzk.Decode(frame).Header()
	require.Equal(c.s.t, xid, h.Xid)
	c.s.say("%s: %s, error %d", name, o.Text, h.Err)
}

// doUntilAnswer makes a request and shows the events before its answer, and the answer.
func (c *linkClient) doUntilAnswer(name string, o rawzk.Op) {
	xid := c.send(o)
	for {
		frame, err := c.ReadFrame(time.Minute)
		require.NoError(c.s.t, err)
		d := rawzk.Decode(frame)
		h := d.Header()
		c.s.say("%s %s: xid %d, error %d, %x", name, o.Text, h.Xid, h.Err, shown(h, d.Rest()))
		if h.Xid == xid {
			return
		}
	}
}

func TestRequestsBetweenFollowerAndLeader(t *testing.T) {
	realzk.Need(t)
	real, fake := startRealLinked(t), startFakeLinked(t)
	scripts := map[string]func(*linkScript){
		"session comes back":          sessionComesBack,
		"session has moved":           sessionHasMoved,
		"multi of a session that has": multiOfASessionThatHasMoved,
		"end of a session that has":   endOfASessionThatHasMoved,
		"numbers that repeat":         numbersThatRepeat,
		"connection that stays":       connectionThatStaysAtTheFollower,
		"return to the same follower": returnToTheSameFollower,
		"watches at a follower":       watchesAtAFollower,
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			var lines [2][]string
			for i, servers := range []linked{real, fake} {
				s := &linkScript{linked: servers, t: t}
				script(s)
				lines[i] = s.lines
			}
			t.Logf("the real servers:\n%s", strings.Join(lines[0], "\n"))
			require.Equal(t, lines[0], lines[1])
		})
	}
}
