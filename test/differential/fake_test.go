package differential

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// fakeServer is zktest.
type fakeServer struct {
	server *zktest.Server
	dialer func() (net.Conn, error)
}

// startFake starts zktest with real connections, so that both servers have the same network.
func startFake(t *testing.T, c config, compat zktest.Compat) fakeServer {
	t.Helper()
	opts := []zktest.Option{
		zktest.WithCompat(compat), zktest.WithTick(c.tick), zktest.WithSessionTimeouts(c.shortest, c.longest),
	}
	for key, value := range c.properties {
		opts = append(opts, zktest.WithConfig(key, value))
	}
	f := fakeServer{server: zktest.Start(t, opts...)}
	addr := f.server.Addr()
	f.dialer = func() (net.Conn, error) { return net.DialTimeout("tcp", addr, patience) }
	return f
}

// startFakeInMemory starts zktest with connections in memory.
func startFakeInMemory(t *testing.T, c config, compat zktest.Compat) fakeServer {
	t.Helper()
	f := startFake(t, c, compat)
	dial := f.server.Dialer()
	f.dialer = func() (net.Conn, error) { return dial("tcp", f.server.MemAddr(), patience) }
	return f
}

func (f fakeServer) name() string { return "zktest" }
func (f fakeServer) start() error { return f.server.Start() }

func (f fakeServer) stop() error {
	f.server.Stop()
	return nil
}

func (f fakeServer) dial() (*rawzk.Conn, error) {
	conn, err := f.dialer()
	if err != nil {
		return nil, err
	}
	return rawzk.NewConn(conn), nil
}

// compat returns the version of the installed server, whose behaviour zktest has to have.
func (r realServer) compat(t *testing.T) zktest.Compat {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	status, err := r.server.Command(ctx, "srvr")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(status, "version: ")
	switch {
	case strings.HasPrefix(version, "3.8."):
		return zktest.V38
	case strings.HasPrefix(version, "3.9."):
		return zktest.V39
	}
	t.Fatalf("zktest does not imitate the installed server: %.60q", version)
	return 0
}
