// Package testzk provides ZooKeeper servers for this module's tests: servers for each test binary
// and for single tests, with clients, proxies and paths on them.
//
// The environment variable ZOOKEEPER chooses the servers. If it is empty, which is the default,
// there is one server of package zktest in the test's own process. "1" or "3" starts so many real
// servers. "lagging" starts three servers of package zktest, of which two lag behind, so that a test fails that
// relies on a read of what another client has just written. Any other value is the connection string of
// running servers.
package testzk

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/sharedzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
)

// SessionTimeout is the session timeout of clients in virtual time, which does not pass while a
// busy machine stands still.
const SessionTimeout = 4 * time.Second

// longTimeout is the session timeout of clients in real time. A machine that stands still for some
// seconds neither expires their sessions nor ends their connections. It is shorter than Patience, so
// that tests see the end of a session that is not closed.
const longTimeout = 10 * SessionTimeout

// shortTimeout is the session timeout of clients in real time with sessions that must expire by
// silence. It is the shortest that a busy machine keeps.
const shortTimeout = 3 * SessionTimeout

// Patience bounds the wait for something that must happen. It only bounds a hang. It is not longer
// than the interval at which clients check their watches, because such a check would hide a missed
// event.
const Patience = 60 * time.Second

// The servers of the test binary.
var (
	connect   string
	inProcess *zktest.Server // the leader; nil if they are real
)

// Main runs a package's tests on one server or several, and fails if goroutines are left running.
func Main(m *testing.M) {
	Widen()
	stop, err := start(realzk.Wanted())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, stop := range everywhere.stops {
		stop()
	}
	stop()
	leaks.Exit(code)
}

// Widen allows more parallel tests than there are processors, because tests wait more than they
// compute. A number on the command line has priority.
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
	case "lagging":
		return startLagging()
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

// lag is how far the followers of a lagging ensemble are behind: longer than a test needs from a write by one
// client to a read by another.
const lag = 100 * time.Millisecond

// startLagging starts three servers in this process.
func startLagging() (stop func(), err error) {
	srv, err := zktest.New(settings()...)
	if err != nil {
		return nil, err
	}
	servers := []string{srv.Addr()}
	for range 2 {
		servers = append(servers, srv.Follower(lag).Addr())
	}
	inProcess, connect = srv, strings.Join(servers, ",")
	return srv.Close, nil
}

// settings returns the options that match the settings of package ensemble for real servers, and those of sharedzk.
func settings() []zktest.Option {
	return []zktest.Option{
		zktest.WithTick(sharedzk.Tick), zktest.WithSessionTimeouts(2*sharedzk.Tick, time.Minute),
		zktest.WithConfig(sharedzk.ReapSetting, sharedzk.Millis(Seldom)),
	}
}

func startReal(servers int) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	e, err := sharedzk.New(ctx, servers)
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

// Connect returns the connection string of the test binary's servers.
func Connect() string {
	_ = realzk.Wanted() // for Go's cache of test results, which does not know what was read before the tests
	return connect
}

// InProcess returns the server of the test binary if it is in this process, or else nil.
func InProcess() *zktest.Server { return inProcess }

// Client returns a client of servers that is closed when the test ends.
func Client(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	all := []framework.Option{framework.WithSessionTimeout(SessionTimeout)}
	if inRealTime() {
		all = []framework.Option{framework.WithSessionTimeout(longTimeout)}
	}
	c, err := framework.New(servers, append(all, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// inRealTime reports whether the clock is the machine's. The clock of a bubble of testing/synctest
// starts in the year 2000.
func inRealTime() bool { return time.Now().Year() > 2020 }

// Mortal is an option for clients in real time with sessions that must expire because the clients
// are cut off.
func Mortal() framework.Option { return framework.WithSessionTimeout(shortTimeout) }

// Connected returns a Client that has a session.
func Connected(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := Client(t, servers, opts...)
	require.NoError(t, c.WaitConnected(Context(t)))
	return c
}

// Proxy returns a proxy in front of one of the servers.
func Proxy(t testing.TB) *proxy.Proxy {
	t.Helper()
	server, _, _ := strings.Cut(connect, ",")
	return proxy.Start(t, server)
}

// Context returns a context that ends after Patience, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Waiting returns options for a client. waits returns when an acquire of the client waits for other
// holders: its node is then in the queue, and the client has seen the nodes ahead of it.
func Waiting(t testing.TB) (opts []framework.Option, waits func()) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	opts = []framework.Option{framework.WithLogger(zap.New(core)), framework.WithWaitWarning(10 * time.Millisecond)}
	return opts, func() {
		t.Helper()
		Eventually(t, func() bool { return logs.FilterMessage("still waiting").Len() > 0 }, "no acquire waits")
	}
}

// Deadline returns a context below parent. pass makes its deadline pass, so that no clock decides
// when.
func Deadline(parent context.Context) (ctx context.Context, pass func()) {
	d := &deadline{Context: parent, done: make(chan struct{})}
	context.AfterFunc(parent, func() { d.end(parent.Err()) })
	return d, func() { d.end(context.DeadlineExceeded) }
}

type deadline struct {
	context.Context
	done chan struct{}

	mu  sync.Mutex
	err error
}

func (d *deadline) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		close(d.done)
	}
}

func (d *deadline) Done() <-chan struct{} { return d.done }

func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

var paths atomic.Int64

// Path returns a path that no other test uses.
func Path(t testing.TB) string {
	t.Helper()
	name := strings.NewReplacer("/", "-", " ", "_", "#", "-").Replace(t.Name())
	return fmt.Sprintf("/test-%d-%d/%s", os.Getpid(), paths.Add(1), name)
}

// Observer returns a plain connection of the driver, to check the servers without docent.
func Observer(t testing.TB) *Conn {
	t.Helper()
	return ObserverOf(t, connect)
}

// ObserverOf returns an Observer of other servers.
func ObserverOf(t testing.TB, connect string) *Conn {
	t.Helper()
	servers := strings.Split(connect, ",")
	conn, stop, err := observe(servers)
	require.NoError(t, err)
	t.Cleanup(stop)
	return &Conn{Conn: conn, several: len(servers) > 1}
}

func observe(servers []string) (conn *zk.Conn, stop func(), err error) {
	// With a dialer that fails after a second, as the driver's own does, requests made meanwhile would fail.
	dial := func(network, address string, _ time.Duration) (net.Conn, error) {
		return net.DialTimeout(network, address, Patience)
	}
	conn, events, err := zk.Connect(servers, longTimeout, zk.WithLogInfo(false), zk.WithDialer(dial))
	if err != nil {
		return nil, nil, err
	}
	return conn, func() {
		conn.Close()
		for range events {
		}
	}, nil
}

// Everywhere waits until each server of the test binary has what was committed before, so that a
// client can read it from any server. A client that connects later does not need this for its reads: its
// session is a transaction too. In a bubble it returns at once.
func Everywhere(t testing.TB) {
	t.Helper()
	servers := strings.Split(connect, ",")
	if len(servers) == 1 || !inRealTime() {
		return
	}
	everywhere.open.Do(func() {
		for _, server := range servers {
			conn, stop, err := observe([]string{server})
			if err != nil {
				everywhere.err = err
				return
			}
			everywhere.conns, everywhere.stops = append(everywhere.conns, conn), append(everywhere.stops, stop)
		}
	})
	require.NoError(t, everywhere.err)
	for _, conn := range everywhere.conns {
		require.NoError(t, Sync(conn))
	}
}

// Permit leaves all clients with the permissions perms for a node. It waits for each server, because a leader
// allows writes by the ACL that it has applied itself.
func Permit(t testing.TB, path string, perms int32) {
	t.Helper()
	_, err := Observer(t).SetACL(path, zk.WorldACL(perms), -1)
	require.NoError(t, err)
	Everywhere(t)
}

// everywhere has a connection to each of several servers. They are opened when they are first
// needed, and closed by Main.
var everywhere struct {
	open  sync.Once
	conns []*zk.Conn
	stops []func()
	err   error
}

// Sync waits until the observer's server has applied everything that was answered to any client
// before. It makes a transaction: a sync of ZooKeeper does not wait for that on a leader.
func Sync(observer *zk.Conn) error {
	_, err := observer.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1})
	return err
}

// Eventually waits until cond holds.
func Eventually(t testing.TB, cond func() bool, message string, args ...any) {
	t.Helper()
	require.Eventually(t, cond, Patience, 5*time.Millisecond, append([]any{message}, args...)...)
}

// Closes waits until c is closed.
func Closes(t testing.TB, c <-chan struct{}, message string) {
	t.Helper()
	select {
	case <-c:
	case <-Context(t).Done():
		require.FailNow(t, message)
	}
}

// Watchers returns the number of sessions that watch the data of a node on a server.
func Watchers(t testing.TB, server, path string) (sessions int) {
	t.Helper()
	_, behind, _ := strings.Cut(word(t, server, "wchp"), path+"\n")
	for line := range strings.Lines(behind) {
		if !strings.HasPrefix(line, "\t") {
			break
		}
		sessions++
	}
	return sessions
}

// LogState logs the sessions, ephemeral nodes, watches and connections of the first server of the test
// binary. Call it when something that must happen does not.
func LogState(t testing.TB) {
	t.Helper()
	server, _, _ := strings.Cut(connect, ",")
	for _, w := range []string{"dump", "wchp", "cons"} {
		t.Logf("%s:\n%s", w, word(t, server, w))
	}
}

// word returns the answer to a four-letter word.
func word(t testing.TB, server, word string) string {
	t.Helper()
	conn, err := net.Dial("tcp", server)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, word)
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(answer)
}

// Empty waits until path has no children or does not exist.
func Empty(t testing.TB, path string) {
	t.Helper()
	observer := Observer(t)
	Eventually(t, func() bool {
		children, _, err := observer.Children(path)
		return err == zk.ErrNoNode || err == nil && len(children) == 0
	}, "nodes are left below %s", path)
}
