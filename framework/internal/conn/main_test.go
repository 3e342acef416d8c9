package conn

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const (
	testTimeout = 30 * time.Second // limits waits for what must happen
	long        = time.Hour        // a session timeout with the first heartbeat after 10 min
)

func eventually(t *testing.T, cond func() bool, message string, args ...any) {
	t.Helper()
	require.Eventually(t, cond, testTimeout, time.Millisecond, append([]any{message}, args...)...)
}

// server runs a script for each accepted connection.
type server struct {
	listener net.Listener
	script   func(*peer)
	running  sync.WaitGroup

	mu    sync.Mutex
	peers []*peer
}

// serve starts a server that is closed at the end of the test.
func serve(t *testing.T, script func(*peer)) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveOn(t, listener, script)
}

func serveOn(t *testing.T, listener net.Listener, script func(*peer)) *server {
	s := &server{listener: listener, script: script}
	s.running.Go(s.accept)
	t.Cleanup(func() {
		s.closeAll()
		s.running.Wait()
	})
	return s
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		p := &peer{Conn: conn, number: len(s.peers)}
		s.peers = append(s.peers, p)
		s.mu.Unlock()
		s.running.Go(func() {
			defer conn.Close()
			s.script(p)
		})
	}
}

// pipes is a listener in memory for tests in virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

// serveInMemory is serve for tests in virtual time. dial reaches the server with any address.
func serveInMemory(
	t *testing.T, script func(*peer),
) (s *server, dial func(context.Context, string, string) (net.Conn, error)) {
	t.Helper()
	closed := make(chan struct{})
	p := &pipes{conns: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
	return serveOn(t, p, script), p.dial
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

// closeAll closes the listener and all connections.
func (s *server) closeAll() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		p.Close()
	}
}

func (s *server) addr() string { return s.listener.Addr().String() }

func (s *server) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.peers)
}

// peer is the server's end of a connection.
type peer struct {
	net.Conn
	number int // from 0
}

type frame struct {
	xid, op int32
	body    []byte
}

// int64At returns a field of a frame that is not a request.
func int64At(b []byte, position int) int64 { return int64(binary.BigEndian.Uint64(b[position:])) }

func (p *peer) read() ([]byte, bool) {
	length := make([]byte, 4)
	if _, err := io.ReadFull(p, length); err != nil {
		return nil, false
	}
	payload := make([]byte, binary.BigEndian.Uint32(length))
	_, err := io.ReadFull(p, payload)
	return payload, err == nil
}

func (p *peer) write(payload ...byte) {
	_, _ = p.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...))
}

// connectReply returns a connect reply.
func connectReply(id int64, timeout time.Duration) []byte {
	b := make([]byte, 36)
	binary.BigEndian.PutUint32(b[4:], uint32(timeout.Milliseconds()))
	binary.BigEndian.PutUint64(b[8:], uint64(id))
	binary.BigEndian.PutUint32(b[16:], 16)
	copy(b[20:], "password of 16 b")
	return b
}

// grant grants a session and returns the connect request.
func (p *peer) grant(id int64, timeout time.Duration) (asked []byte, ok bool) {
	if asked, ok = p.read(); ok {
		p.write(connectReply(id, timeout)...)
	}
	return asked, ok
}

// next reads the next request.
func (p *peer) next() (frame, bool) {
	b, ok := p.read()
	if !ok || len(b) < 8 {
		return frame{}, false
	}
	return frame{int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:])), b[8:]}, true
}

// answer answers a request and reports whether it ended the session. The answer is NoNode to
// exists, and success to all others.
func (p *peer) answer(f frame, zxid int64) bool {
	reply := binary.BigEndian.AppendUint32(nil, uint32(f.xid))
	reply = binary.BigEndian.AppendUint64(reply, uint64(zxid))
	code := int32(0)
	if f.op == opExists {
		code = -101
	}
	p.write(binary.BigEndian.AppendUint32(reply, uint32(code))...)
	return f.op == opCloseSession
}

// answerAll grants a session and answers every request.
func (p *peer) answerAll(id int64, timeout time.Duration) {
	if _, ok := p.grant(id, timeout); !ok {
		return
	}
	for f, ok := p.next(); ok; f, ok = p.next() {
		if p.answer(f, 1) {
			return
		}
	}
}

// client is a Conn together with a record of the calls of its Handler.
type client struct {
	*Conn
	logs   *observer.ObservedLogs
	manual bool // the test calls Admit
	// pause is how long the goroutine that reads stands still with each event, as one does whose process is
	// paused.
	pause time.Duration

	mu           sync.Mutex
	connected    int
	disconnected int
	ended        []error
	events       []zk.Event
}

// connect starts a Conn that is closed at the end of the test. cfg has the settings that differ
// from the default.
func connect(t *testing.T, cfg Config, servers ...string) *client {
	t.Helper()
	return start(t, &client{}, cfg, servers...)
}

// connectByHand is connect for tests that call Admit themselves.
func connectByHand(t *testing.T, cfg Config, servers ...string) *client {
	t.Helper()
	return start(t, &client{manual: true}, cfg, servers...)
}

func start(t *testing.T, c *client, cfg Config, servers ...string) *client {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	c.logs = logs
	cfg.Servers, cfg.Logger, cfg.Handler = servers, zap.New(core), c
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = long
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = testTimeout
	}
	if cfg.Random == nil {
		cfg.Random = func(n int64) int64 { return n / 20 } // short pauses
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	c.Conn = New(cfg)
	t.Cleanup(c.Close)
	c.Start()
	return c
}

func (c *client) Established(Info) {}

func (c *client) Connected() {
	if !c.manual {
		c.Admit()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected++
}

func (c *client) Disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnected++
}

func (c *client) Ended(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, reason)
}

func (c *client) Event(e zk.Event, _ int64) {
	time.Sleep(c.pause)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

func (c *client) Quorum() bool { return false }

// expired reports whether Ended was called once, with the expiry of the session.
func (c *client) expired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Equal(c.ended, []error{zk.ErrSessionExpired})
}

// connections returns how many connections were made, and how many of them have ended.
func (c *client) connections() (connected, disconnected int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected, c.disconnected
}

func (c *client) awaitSession(t *testing.T, id int64) {
	t.Helper()
	eventually(t, func() bool {
		return c.Info().ID == id && (c.Admitted() || c.manual && c.current() != nil)
	}, "never got session %d", id)
}

// awaitIdle waits until all goroutines of the Conn have ended by themselves.
func (c *client) awaitIdle(t *testing.T) {
	t.Helper()
	require.True(t, c.over())
	c.running.Wait()
}

// unstarted returns a Conn that never connects.
func unstarted(servers ...string) *Conn {
	return New(Config{
		Servers: servers, SessionTimeout: time.Second, ConnectTimeout: time.Second,
		Logger: zap.NewNop(), Handler: &client{manual: true},
	})
}

// redirect returns a dialer that dials addr whatever the address.
func redirect(addr string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
}
