// Package testzk gives this module's tests a ZooKeeper: one for each test binary, servers of a test's own, and clients, proxies and
// paths on them.
//
// The environment variable ZOOKEEPER says which: none (the default) is a server in the test's own process, of package zktest; "1" or
// "3" starts that many real servers; anything else is the connection string of servers that run already.
package testzk

import (
	"context"
	"flag"
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
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
	"github.com/docent-zk/docent/zktest/proxy"
)

// SessionTimeout is what clients ask for that are to be harmed, or whose servers are: the longest wait for a server to find out that a
// client is gone.
const SessionTimeout = 4 * time.Second

// calm is what all others ask for. They must not lose their sessions when a busy machine stands still for some seconds.
const calm = 5 * SessionTimeout

// Patience is how long a test waits for something that must happen.
const Patience = 60 * time.Second

// tick is how exactly the servers keep time.
const tick = 200 * time.Millisecond

// The servers of the test binary.
var (
	connect   string
	inProcess *zktest.Server // nil if they are real
)

// Main runs a package's tests on a server or several, and fails if anything is left running.
func Main(m *testing.M) {
	Widen()
	stop, err := start(realzk.Wanted())
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

// Widen lets more parallel tests run at a time than there are processors, unless the command line says how many: they wait more than they
// compute.
func Widen() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", "8")
	}
}

func start(which string) (stop func(), err error) {
	switch which {
	case "":
		return startInProcess()
	case "1":
		return startReal(1)
	case "3":
		return startReal(3)
	}
	connect = which
	return func() {}, nil
}

func startInProcess() (stop func(), err error) {
	inProcess, err = zktest.New(settings()...)
	if err != nil {
		return nil, err
	}
	connect = inProcess.Addr()
	return inProcess.Close, nil
}

// settings are those that package ensemble has for real servers.
func settings() []zktest.Option {
	return []zktest.Option{zktest.WithTick(tick), zktest.WithSessionTimeouts(2*tick, time.Minute)}
}

func startReal(servers int) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	e, err := ensemble.New(ctx, servers, ensemble.WithTick(tick))
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

// Connect is the connection string of the servers that the test binary has.
func Connect() string {
	_ = realzk.Wanted() // for Go's cache of test results, which does not know what was read before the tests
	return connect
}

// InProcess is the server of the test binary if it is in this process, else nil.
func InProcess() *zktest.Server { return inProcess }

// Client is a client of servers that is closed when the test ends.
func Client(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	timeout := SessionTimeout
	if servers == connect {
		timeout = calm // nobody harms those of the whole binary, and who harms a client goes through a proxy
	}
	c, err := framework.New(servers, append([]framework.Option{framework.WithSessionTimeout(timeout)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// Calm is for clients of servers that a test has for itself and does not harm.
func Calm() framework.Option { return framework.WithSessionTimeout(calm) }

// Connected is a Client that has a session.
func Connected(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := Client(t, servers, opts...)
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
	return ObserverOf(t, connect)
}

// ObserverOf is an Observer of other servers.
func ObserverOf(t testing.TB, connect string) *zk.Conn {
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

// Synced is an Observer whose server knows by now what any client has been told before.
func Synced(t testing.TB, observer *zk.Conn) *zk.Conn {
	t.Helper()
	_, err := observer.Sync("/")
	require.NoError(t, err)
	return observer
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
