package acceptance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
	"github.com/docent-zk/docent/zktest/sim"
)

// p12Candidate runs a candidate until ctx ends. It calls lead with each term and the context that
// ends with the term.
type p12Candidate func(ctx context.Context, c *framework.Client, path string,
	lead func(context.Context, *leader.Term)) error

// p12Kinds are the ways to take part in an election.
var p12Kinds = map[string]p12Candidate{
	"Election": func(ctx context.Context, c *framework.Client, path string,
		lead func(context.Context, *leader.Term)) error {
		e, err := leader.New(c, path)
		if err != nil {
			return err
		}
		return e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
			lead(ctx, t)
			return nil
		})
	},
	"Latch": func(ctx context.Context, c *framework.Client, path string,
		lead func(context.Context, *leader.Term)) error {
		l, err := leader.NewLatch(c, path)
		if err != nil {
			return err
		}
		if err := l.Start(ctx); err != nil {
			return err
		}
		for {
			t, err := l.Await(ctx)
			if err != nil {
				return errors.Join(err, l.Close())
			}
			lead(t.Context(ctx), t)
			_ = t.Resign() // fails if the term was lost
		}
	},
}

// Three candidates start while no server runs, for ten minutes where time is virtual. When the
// server starts, one of them leads, in virtual time within the session timeout and 2 s. Each of
// them leads in its turn.
func TestP12_CandidatesThatStartBeforeTheServersJoinWhenTheyComeUp(t *testing.T) {
	t.Parallel()
	for kind, candidate := range p12Kinds {
		t.Run(kind, func(t *testing.T) {
			if realzk.Wanted() != "" {
				server := testzk.Own(t, testzk.Seldom)
				server.Kill(t)
				client := func(int) *framework.Client { return testzk.Client(t, server.Connect(), long()) }
				// It accepts connections long before it serves.
				p12Join(t, candidate, client, func() { server.Start(t) }, testzk.Patience)
				return
			}
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				srv.Stop()
				client := func(i int) *framework.Client { return p12Client(t, srv, p12Name(i)) }
				p12Join(t, candidate, client, func() {
					time.Sleep(10 * time.Minute)
					require.NoError(t, srv.Start())
				}, p12Leaderless)
			})
		})
	}
}

// p12Join starts candidates and then the server. It waits until the first candidate leads, and
// until each has led.
func p12Join(t *testing.T, candidate p12Candidate, client func(i int) *framework.Client, start func(),
	soon time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	turns := make(chan int)
	for i := range p12Candidates {
		c := client(i)
		running.Go(func() {
			err := candidate(ctx, c, p12Path, func(ctx context.Context, _ *leader.Term) {
				select {
				case turns <- i:
				case <-ctx.Done():
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("candidate %d has ended: %v", i, err)
			}
		})
	}
	start()
	led := map[int]bool{}
	for began := time.Now(); len(led) < p12Candidates; {
		select {
		case i := <-turns:
			led[i] = true
			require.True(t, len(led) > 1 || time.Since(began) <= soon, "the first leads after %v", time.Since(began))
		case <-testzk.Context(t).Done():
			require.FailNow(t, "a candidate never leads", "candidates that do: %v", led)
		}
	}
}

// p12Losses are ways to lose the leadership, and the error that reports each.
var p12Losses = map[string]struct {
	timeout time.Duration // session timeout
	happens func(t *testing.T, p *proxy.Proxy, node string)
	cause   error
}{
	"deleted node": {30 * time.Second, func(t *testing.T, _ *proxy.Proxy, node string) {
		t.Helper()
		require.NoError(t, testzk.Observer(t).Delete(node, -1))
	}, recipes.ErrNodeDeleted},
	"silent network": {12 * time.Second, func(_ *testing.T, p *proxy.Proxy, _ string) {
		p.Blackhole(true)
	}, framework.ErrSessionLost},
}

// The leader of an Election loses its node or its network. The context of lead ends with the reason
// as its cause. Another candidate leads. The former leader has no node in the queue until lead has
// returned. Then it becomes a candidate again and leads in its turn.
func TestP12_ReentryWaitsUntilLeadHasReturned(t *testing.T) {
	t.Parallel()
	for name, loss := range p12Losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, path := testzk.Proxy(t), testzk.Path(t)
			one := p12Elect(t, testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(loss.timeout)), path)
			first := p12Begins(t, one)
			observer := testzk.Connected(t, testzk.Connect(), long())
			other := p12Elect(t, observer, path)
			p12Queue(t, observer, path, 2)
			loss.happens(t, p, first.Path())
			require.ErrorIs(t, p12Ends(t, first.ctx), loss.cause)
			require.ErrorIs(t, first.Err(), loss.cause)
			second := p12Begins(t, other)
			require.Greater(t, second.Token(), first.Token())

			p.Blackhole(false)
			time.Sleep(2 * time.Second) // so that the first could join the queue
			p12Queue(t, observer, path, 1)
			require.Empty(t, one)
			close(first.end)
			p12Queue(t, observer, path, 2)
			require.NoError(t, second.Err())
			close(second.end)
			require.Greater(t, p12Begins(t, one).Token(), second.Token())
		})
	}
}

// The leader of a Latch loses its node or its network. The contexts of its term end with the reason
// as their cause, and the term keeps reporting it. The Latch becomes a candidate again by itself.
// Its next term is a new one with a larger token.
func TestP12_LatchLeadsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	for name, loss := range p12Losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testzk.Proxy(t)
			l, err := leader.NewLatch(testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(loss.timeout)),
				testzk.Path(t))
			require.NoError(t, err)
			require.NoError(t, l.Start(t.Context()))
			term, err := l.Await(testzk.Context(t))
			require.NoError(t, err)
			ctx := term.Context(context.Background())
			loss.happens(t, p, term.Path())
			require.ErrorIs(t, p12Ends(t, ctx), loss.cause)

			p.Blackhole(false)
			again, err := l.Await(testzk.Context(t))
			require.NoError(t, err)
			require.Greater(t, again.Token(), term.Token())
			require.ErrorIs(t, term.Err(), loss.cause)
			require.NoError(t, l.Close())
		})
	}
}

// p12Call is a call of lead.
type p12Call struct {
	*leader.Term
	ctx context.Context
	end chan struct{} // closed when the call may return, also if its context has ended
}

// p12Elect runs an Election until the test ends, and returns a channel of the calls of lead.
func p12Elect(t *testing.T, c *framework.Client, path string) <-chan p12Call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	calls := make(chan p12Call, 10)
	done := make(chan error)
	go func() {
		done <- p12Kinds["Election"](ctx, c, path, func(term context.Context, t *leader.Term) {
			call := p12Call{t, term, make(chan struct{})}
			calls <- call
			select {
			case <-call.end:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return calls
}

// p12Begins waits for the next call and returns it.
func p12Begins(t *testing.T, calls <-chan p12Call) p12Call {
	t.Helper()
	select {
	case call := <-calls:
		return call
	case <-testzk.Context(t).Done():
		testzk.LogState(t)
		require.FailNow(t, "the candidate does not lead")
	}
	panic("unreachable")
}

// p12Ends waits for the end of a context and returns its cause.
func p12Ends(t *testing.T, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the context of the leader does not end")
	}
	return context.Cause(ctx)
}

// p12Queue waits until there are n candidates of either kind.
func p12Queue(t *testing.T, c *framework.Client, path string, n int) {
	t.Helper()
	election, err := leader.New(c, path)
	require.NoError(t, err)
	latch, err := leader.NewLatch(c, path)
	require.NoError(t, err)
	testzk.Eventually(t, func() bool {
		elections, err := election.Participants(testzk.Context(t))
		latches, errLatch := latch.Participants(testzk.Context(t))
		return errors.Join(err, errLatch) == nil && len(elections)+len(latches) == n
	}, "want %d candidates", n)
}
