package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
)

// stage is where a property is tested: servers, a path that nobody else uses, and somebody who looks on without docent.
type stage struct {
	Kind
	t       testing.TB
	path    string
	connect func(name string, opts ...framework.Option) *framework.Client
	looker

	fillers []*recipes.Hold // see fill
	foreign []string        // paths of nodes that are not the lock's
}

// looker looks at the servers' nodes.
type looker interface {
	children(path string) ([]string, error) // none if path is not there
	stat(node string) (nodeStat, error)
	remove(nodes ...string) error // all or, on servers that others use too, none
}

type nodeStat struct{ czxid, owner int64 }

// newStage is one on the servers of the test binary.
func newStage(t testing.TB, k Kind) *stage {
	t.Helper()
	return newStageAt(t, k, testzk.Connect(), testzk.Path(t))
}

// newStageAt is one on other servers that nobody harms.
func newStageAt(t testing.TB, k Kind, servers, path string) *stage {
	t.Helper()
	return &stage{Kind: k, t: t, path: path, looker: outsider{testzk.ObserverOf(t, servers)},
		connect: func(_ string, opts ...framework.Option) *framework.Client {
			return testzk.Connected(t, servers, opts...)
		}}
}

// outsider looks with the plain driver.
type outsider struct{ conn *zk.Conn }

func (o outsider) children(path string) ([]string, error) {
	children, _, err := o.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return children, err
}

func (o outsider) stat(node string) (nodeStat, error) {
	exists, stat, err := o.conn.Exists(node)
	if err == nil && !exists {
		err = zk.ErrNoNode
	}
	if err != nil {
		return nodeStat{}, err
	}
	return nodeStat{stat.Czxid, stat.EphemeralOwner}, nil
}

func (o outsider) remove(nodes ...string) error {
	var ops []any
	for _, node := range nodes {
		ops = append(ops, &zk.DeleteRequest{Path: node, Version: -1})
	}
	_, err := o.conn.Multi(ops...)
	return err
}

// newSimStage is one in virtual time, in a bubble.
func newSimStage(t testing.TB, k Kind, srv *zktest.Server) *stage {
	return &stage{Kind: k, t: t, path: "/locks/lock", looker: insider{srv},
		connect: func(name string, opts ...framework.Option) *framework.Client {
			return testzk.Connected(t, srv.MemAddr(), append(opts, framework.WithDialer(srv.Client(name).DialContext))...)
		}}
}

// insider is told by the server itself.
type insider struct{ srv *zktest.Server }

func (i insider) children(path string) ([]string, error) {
	if !i.srv.Exists(path) {
		return nil, nil
	}
	return i.srv.Children(path)
}

func (i insider) stat(node string) (nodeStat, error) {
	stat, err := i.srv.Stat(node)
	return nodeStat{stat.Czxid, stat.EphemeralOwner}, err
}

func (i insider) remove(nodes ...string) error {
	for _, node := range nodes {
		if err := i.srv.Delete(node); err != nil {
			return err
		}
	}
	return nil
}

// client is a client with a way of its own to the servers.
func (s *stage) client(opts ...framework.Option) *framework.Client { return s.connect("", opts...) }

// proxied is a client whose connection can be harmed.
func (s *stage) proxied(opts ...framework.Option) (*framework.Client, *proxy.Proxy) {
	s.t.Helper()
	p := testzk.Proxy(s.t)
	return testzk.Connected(s.t, p.Addr(), opts...), p
}

func (s *stage) lock(c *framework.Client) Lock  { return s.New(s.t, c, s.path) }
func (s *stage) rival(c *framework.Client) Lock { return s.other(s.t, c, s.path) }

func (s *stage) acquire(l Lock) *recipes.Hold {
	s.t.Helper()
	hold, err := l.Acquire(testzk.Context(s.t))
	require.NoError(s.t, err)
	require.NoError(s.t, hold.Err())
	return hold
}

func (s *stage) release(holds ...*recipes.Hold) {
	s.t.Helper()
	for _, h := range holds {
		require.NoError(s.t, h.Release())
	}
}

// handOver releases what a waiter waits for, and returns its hold.
func (s *stage) handOver(from *recipes.Hold, to *attempt) *recipes.Hold {
	s.t.Helper()
	s.release(from)
	return to.won(s.t)
}

// fill leaves room for one holder only. What it acquires is given back by empty.
func (s *stage) fill(c *framework.Client) {
	s.t.Helper()
	if s.Rival != nil {
		return
	}
	for range s.Holders - 1 {
		s.fillers = append(s.fillers, s.acquire(s.lock(c)))
	}
}

// occupy takes what room there is, so that an acquire has to wait until the hold is released.
func (s *stage) occupy(c *framework.Client) *recipes.Hold {
	s.t.Helper()
	s.fill(c)
	return s.acquire(s.rival(c))
}

// nodes are the paths of the lock's own nodes, line by line.
func (s *stage) nodes() ([]string, error) { return s.below(s.Lines(s.path)) }

// queue is those that stand in the line where waiters do.
func (s *stage) queue() ([]string, error) { return s.below(s.Counted(s.path)[:1]) }

func (s *stage) below(parents []string) ([]string, error) {
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

// waits waits until so many wait while the lock is occupied.
func (s *stage) waits(n int) {
	s.t.Helper()
	s.stand(n, s.shape.rivalLined)
}

// waitsBehind is waits where the one who leaves no more room is one of New's.
func (s *stage) waitsBehind(n int) {
	s.t.Helper()
	s.stand(n, s.shape.lined)
}

func (s *stage) stand(waiters, holder int) {
	s.t.Helper()
	want := len(s.fillers)*s.shape.lined + holder + waiters
	s.eventually(func() bool {
		nodes, err := s.queue()
		return err == nil && len(nodes) == want
	}, "want %d waiting", waiters)
}

// becomes waits until the lock has n nodes but for those that were there before, and returns them.
func (s *stage) becomes(n int, before []string) []string {
	s.t.Helper()
	var added []string
	s.eventually(func() bool {
		nodes, err := s.nodes()
		added = slices.DeleteFunc(nodes, func(node string) bool { return slices.Contains(before, node) })
		return err == nil && len(added) == n
	}, "want %d more nodes", n)
	return added
}

// placed is the nodes of the first who waits, once it stands in line: before that, it may have tried otherwise.
func (s *stage) placed(before []string) []string {
	s.t.Helper()
	s.waits(1)
	return s.becomes(s.shape.waiting, before)
}

// settled is the nodes when the fillers hold, and somebody with held nodes.
func (s *stage) settled(held int) []string {
	s.t.Helper()
	return s.becomes(len(s.fillers)*s.shape.held+held, nil)
}

// empty gives all back that fill took, and waits until none of the lock's nodes is left.
func (s *stage) empty() {
	s.t.Helper()
	s.release(s.fillers...)
	s.fillers = nil
	s.becomes(0, nil)
}

func (s *stage) eventually(cond func() bool, message string, args ...any) {
	s.t.Helper()
	testzk.Eventually(s.t, cond, message, args...)
}

// attempt is an acquire that runs.
type attempt struct {
	cancel context.CancelCauseFunc
	hold   *recipes.Hold
	err    error
	done   chan struct{}
}

// start acquires on another goroutine, which ends with the test.
func (s *stage) start(l Lock) *attempt {
	s.t.Helper()
	return s.begin(l.Acquire)
}

func (s *stage) begin(acquire func(context.Context) (*recipes.Hold, error)) *attempt {
	s.t.Helper()
	return s.beginUnder(testzk.Context(s.t), acquire)
}

// beginUnder is begin under a context of the test's own.
func (s *stage) beginUnder(ctx context.Context, acquire func(context.Context) (*recipes.Hold, error)) *attempt {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = acquire(ctx)
	}()
	s.t.Cleanup(func() {
		cancel(nil)
		<-a.done
	})
	return a
}

// wait returns what the attempt came to.
func (a *attempt) wait() (*recipes.Hold, error) {
	<-a.done
	return a.hold, a.err
}

func (a *attempt) won(t testing.TB) *recipes.Hold {
	t.Helper()
	hold, err := a.wait()
	require.NoError(t, err)
	require.NoError(t, hold.Err())
	return hold
}

func (a *attempt) waiting() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// closes waits for a channel to be closed.
func closes(t testing.TB, c <-chan struct{}, message string) {
	t.Helper()
	select {
	case <-c:
	case <-testzk.Context(t).Done():
		require.FailNow(t, message)
	}
}

// lostTo waits for a hold's end and checks everything that tells of it.
func lostTo(t testing.TB, hold *recipes.Hold, work context.Context, cause error) {
	t.Helper()
	closes(t, hold.Done(), "the hold does not notice its end")
	closes(t, work.Done(), "the context does not end with the hold")
	require.ErrorIs(t, context.Cause(work), cause)
	require.ErrorIs(t, hold.Err(), cause)
	require.True(t, hold.ValidUntil().IsZero())
	_, err := hold.Guard(context.Background())
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, hold.Release(), cause)
	require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
}

// expire ends a client's session on the servers. The client should be mortal.
func (s *stage) expire(c *framework.Client, p *proxy.Proxy) {
	s.t.Helper()
	session := s.session(c)
	if srv := testzk.InProcess(); srv != nil {
		known, ok := srv.Session(session.ID())
		require.True(s.t, ok)
		require.NoError(s.t, known.Expire())
		return
	}
	p.Blackhole(true)
	closes(s.t, session.Done(), "the session does not notice the silence")
	s.eventually(func() bool { return len(s.owned(session.ID())) == 0 }, "the servers do not expire the session")
	p.Blackhole(false)
}

// removeTree deletes path and all below it.
func (s *stage) removeTree() {
	s.t.Helper()
	s.eventually(func() bool {
		all, err := s.tree(s.path)
		return err == nil && s.remove(all...) == nil
	}, "the tree cannot be deleted")
}

// tree is path and all below it, the lowest first, and of a line the last one first: whoever waits hears that its own node is gone
// before it hears that nobody is ahead.
func (s *stage) tree(path string) ([]string, error) {
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

// number is what servers put behind the names of sequential nodes.
func number(name string) string { return name[max(0, len(name)-len("0000000000")):] }

func (s *stage) session(c *framework.Client) *framework.Session {
	s.t.Helper()
	session, err := c.Session(testzk.Context(s.t))
	require.NoError(s.t, err)
	return session
}

// owned are the lock's nodes that belong to a session.
func (s *stage) owned(session int64) []string {
	nodes, _ := s.nodes()
	return slices.DeleteFunc(nodes, func(node string) bool {
		stat, err := s.stat(node)
		return err != nil || stat.owner != session
	})
}

// soon bounds what must not wait for anything. It is less than the time in which a session of a minute is lost by silence.
const soon = 30 * time.Second

// enduring is for clients in whose session nothing shall happen by itself.
func enduring() framework.Option { return framework.WithSessionTimeout(time.Minute) }
