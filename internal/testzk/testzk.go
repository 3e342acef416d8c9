// Package testzk gives this module's tests a real ZooKeeper: one ensemble for each test binary, and clients, proxies and paths on it.
//
// The environment variable ZOOKEEPER says which: "1" (the default) or "3" starts that many servers; anything else is the
// connection string of servers that run already.
package testzk

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest/ensemble"
	"github.com/docent-zk/docent/zktest/proxy"
)

// SessionTimeout is what the tests' clients ask for. It is the longest wait for a server to find out that a client is gone.
const SessionTimeout = 4 * time.Second

// Patience is how long a test waits for something that must happen.
const Patience = 60 * time.Second

var connect string

// Main runs a package's tests on an ensemble, and fails if anything is left running.
func Main(m *testing.M) {
	stop, err := start(os.Getenv("ZOOKEEPER"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func start(which string) (stop func(), err error) {
	servers := map[string]int{"": 1, "1": 1, "3": 3}[which]
	if servers == 0 {
		connect = which
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	e, err := ensemble.New(ctx, servers, ensemble.WithTick(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	connect = e.Connect()
	return func() {
		if err := e.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, nil
}

// Connect is the connection string of the test binary's ensemble.
func Connect() string { return connect }

// Client is a client of connect that is closed when the test ends.
func Client(t testing.TB, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c, err := framework.New(connect, append([]framework.Option{framework.WithSessionTimeout(SessionTimeout)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// Connected is a Client that has a session.
func Connected(t testing.TB, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := Client(t, connect, opts...)
	require.NoError(t, c.WaitConnected(Context(t)))
	return c
}

// Proxy is a proxy in front of one of the servers.
func Proxy(t testing.TB) *proxy.Proxy {
	t.Helper()
	server, _, _ := strings.Cut(connect, ",")
	return proxy.Start(t, server)
}

// Context ends after Patience, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

var paths atomic.Int64

// Path is a path that no other test uses.
func Path(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/test-%d-%d/%s", os.Getpid(), paths.Add(1), strings.NewReplacer("/", "-", " ", "_", "#", "-").Replace(t.Name()))
}

// Observer is a plain connection of the driver, to look at the servers without docent.
func Observer(t testing.TB) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(connect, ","), SessionTimeout, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return conn
}

// Eventually waits until cond holds.
func Eventually(t testing.TB, cond func() bool, message string, args ...any) {
	t.Helper()
	require.Eventually(t, cond, Patience, 5*time.Millisecond, append([]any{message}, args...)...)
}

// Empty waits until path has no children, or is gone.
func Empty(t testing.TB, path string) {
	t.Helper()
	observer := Observer(t)
	Eventually(t, func() bool {
		children, _, err := observer.Children(path)
		return err == zk.ErrNoNode || err == nil && len(children) == 0
	}, "nodes are left below %s", path)
}
