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
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
	"github.com/docent-zk/docent/zktest/sim"
)

// virtually runs a test in virtual time on a server of its own.
func virtually(t *testing.T, test func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, srv) })
}

// member returns a client of srv with a name.
func member(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	dialer := framework.WithDialer(srv.Client(name).DialContext)
	return testzk.Client(t, srv.MemAddr(), append([]framework.Option{dialer}, opts...)...)
}

// expire expires the sessions of a client of srv.
func expire(t testing.TB, srv *zktest.Server, name string) {
	t.Helper()
	for _, s := range srv.Client(name).Sessions() {
		require.NoError(t, s.Expire())
	}
}

// nodes returns the names of all candidates' nodes on the server.
func nodes(srv *zktest.Server) []string {
	names, _ := srv.Children(electionPath)
	return names
}

// settle waits for everything that happens without the end of a session.
func settle() { time.Sleep(time.Second) }

// outage waits for longer than the session timeout.
func outage() { time.Sleep(2 * testzk.SessionTimeout) }

// twoWays returns a client with two proxies to the servers. takeAway stops the one in use, so that
// the client reconnects through the other.
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
		reconnected := func() bool { return other.Connections() == 1 && c.State().IsConnected() }
		testzk.Eventually(t, reconnected, "the client does not reconnect through the other proxy")
	}
}

func newElection(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Election {
	t.Helper()
	e, err := leader.New(c, path, opts...)
	require.NoError(t, err)
	return e
}

// candidacy is a running Election.
type candidacy struct {
	*leader.Election
	terms chan *leader.Term // terms in the order of their calls of lead
	stop  context.CancelFunc
	done  chan struct{}
	err   error // result of Run; read after done
}

// stand runs an Election until the test ends. It leads until the context of lead ends.
func stand(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *candidacy {
	t.Helper()
	return standWith(t, newElection(t, c, path, opts...), func(ctx context.Context, _ *leader.Term) error {
		<-ctx.Done()
		return nil
	})
}

// standWith runs e with lead until the test ends.
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
		select {
		case term := <-c.terms: // before Run returned
			return term
		default:
			require.FailNow(t, "Run has returned", "%v", c.err)
		}
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the candidate does not lead")
	}
	panic("unreachable")
}

// returns waits for Run to return.
func (c *candidacy) returns(t testing.TB) error {
	t.Helper()
	testzk.Closes(t, c.done, "Run does not return")
	return c.err
}

func newLatch(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Latch {
	t.Helper()
	l, err := leader.NewLatch(c, path, opts...)
	require.NoError(t, err)
	return l
}

// started returns a Latch that is a candidate until the test ends.
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

// leading returns the terms of the latches that lead.
func leading(all []*leader.Latch) (terms []*leader.Term) {
	for _, l := range all {
		if term := l.Term(); term != nil {
			terms = append(terms, term)
		}
	}
	return terms
}

// listed returns the candidates of either kind.
func listed(t testing.TB, c *framework.Client, path string) []recipes.Participant {
	t.Helper()
	elections, err := newElection(t, c, path).Participants(testzk.Context(t))
	require.NoError(t, err)
	latch, err := leader.NewLatch(c, path)
	require.NoError(t, err)
	latches, err := latch.Participants(testzk.Context(t))
	require.NoError(t, err)
	return append(elections, latches...)
}

// queued waits for n candidates and returns them.
func queued(t testing.TB, c *framework.Client, path string, n int) (all []recipes.Participant) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		all = listed(t, c, path)
		return len(all) == n
	}, "want %d candidates", n)
	return all
}

// own returns a new client.
func own(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	return testzk.Connected(t, testzk.Connect(), opts...)
}

// recorder is a listener that records the changes of a Latch.
type recorder struct {
	mu  sync.Mutex
	all []leader.Change
}

func (e *recorder) add(c leader.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, c)
}

// history returns + for each term that began and - for each that ended.
func (e *recorder) history() (told string) {
	for _, c := range e.changes() {
		if c.Err == nil {
			told += "+"
		} else {
			told += "-"
		}
	}
	return told
}

func (e *recorder) changes() []leader.Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]leader.Change(nil), e.all...)
}
