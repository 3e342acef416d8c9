package framework_test

import (
	"encoding/binary"
	"io"
	"maps"
	"net"
	pathpkg "path"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/fault"
)

// oldServer grants sessions and supports a few operations. Like an old server, it does not support
// containers: it answers "not implemented" and closes the connection.
type oldServer struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	conns    []net.Conn
	requests map[fault.Op]int
	entries  uint32 // the length of every ACL
	nodes    map[string]bool
	multi    []byte // the results of every transaction; nil: those of transact
}

func startOldServer(t *testing.T) *oldServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &oldServer{listener: listener, requests: map[fault.Op]int{}, nodes: map[string]bool{}}
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.running.Go(func() {
				defer conn.Close()
				s.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			conn.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return s
}

func (s *oldServer) serve(conn net.Conn) {
	if _, ok := readFrame(conn); !ok {
		return
	}
	greeting := make([]byte, 36)
	binary.BigEndian.PutUint32(greeting[4:], 30_000)
	binary.BigEndian.PutUint64(greeting[8:], 7)
	binary.BigEndian.PutUint32(greeting[16:], 16)
	_, _ = conn.Write(framed(greeting))
	for request, ok := readFrame(conn); ok; request, ok = readFrame(conn) {
		code, body := s.answer(fault.Op(int32(binary.BigEndian.Uint32(request[4:]))), request[8:])
		reply := append(append([]byte(nil), request[:4]...), make([]byte, 8)...)
		reply = binary.BigEndian.AppendUint32(reply, uint32(code))
		_, _ = conn.Write(framed(append(reply, body...)))
		if code == -6 { // requests sent meanwhile are lost
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // Close would discard the reply if there are any
			return
		}
	}
}

func (s *oldServer) answer(op fault.Op, body []byte) (code int32, reply []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[op]++
	switch op {
	case fault.OpExists:
		if !s.nodes[pathOf(body)] {
			return -101, nil
		}
		return 0, make([]byte, 68)
	case fault.OpCreate:
		if code := s.create(s.nodes, pathOf(body), 0); code != 0 {
			return code, nil
		}
		return 0, framed([]byte(pathOf(body)))
	case fault.OpCreateContainer, fault.OpAddWatch, fault.OpMultiRead, fault.OpGetEphemerals,
		fault.OpGetAllChildrenNumber:
		return -6, nil
	case fault.OpMulti:
		if s.multi != nil {
			return 0, s.multi
		}
		return 0, append(s.transact(body), 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
	case fault.OpGetACL: // the length of a list without the list
		return 0, binary.BigEndian.AppendUint32(nil, s.entries)
	}
	return 0, nil
}

// create creates a node among nodes and returns the code of the answer.
func (s *oldServer) create(nodes map[string]bool, path string, flags uint32) int32 {
	switch dir := pathpkg.Dir(path); {
	case flags > 3: // also a container
		return -8
	case nodes[path]:
		return -110
	case dir != "/" && !nodes[dir]:
		return -101
	}
	nodes[path] = true
	return 0
}

// transact applies a transaction of creates and returns the results. It returns none of a transaction
// that has other operations.
func (s *oldServer) transact(body []byte) (results []byte) {
	nodes, failed := maps.Clone(s.nodes), int32(0)
	integer := func() (n uint32) {
		n, body = binary.BigEndian.Uint32(body), body[4:]
		return n
	}
	buffer := func() (b []byte) {
		if n := int32(integer()); n > 0 { // -1: nil
			b, body = body[:n], body[n:]
		}
		return b
	}
	var refusals []byte
	for {
		kind, done := fault.Op(int32(integer())), body[0] == 1
		body = body[5:]
		if done {
			break
		}
		if kind != fault.OpCreate {
			return nil
		}
		path := string(buffer())
		buffer()
		for range integer() {
			integer()
			buffer()
			buffer()
		}
		flags, code := integer(), int32(-2)
		if failed == 0 {
			code = s.create(nodes, path, flags)
			failed = code
		}
		results = append(append(results, 0, 0, 0, 1, 0, 0, 0, 0, 0), framed([]byte(path))...)
		refusals = append(refusals, 0xff, 0xff, 0xff, 0xff, 0)
		refusals = binary.BigEndian.AppendUint32(refusals, uint32(code))
		refusals = binary.BigEndian.AppendUint32(refusals, uint32(code))
	}
	if failed != 0 {
		return refusals
	}
	s.nodes = nodes
	return results
}

func (s *oldServer) count(op fault.Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[op]
}

func pathOf(body []byte) string { return string(body[4 : 4+binary.BigEndian.Uint32(body)]) }

func readFrame(conn net.Conn) ([]byte, bool) {
	length := make([]byte, 4)
	if _, err := io.ReadFull(conn, length); err != nil {
		return nil, false
	}
	payload := make([]byte, binary.BigEndian.Uint32(length))
	_, err := io.ReadFull(conn, payload)
	return payload, err == nil && len(payload) >= 8
}
