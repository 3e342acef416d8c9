package leader_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
	"github.com/docent-zk/docent/zktest/sim"
)

// virtually runs a test in virtual time, on a server of its own.
func virtually(t *testing.T, test func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, srv) })
}

// member is a client of srv, which knows it by name.
func member(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	return testzk.Client(t, srv.MemAddr(), append([]framework.Option{framework.WithDialer(srv.Client(name).DialContext)}, opts...)...)
}

// expire ends the sessions of a client of srv.
func expire(t testing.TB, srv *zktest.Server, name string) {
	t.Helper()
	for _, s := range srv.Client(name).Sessions() {
		require.NoError(t, s.Expire())
	}
}

// nodes are the names of the candidates' nodes, those included that only the server knows of.
func nodes(srv *zktest.Server) []string {
	names, _ := srv.Children(electionPath)
	return names
}

// settle is virtual time in which whatever can happen without the end of a session does.
func settle() { time.Sleep(time.Second) }

// outage is longer than a session lasts.
func outage() { time.Sleep(2 * testzk.SessionTimeout) }

// twoWays is a client that has a second way to the servers, by which it goes on when the first is taken away.
func twoWays(t testing.TB) (c *framework.Client, takeAway func()) {
	t.Helper()
	ways := []*proxy.Proxy{testzk.Proxy(t), testzk.Proxy(t)}
	c = testzk.Connected(t, ways[0].Addr()+","+ways[1].Addr())
	return c, func() {
		used, other := ways[0], ways[1]
		if used.Connections() == 0 {
			used, other = other, used
		}
		require.NoError(t, used.Refuse(true))
		used.DropConnections()
		testzk.Eventually(t, func() bool { return other.Connections() == 1 && c.State().IsConnected() }, "it does not take the other way")
	}
}

func newElection(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Election {
	t.Helper()
	e, err := leader.New(c, path, opts...)
	require.NoError(t, err)
	return e
}

// candidacy is an Election that runs.
type candidacy struct {
	*leader.Election
	terms chan *leader.Term // those that have begun
	stop  context.CancelFunc
	done  chan struct{}
	err   error // of Run; to be read after done
}

// stand runs an Election that leads until its context ends, until the test ends.
func stand(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *candidacy {
	t.Helper()
	return standWith(t, newElection(t, c, path, opts...), func(ctx context.Context, _ *leader.Term) error {
		<-ctx.Done()
		return nil
	})
}

// standWith runs e, which leads as lead does, until the test ends.
func standWith(t testing.TB, e *leader.Election, lead func(context.Context, *leader.Term) error) *candidacy {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &candidacy{Election: e, terms: make(chan *leader.Term, 1000), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = e.Run(ctx, func(ctx context.Context, term *leader.Term) error {
			c.terms <- term
			return lead(ctx, term)
		})
	}()
	t.Cleanup(func() {
		stop()
		<-c.done
	})
	return c
}

// leads waits for the next term.
func (c *candidacy) leads(t testing.TB) *leader.Term {
	t.Helper()
	select {
	case term := <-c.terms:
		return term
	case <-c.done:
		require.FailNow(t, "Run has returned", "%v", c.err)
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the candidate does not lead")
	}
	panic("unreachable")
}

// returns waits for Run to return.
func (c *candidacy) returns(t testing.TB) error {
	t.Helper()
	closes(t, c.done, "Run does not return")
	return c.err
}

func closes(t testing.TB, c <-chan struct{}, message string) {
	t.Helper()
	select {
	case <-c:
	case <-testzk.Context(t).Done():
		require.FailNow(t, message)
	}
}

func newLatch(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Latch {
	t.Helper()
	l, err := leader.NewLatch(c, path, opts...)
	require.NoError(t, err)
	return l
}

// started is a Latch that stands until the test ends.
func started(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Latch {
	t.Helper()
	l := newLatch(t, c, path, opts...)
	require.NoError(t, l.Start(context.Background()))
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func await(t testing.TB, l *leader.Latch) *leader.Term {
	t.Helper()
	term, err := l.Await(testzk.Context(t))
	require.NoError(t, err)
	return term
}

// leading are those of the latches that lead.
func leading(all []*leader.Latch) (terms []*leader.Term) {
	for _, l := range all {
		if term := l.Term(); term != nil {
			terms = append(terms, term)
		}
	}
	return terms
}

// inLine waits until so many candidates stand, and returns them.
func inLine(t testing.TB, c *framework.Client, path string, n int) (line []leader.Participant) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		var err error
		line, err = leader.Participants(testzk.Context(t), c, path)
		require.NoError(t, err)
		return len(line) == n
	}, "not %d candidates in line", n)
	return line
}

// own is a client of the test's own.
func own(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	return testzk.Connected(t, testzk.Connect(), opts...)
}

// ear is a listener of a Latch.
type ear struct {
	mu    sync.Mutex
	heard []leader.Change
}

func (e *ear) hear(c leader.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, c)
}

// story is + for each term that began, and - for each that ended.
func (e *ear) story() (told string) {
	for _, c := range e.changes() {
		if c.Err == nil {
			told += "+"
		} else {
			told += "-"
		}
	}
	return told
}

func (e *ear) changes() []leader.Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]leader.Change(nil), e.heard...)
}
