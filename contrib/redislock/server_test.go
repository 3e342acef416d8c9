package redislock_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// server is a real server, on a socket in a directory of its own.
type server struct {
	t      testing.TB
	dir    string
	args   []string
	cmd    *exec.Cmd
	direct *redis.Client // of an operator, past all proxies
}

// startServer starts a real server. Without more arguments it keeps nothing on its disk.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // short: the path of a socket is limited
	require.NoError(t, err)
	s := &server{t: t, dir: dir, args: args}
	s.direct = redis.NewClient(s.options())
	t.Cleanup(func() {
		require.NoError(t, s.direct.Close())
		s.kill()
		require.NoError(t, os.RemoveAll(dir))
	})
	s.start()
	return s
}

func (s *server) socket() string { return filepath.Join(s.dir, "socket") }

func (s *server) options() *redis.Options {
	return &redis.Options{Network: "unix", Addr: s.socket(), ContextTimeoutEnabled: true}
}

func (s *server) start() {
	s.t.Helper()
	binary, err := exec.LookPath("redis-server")
	require.NoError(s.t, err, "run scripts/deps.sh redis")
	s.cmd = exec.Command(binary, append([]string{
		"--port", "0", "--unixsocket", s.socket(), "--dir", s.dir, "--save", "", "--logfile", "log",
		"--repl-diskless-sync-delay", "0",
	}, s.args...)...)
	require.NoError(s.t, s.cmd.Start())
	require.Eventually(s.t, func() bool { return s.direct.Ping(context.Background()).Err() == nil },
		time.Minute, 10*time.Millisecond)
}

// kill ends the server without a chance to write.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // it was killed
		s.cmd = nil
	}
}

// proxy passes on connections to a server, and can hold back everything.
type proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // nil: closed
	passed chan struct{}         // closed unless cut
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{
		listener: listener, conns: map[net.Conn]struct{}{}, passed: make(chan struct{}),
		dial: func() (net.Conn, error) { return net.Dial("unix", target) },
	}
	close(p.passed)
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// cut holds back what is sent in both directions, or lets it through.
func (p *proxy) cut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.passed:
		if cut {
			p.passed = make(chan struct{})
		}
	default:
		if !cut {
			close(p.passed)
		}
	}
}

func (p *proxy) close() {
	p.cut(false)
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.running.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := p.dial()
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.add(client, server) {
			return
		}
		p.running.Go(func() { p.pass(server, client) })
		p.running.Go(func() { p.pass(client, server) })
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return p.conns != nil
}

// pass copies from one connection to the other, and closes both at the end of one.
func (p *proxy) pass(to, from net.Conn) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range []net.Conn{to, from} {
			_ = c.Close()
			delete(p.conns, c)
		}
	}()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		passed := p.passed
		p.mu.Unlock()
		<-passed
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}
