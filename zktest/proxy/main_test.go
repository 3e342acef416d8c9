package proxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// bound bounds every wait. It is far longer than any wait takes, so that only a hang reaches it.
const bound = 20 * time.Second

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition that no call announces.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx := timeout(t)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			require.FailNow(t, "never: "+what)
		}
	}
}

// server answers each frame with its header, and records it.
type server struct {
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	seen  []request
	opens int // number of connect frames
}

func startServer(t *testing.T) *server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &server{listener: listener, conns: map[net.Conn]bool{}}
	s.running.Go(s.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		s.drop()
		s.running.Wait()
	})
	return s
}

func (s *server) addr() string { return s.listener.Addr().String() }

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.running.Go(func() {
			s.serve(conn)
			_ = conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

func (s *server) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	for first := true; ; first = false {
		data, whole, err := readFrame(r)
		if err != nil {
			return
		}
		if !whole {
			_, _ = io.WriteString(conn, "im") // the answer to a four-letter word is shorter than any frame
			return
		}
		if _, err := conn.Write(s.answer(data, first)); err != nil {
			return
		}
	}
}

func (s *server) answer(data []byte, first bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first {
		s.opens++
		return frame("opened")
	}
	req, _ := parseRequest(data)
	s.seen = append(s.seen, req)
	reply := binary.BigEndian.AppendUint32(nil, uint32(req.xid))
	return frame(string(append(reply, make([]byte, 12)...))) // zxid and error
}

func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *server) paths() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, req := range s.seen {
		paths = append(paths, req.path)
	}
	return paths
}

func (s *server) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opens
}

// client sends and reads frames.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	xid  int32
}

func dial(t *testing.T, addr string) *client {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, r: bufio.NewReader(conn)}
}

// open dials and performs the handshake.
func open(t *testing.T, addr string) *client {
	c := dial(t, addr)
	c.write(frame("connect"))
	require.Equal(t, "opened", string(c.read()))
	return c
}

func (c *client) write(data []byte) {
	c.t.Helper()
	_, err := c.conn.Write(data)
	require.NoError(c.t, err)
}

// send sends a request and returns its xid.
func (c *client) send(op fault.Op, path string) int32 {
	c.t.Helper()
	c.xid++
	c.write(requestFrame(c.xid, op, path))
	return c.xid
}

func (c *client) tryRead() ([]byte, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(bound)); err != nil {
		return nil, err
	}
	data, _, err := readFrame(c.r)
	if err != nil {
		return nil, err
	}
	return data[prefix:], nil
}

func (c *client) read() []byte {
	c.t.Helper()
	data, err := c.tryRead()
	require.NoError(c.t, err)
	return data
}

// answered expects the answer to a request.
func (c *client) answered(xid int32) {
	c.t.Helper()
	require.Equal(c.t, xid, int32At(c.read(), 0))
}

// closed expects the connection to end without another answer.
func (c *client) closed() error {
	c.t.Helper()
	data, err := c.tryRead()
	require.Error(c.t, err, "got %x", data)
	require.False(c.t, isTimeout(err), "still open")
	return err
}

// silent expects nothing to arrive for a while. It may miss a fault, but it reports no false one.
func (c *client) silent() {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	_, err := c.r.Peek(1)
	require.True(c.t, isTimeout(err), "want silence, got %v", err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func frame(payload string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

func requestFrame(xid int32, op fault.Op, path string) []byte {
	payload := binary.BigEndian.AppendUint32(nil, uint32(xid))
	payload = binary.BigEndian.AppendUint32(payload, uint32(op))
	if op == fault.OpMulti {
		payload = append(payload, 0, 0, 0, 1, 0, 255, 255, 255, 255)
	}
	if path != "" {
		payload = append(payload, frame(path)...)
	}
	return frame(string(payload))
}
