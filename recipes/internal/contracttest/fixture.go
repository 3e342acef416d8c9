package contracttest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
)

// fixture is the environment of one test: servers, a path of its own, and an observer of the nodes
// that does not use docent.
type fixture struct {
	Kind
	t       testing.TB
	path    string
	connect func(name string, opts ...framework.Option) *framework.Client
	nodeObserver

	fillers []*recipes.Hold // holds that fill acquired
	foreign []string        // paths of nodes that are not the lock's
}

// nodeObserver reads and deletes nodes on the servers.
type nodeObserver interface {
	children(path string) ([]string, error) // empty if path does not exist
	stat(node string) (nodeStat, error)
	remove(nodes ...string) error // all or, on shared servers, none
}

type nodeStat struct{ czxid, owner int64 }

// newFixture returns a fixture on the servers of the test binary.
func newFixture(t testing.TB, k Kind) *fixture {
	t.Helper()
	return newFixtureAt(t, k, testzk.Connect(), testzk.Path(t))
}

// newFixtureAt returns a fixture on other servers. The test does not disturb them.
func newFixtureAt(t testing.TB, k Kind, servers, path string) *fixture {
	t.Helper()
	return &fixture{Kind: k, t: t, path: path, nodeObserver: driverObserver{testzk.ObserverOf(t, servers)},
		connect: func(_ string, opts ...framework.Option) *framework.Client {
			return testzk.Connected(t, servers, opts...)
		}}
}

// driverObserver uses the Go driver alone.
type driverObserver struct{ conn *testzk.Conn }

func (o driverObserver) children(path string) ([]string, error) {
	children, _, err := o.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return children, err
}

func (o driverObserver) stat(node string) (nodeStat, error) {
	exists, stat, err := o.conn.Exists(node)
	if err == nil && !exists {
		err = zk.ErrNoNode
	}
	if err != nil {
		return nodeStat{}, err
	}
	return nodeStat{stat.Czxid, stat.EphemeralOwner}, nil
}

func (o driverObserver) remove(nodes ...string) error {
	var ops []any
	for _, node := range nodes {
		ops = append(ops, &zk.DeleteRequest{Path: node, Version: -1})
	}
	_, err := o.conn.Multi(ops...)
	return err
}

// newSimFixture returns a fixture in virtual time, for use in a bubble.
func newSimFixture(t testing.TB, k Kind, srv *zktest.Server) *fixture {
	return &fixture{Kind: k, t: t, path: "/locks/lock", nodeObserver: serverObserver{srv},
		connect: func(name string, opts ...framework.Option) *framework.Client {
			dialer := framework.WithDialer(srv.Client(name).DialContext)
			return testzk.Connected(t, srv.MemAddr(), append(opts, dialer)...)
		}}
}

// serverObserver asks the in-process server directly.
type serverObserver struct{ srv *zktest.Server }

func (i serverObserver) children(path string) ([]string, error) {
	if !i.srv.Exists(path) {
		return nil, nil
	}
	return i.srv.Children(path)
}

func (i serverObserver) stat(node string) (nodeStat, error) {
	stat, err := i.srv.Stat(node)
	return nodeStat{stat.Czxid, stat.EphemeralOwner}, err
}

func (i serverObserver) remove(nodes ...string) error {
	for _, node := range nodes {
		if err := i.srv.Delete(node); err != nil {
			return err
		}
	}
	return nil
}

// client returns a new client with a connection of its own.
func (s *fixture) client(opts ...framework.Option) *framework.Client { return s.connect("", opts...) }

// proxied returns a client that is connected through a proxy, and that proxy.
func (s *fixture) proxied(opts ...framework.Option) (*framework.Client, *proxy.Proxy) {
	s.t.Helper()
	p := testzk.Proxy(s.t)
	return testzk.Connected(s.t, p.Addr(), opts...), p
}

func (s *fixture) lock(c *framework.Client) Lock  { return s.New(s.t, c, s.path) }
func (s *fixture) rival(c *framework.Client) Lock { return s.other(s.t, c, s.path) }

func (s *fixture) acquire(l Lock) *recipes.Hold {
	s.t.Helper()
	hold, err := l.Acquire(testzk.Context(s.t))
	require.NoError(s.t, err)
	require.NoError(s.t, hold.Err())
	return hold
}

func (s *fixture) release(holds ...*recipes.Hold) {
	s.t.Helper()
	for _, h := range holds {
		require.NoError(s.t, h.Release())
	}
	testzk.Everywhere(s.t) // a TryAcquire looks first, perhaps at a server that lags behind
}

// handOver releases from and returns the hold of the waiter.
func (s *fixture) handOver(from *recipes.Hold, to *testlock.Attempt) *recipes.Hold {
	s.t.Helper()
	s.release(from)
	return won(s.t, to)
}

// fill acquires permits until a single one is left. empty releases them.
func (s *fixture) fill(c *framework.Client) {
	s.t.Helper()
	if s.Rival != nil {
		return
	}
	for range s.Holders - 1 {
		s.fillers = append(s.fillers, s.acquire(s.lock(c)))
	}
}

// occupy acquires all permits that are left, so that other acquires wait until the returned hold is
// released.
func (s *fixture) occupy(c *framework.Client) *recipes.Hold {
	s.t.Helper()
	s.fill(c)
	return s.acquire(s.rival(c))
}

// nodes returns the paths of the lock's own nodes, directory by directory.
func (s *fixture) nodes() ([]string, error) { return s.below(s.Dirs(s.path)) }

// queue returns the nodes in the directory where waiters queue.
func (s *fixture) queue() ([]string, error) { return s.below(s.Counted(s.path)[:1]) }

func (s *fixture) below(parents []string) ([]string, error) {
	var all []string
	for _, parent := range parents {
		names, err := s.children(parent)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if node := parent + "/" + name; !slices.Contains(s.foreign, node) {
				all = append(all, node)
			}
		}
	}
	return all, nil
}

// waits waits until n waiters are queued while the rival holds the lock.
func (s *fixture) waits(n int) {
	s.t.Helper()
	s.waitForQueue(n, s.shape.rivalQueued)
}

// waitsBehind waits until n waiters are queued while one of New's locks is held.
func (s *fixture) waitsBehind(n int) {
	s.t.Helper()
	s.waitForQueue(n, s.shape.queued)
}

func (s *fixture) waitForQueue(waiters, holder int) {
	s.t.Helper()
	want := len(s.fillers)*s.shape.queued + holder + waiters
	s.eventually(func() bool {
		nodes, err := s.queue()
		return err == nil && len(nodes) == want
	}, "want %d waiting", waiters)
}

// addedNodes waits until the lock has n nodes that are not in before, and returns them.
func (s *fixture) addedNodes(n int, before []string) []string {
	s.t.Helper()
	var added []string
	s.eventually(func() bool {
		nodes, err := s.nodes()
		added = slices.DeleteFunc(nodes, func(node string) bool { return slices.Contains(before, node) })
		return err == nil && len(added) == n
	}, "want %d more nodes", n)
	return added
}

// waiterNodes waits for the first waiter's node in the queue and returns all of the waiter's nodes.
// Before it queues, it may have other nodes.
func (s *fixture) waiterNodes(before []string) []string {
	s.t.Helper()
	s.waits(1)
	return s.addedNodes(s.shape.waiting, before)
}

// heldNodes waits until the lock has the nodes of the fillers and held more, and returns all of them.
func (s *fixture) heldNodes(held int) []string {
	s.t.Helper()
	return s.addedNodes(len(s.fillers)*s.shape.held+held, nil)
}

// empty releases the fillers and waits until the lock has no nodes.
func (s *fixture) empty() {
	s.t.Helper()
	s.release(s.fillers...)
	s.fillers = nil
	s.addedNodes(0, nil)
	testzk.Everywhere(s.t)
}

func (s *fixture) eventually(cond func() bool, message string, args ...any) {
	s.t.Helper()
	testzk.Eventually(s.t, cond, message, args...)
}

// start acquires on another goroutine, which ends with the test.
func (s *fixture) start(l Lock) *testlock.Attempt {
	s.t.Helper()
	return testlock.Start(s.t, l.Acquire)
}

// won waits for the hold, which must be valid, and returns it.
func won(t testing.TB, a *testlock.Attempt) *recipes.Hold {
	t.Helper()
	hold := a.Won(t)
	require.NoError(t, hold.Err())
	return hold
}

// expire ends a client's session on the servers. The client should have the option testzk.Mortal.
func (s *fixture) expire(c *framework.Client, p *proxy.Proxy) {
	s.t.Helper()
	session := s.session(c)
	if srv := testzk.InProcess(); srv != nil {
		known, ok := srv.Session(session.ID())
		require.True(s.t, ok)
		require.NoError(s.t, known.Expire())
		return
	}
	p.Blackhole(true)
	testzk.Closes(s.t, session.Done(), "the session does not notice that answers are missing")
	s.eventually(func() bool { return len(s.owned(session.ID())) == 0 }, "the servers do not expire the session")
	p.Blackhole(false)
}

// removeTree deletes path and all nodes below it.
func (s *fixture) removeTree() {
	s.t.Helper()
	s.eventually(func() bool {
		all, err := s.tree(s.path)
		return err == nil && s.remove(all...) == nil
	}, "the tree cannot be deleted")
}

// tree returns path and all nodes below it, children before parents. The last node of a queue comes
// first: so a waiter gets the event of its own node before that of its predecessor.
func (s *fixture) tree(path string) ([]string, error) {
	var all []string
	names, err := s.children(path)
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(b), number(a)) })
	for _, name := range names {
		below, err := s.tree(path + "/" + name)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return append(all, path), err
}

// number returns the sequence number that the servers appended to the name of a node.
func number(name string) string { return name[max(0, len(name)-len("0000000000")):] }

func (s *fixture) session(c *framework.Client) *framework.Session {
	s.t.Helper()
	session, err := c.Session(testzk.Context(s.t))
	require.NoError(s.t, err)
	return session
}

// owned returns the nodes of the lock that belong to a session.
func (s *fixture) owned(session int64) []string {
	nodes, _ := s.nodes()
	return slices.DeleteFunc(nodes, func(node string) bool {
		stat, err := s.stat(node)
		return err != nil || stat.owner != session
	})
}

// soon bounds calls that must not wait. It is less than the time after which silence ends a session
// with a timeout of a minute.
const soon = 30 * time.Second

// enduring makes a session last through the test without answers.
func enduring() framework.Option { return framework.WithSessionTimeout(time.Minute) }
