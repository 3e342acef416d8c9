package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/port"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// ttl is the time to live of most clients: so long that a busy machine does not lose a hold.
const ttl = 20 * time.Second

// short is the time to live where a test waits for its end.
const short = 6 * time.Second

// patience is how long tests wait for what has to come. It only matters when a test fails.
const patience = time.Minute

// etcd is the server of most tests.
var etcd *server

func TestMain(m *testing.M) {
	testzk.Widen()
	dir, err := os.MkdirTemp("", "etcdlock-")
	code := 1
	if err == nil {
		code, err = runIn(dir, m)
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runIn(dir string, m *testing.M) (code int, err error) {
	all, err := newCluster(dir, 1)
	if err != nil {
		return 1, err
	}
	etcd = all[0]
	if err := etcd.start(); err != nil {
		return 1, err
	}
	defer etcd.kill()
	if err := etcd.ready(); err != nil {
		return 1, err
	}
	if code := m.Run(); code != 0 {
		return code, nil
	}
	http.DefaultClient.CloseIdleConnections()
	return 0, leaks.Find()
}

// server is a process of etcd.
type server struct {
	dir, addr, peers, cluster string
	joins                     bool // an existing cluster
	cmd                       *exec.Cmd
}

// newCluster returns servers of a cluster, which are not started.
func newCluster(dir string, n int) (all []*server, err error) {
	ports, err := freePorts(2 * n)
	if err != nil {
		return nil, err
	}
	var cluster []string
	for i := range n {
		s := &server{dir: filepath.Join(dir, fmt.Sprint(i)), addr: ports[2*i], peers: ports[2*i+1]}
		all = append(all, s)
		cluster = append(cluster, s.peers+"=http://"+s.peers)
	}
	for _, s := range all {
		s.cluster = strings.Join(cluster, ",")
	}
	return all, nil
}

// freePorts returns addresses that only servers of the tests get, until the process ends.
func freePorts(n int) (addrs []string, err error) {
	for range n {
		kept, err := port.New()
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, kept.Addr())
	}
	return addrs, nil
}

// start starts the server, with the data of its directory if there are any.
func (s *server) start() error {
	here, others := "http://"+s.addr, "http://"+s.peers
	s.cmd = exec.Command("etcd", "--name", s.peers, "--data-dir", s.dir, "--log-level", "fatal",
		"--listen-client-urls", here, "--advertise-client-urls", here, "--listen-peer-urls", others,
		"--initial-advertise-peer-urls", others, "--initial-cluster", s.cluster)
	if s.joins {
		s.cmd.Args = append(s.cmd.Args, "--initial-cluster-state", "existing")
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("these tests need etcd: scripts/deps.sh etcd: %w", err)
	}
	return nil
}

// ready waits until the server can write.
func (s *server) ready() error {
	for end := time.Now().Add(patience); !s.healthy(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("etcd does not become healthy")
		}
	}
	return nil
}

func (s *server) healthy() bool {
	answer, err := http.Get("http://" + s.addr + "/health")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// connect returns a client of etcd for servers, separated by commas.
func connect(t testing.TB, addrs string, opts ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(addrs, ","), Logger: zap.NewNop(), DialOptions: opts,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: patience,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newClient returns a client of this package, which is closed at the end of the test.
func newClient(t testing.TB, c *clientv3.Client, opts ...etcdlock.Option) *etcdlock.Client {
	t.Helper()
	locks, err := etcdlock.NewClient(c, append([]etcdlock.Option{etcdlock.WithTTL(ttl)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

func newLock(t testing.TB, c *etcdlock.Client, name string) *etcdlock.Lock {
	t.Helper()
	lock, err := etcdlock.New(c, name)
	require.NoError(t, err)
	return lock
}

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t testing.TB, lock recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := lock.Acquire(bounded(t))
	require.NoError(t, err)
	require.NoError(t, hold.Err())
	return hold
}

// keys returns the keys below a name, the oldest first.
func keys(t testing.TB, c *clientv3.Client, name string) (all []string) {
	t.Helper()
	answer, err := c.Get(bounded(t), name+"/", clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	require.NoError(t, err)
	for _, kv := range answer.Kvs {
		all = append(all, string(kv.Key))
	}
	return all
}

func awaitKeys(t testing.TB, c *clientv3.Client, name string, n int) {
	t.Helper()
	end := bounded(t)
	for len(keys(t, c, name)) != n {
		require.NoError(t, end.Err(), "%v, want %d", keys(t, c, name), n)
		time.Sleep(time.Millisecond)
	}
}

func await(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal(what)
	}
}

// cable is between a client and the server. It lets data through unless it is cut. No end is told.
type cable struct {
	addr  string
	mu    sync.Mutex
	whole sync.Cond
	cut   bool
	ended bool
	conns []net.Conn
}

func newCable(t testing.TB, to string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &cable{addr: listener.Addr().String()}
	p.whole.L = &p.mu
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			busy.Go(func() { p.serve(conn, to) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.end()
		busy.Wait()
	})
	return p
}

func (p *cable) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.whole.Broadcast()
}

func (p *cable) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.whole.Broadcast()
}

// pass waits until the cable is whole. It reports false when it is not used any more.
func (p *cable) pass(opened ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, opened...)
	for p.cut && !p.ended {
		p.whole.Wait()
	}
	return !p.ended
}

func (p *cable) serve(client net.Conn, to string) {
	defer client.Close()
	if !p.pass(client) {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.pass(server) {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		p.copy(client, server)
	}()
	p.copy(server, client)
	<-back
}

func (p *cable) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		if !p.pass() {
			return
		}
		if _, failed := to.Write(b[:n]); failed != nil || err != nil && !errors.Is(err, io.ErrShortBuffer) {
			return
		}
	}
}
