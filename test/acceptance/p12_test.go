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

// p12Standing stands for election until ctx ends, and calls lead with each term and the context that ends with it.
type p12Standing func(ctx context.Context, c *framework.Client, path string, lead func(context.Context, *leader.Term)) error

// p12Kinds are the ways to stand.
var p12Kinds = map[string]p12Standing{
	"Election": func(ctx context.Context, c *framework.Client, path string, lead func(context.Context, *leader.Term)) error {
		e, err := leader.New(c, path)
		if err != nil {
			return err
		}
		return e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
			lead(ctx, t)
			return nil
		})
	},
	"Latch": func(ctx context.Context, c *framework.Client, path string, lead func(context.Context, *leader.Term)) error {
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
			_ = t.Resign() // unless it was lost
		}
	},
}

// Three candidates stand while no server is there, for ten minutes where time is virtual: when it comes up one of them leads, there within
// the session timeout and 2 s, and each of them in its turn.
func TestP12_CandidatesThatStartBeforeTheServersJoinWhenTheyComeUp(t *testing.T) {
	t.Parallel()
	for kind, stand := range p12Kinds {
		t.Run(kind, func(t *testing.T) {
			if realzk.Wanted() != "" {
				server := testzk.Own(t, testzk.Seldom)
				server.Kill(t)
				client := func(int) *framework.Client { return testzk.Client(t, server.Connect(), long()) }
				p12Join(t, stand, client, func() { server.Start(t) }, testzk.Patience) // it answers long before it serves
				return
			}
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				srv.Stop()
				client := func(i int) *framework.Client { return p12Client(t, srv, p12Name(i)) }
				p12Join(t, stand, client, func() {
					time.Sleep(10 * time.Minute)
					require.NoError(t, srv.Start())
				}, p12Leaderless)
			})
		})
	}
}

// p12Join lets candidates stand, starts the server, and waits until the first leads, and each of them has.
func p12Join(t *testing.T, stand p12Standing, client func(i int) *framework.Client, start func(), soon time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	turns := make(chan int)
	for i := range p12Candidates {
		c := client(i)
		running.Go(func() {
			err := stand(ctx, c, p12Path, func(ctx context.Context, _ *leader.Term) {
				select {
				case turns <- i:
				case <-ctx.Done():
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("candidate %d is out: %v", i, err)
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
			require.FailNow(t, "somebody does not join", "those who do: %v", led)
		}
	}
}

// p12Losses are ways to lose the leadership, and what tells of it.
var p12Losses = map[string]struct {
	timeout time.Duration // of the session
	happens func(t *testing.T, p *proxy.Proxy, node string)
	cause   error
}{
	"deleted node": {30 * time.Second, func(t *testing.T, _ *proxy.Proxy, node string) {
		t.Helper()
		require.NoError(t, testzk.Observer(t).Delete(node, -1))
	}, recipes.ErrNodeDeleted},
	"silent network": {12 * time.Second, func(_ *testing.T, p *proxy.Proxy, _ string) { p.Blackhole(true) }, framework.ErrSessionLost},
}

// The leader of an Election loses its node or its network: the context of lead ends, with the reason as its cause. Somebody else leads, but
// the former leader does not even stand in line while lead has not returned. When it has, the candidate stands again and leads
// again in its turn.
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
			p12Line(t, observer, path, 2)
			loss.happens(t, p, first.Path())
			require.ErrorIs(t, p12Ends(t, first.ctx), loss.cause)
			require.ErrorIs(t, first.Err(), loss.cause)
			second := p12Begins(t, other)
			require.Greater(t, second.Token(), first.Token())

			p.Blackhole(false)
			time.Sleep(2 * time.Second) // in which the first would stand
			p12Line(t, observer, path, 1)
			require.Empty(t, one)
			close(first.end)
			p12Line(t, observer, path, 2)
			require.NoError(t, second.Err())
			close(second.end)
			require.Greater(t, p12Begins(t, one).Token(), second.Token())
		})
	}
}

// The leader by a Latch loses its node or its network: the contexts of its term end, with the reason as their cause, and the term says
// so ever after. The Latch stands again by itself, and its next term is another one, with a larger token.
func TestP12_LatchLeadsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	for name, loss := range p12Losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testzk.Proxy(t)
			l, err := leader.NewLatch(testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(loss.timeout)), testzk.Path(t))
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

// p12Reign is a call of lead.
type p12Reign struct {
	*leader.Term
	ctx context.Context
	end chan struct{} // closed: it is to return, whatever its context says
}

// p12Elect runs an Election until the test ends, and hands out the calls of lead.
func p12Elect(t *testing.T, c *framework.Client, path string) <-chan p12Reign {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reigns := make(chan p12Reign, 10)
	done := make(chan error)
	go func() {
		done <- p12Kinds["Election"](ctx, c, path, func(term context.Context, t *leader.Term) {
			reign := p12Reign{t, term, make(chan struct{})}
			reigns <- reign
			select {
			case <-reign.end:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return reigns
}

// p12Begins waits for the next call.
func p12Begins(t *testing.T, reigns <-chan p12Reign) p12Reign {
	t.Helper()
	select {
	case reign := <-reigns:
		return reign
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the candidate does not lead")
	}
	panic("unreachable")
}

// p12Ends waits for the end of a context, and returns its cause.
func p12Ends(t *testing.T, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the leader is not told")
	}
	return context.Cause(ctx)
}

// p12Line waits until n stand.
func p12Line(t *testing.T, c *framework.Client, path string, n int) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		line, err := leader.Participants(testzk.Context(t), c, path)
		return err == nil && len(line) == n
	}, "want %d in line", n)
}
