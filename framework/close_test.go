package framework_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
)

// closed closes, in time. That no goroutine is left is checked when all tests are over.
func closed(t testing.TB, c *framework.Client) {
	t.Helper()
	within(t, "Close", func() { require.NoError(t, c.Close()) })
	require.Equal(t, framework.Closed, c.State())
	require.NoError(t, c.Close(), "closing again")
}

func TestCloseEndsInEachState(t *testing.T) {
	quick := []framework.Option{framework.WithConnectTimeout(time.Second), enduring()}
	for name, row := range map[string]struct {
		before func(p *proxy.Proxy)                                    // the client is made
		after  func(t *testing.T, c *framework.Client, p *proxy.Proxy) // it is connected; nil: it never will be
	}{
		"at once":           {before: func(*proxy.Proxy) {}},
		"refused":           {before: func(p *proxy.Proxy) { _ = p.Refuse(true) }},
		"shaking hands":     {before: func(p *proxy.Proxy) { p.Blackhole(true) }},
		"connected":         {after: func(*testing.T, *framework.Client, *proxy.Proxy) {}},
		"connected, silent": {after: func(_ *testing.T, _ *framework.Client, p *proxy.Proxy) { p.Blackhole(true) }},
		"suspended": {after: func(t *testing.T, c *framework.Client, p *proxy.Proxy) {
			require.NoError(t, p.Refuse(true))
			testzk.Eventually(t, func() bool { return c.State() == framework.Suspended }, "never suspended")
		}},
		"suspended, and shaking hands": {after: func(t *testing.T, c *framework.Client, p *proxy.Proxy) {
			p.Blackhole(true)
			p.DropConnections()
			testzk.Eventually(t, func() bool { return c.State() == framework.Suspended }, "never suspended")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testzk.Proxy(t)
			if row.before != nil {
				row.before(p)
			}
			c := testzk.Client(t, p.Addr(), quick...)
			if row.after != nil {
				require.NoError(t, c.WaitConnected(testzk.Context(t)))
				row.after(t, c, p)
			}
			closed(t, c)
		})
	}
}

// The session of before is still being taken off the servers, with a patience that Close does not have.
func TestCloseDoesNotWaitForLostSessionsAsLongAsTheirTimeout(t *testing.T) {
	const timeout, connectTimeout = 12 * time.Second, 500 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		server := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(server.DialContext),
			framework.WithSessionTimeout(timeout), framework.WithConnectTimeout(connectTimeout))
		s := session(t, c)
		server.Refuse(true)
		server.Reset()
		<-s.Done()
		synctest.Wait()
		require.Equal(t, framework.Lost, c.State())
		start := time.Now()
		require.NoError(t, c.Close())
		const driver = time.Second // which its own Close may wait for an answer that cannot come
		require.LessOrEqual(t, time.Since(start), connectTimeout+driver, "Close waited for the servers to forget the session")
	})
}

func TestCloseEndsEphemeralsBeforeItReturns(t *testing.T) {
	for range 5 {
		c := testzk.Connected(t, testzk.Connect())
		path := parent(t)
		for _, opts := range [][]framework.CreateOption{kinds["lock node"], kinds["ephemeral"]} {
			_, err := c.Create(testzk.Context(t), path+"/n", nil, opts...)
			require.NoError(t, err)
		}
		closed(t, c)
		require.Empty(t, children(t, testzk.Observer(t), path))
	}
}

func TestCloseWhileSuspendedEndsTheSessionIfTheServersComeBack(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, enduring(), framework.WithConnectTimeout(time.Minute))
	path := parent(t)
	_, err := c.Create(testzk.Context(t), path+"/n", nil, framework.Ephemeral())
	require.NoError(t, err)
	require.NoError(t, p.Refuse(true))
	states.await(t, framework.Connected, framework.Suspended)
	done := make(chan struct{})
	go func() { defer close(done); closed(t, c) }()
	testzk.Eventually(t, func() bool { return c.State() == framework.Lost }, "the session ends at once for us")
	require.NoError(t, p.Refuse(false))
	closes(t, done, "Close returns")
	require.Empty(t, children(t, testzk.Observer(t), path))
	require.Equal(t, 1, p.Requests()[proxy.OpCloseSession])
	require.Equal(t, []framework.State{framework.Connected, framework.Suspended, framework.Lost, framework.Closed}, states.states())
}

func TestOperationsUnderWayEndWithErrClosed(t *testing.T) {
	for name, row := range map[string]struct {
		spoil   func(p *proxy.Proxy)
		outcome framework.Outcome
	}{
		"sent":                     {func(*proxy.Proxy) {}, framework.Unknown},
		"waiting for a connection": {func(p *proxy.Proxy) { _ = p.Refuse(true) }, framework.NotApplied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p, states := traced(t, framework.WithConnectTimeout(2*time.Second), framework.WithSessionTimeout(time.Minute))
			path := parent(t)
			row.spoil(p)
			if row.outcome == framework.NotApplied {
				states.await(t, framework.Connected, framework.Suspended)
			}
			rule := p.On(proxy.Match{Path: path, Times: proxy.Always}, proxy.Hold())
			errs := make(chan error, len(each))
			for _, op := range each {
				go func() { errs <- op(context.Background(), c, path+"/a") }()
			}
			if row.outcome == framework.Unknown {
				require.NoError(t, rule.Wait(testzk.Context(t)))
			}
			select {
			case err := <-errs:
				require.NoError(t, err, "did not wait")
			case <-time.After(100 * time.Millisecond): // for all of them to be on their way
			}
			closed(t, c)
			for range each {
				err := <-errs
				require.ErrorIs(t, err, framework.ErrClosed)
				require.NotErrorIs(t, err, context.Canceled, "the caller's context lives")
				require.False(t, framework.IsTransient(err), "%v", err)
				if row.outcome == framework.NotApplied {
					require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
				}
			}
		})
	}
}

func TestOperationsBetweenTwoAttemptsEndWithErrClosed(t *testing.T) {
	attempts := make(chan struct{}, 1) // that have failed
	c, p := through(t, framework.WithRetry(func(int, time.Duration) (time.Duration, bool) {
		attempts <- struct{}{}
		return time.Hour, true
	}))
	path := parent(t)
	p.On(proxy.Match{Op: proxy.OpGetData}, proxy.DropBefore())
	result := make(chan error, 1)
	go func() { _, _, err := c.Get(context.Background(), path); result <- err }()
	<-attempts
	closed(t, c)
	err := <-result
	require.ErrorIs(t, err, framework.ErrClosed)
	require.NotErrorIs(t, err, context.Canceled, "the caller's context lives")
	require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
	require.ErrorIs(t, err, zk.ErrConnectionClosed, "what went wrong before is not forgotten")
}

func TestCloseFromManyGoroutines(t *testing.T) {
	c, p := through(t)
	path := parent(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				if _, _, err := c.Get(context.Background(), path); err != nil {
					if framework.OutcomeOf(err) == framework.Applied {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	testzk.Eventually(t, func() bool { return p.Requests()[proxy.OpGetData] > 50 }, "no traffic")
	for range 8 {
		all.Go(func() { closed(t, c) })
	}
	all.Wait()
}

func TestWhoReliesOnTheSessionKnowsOfItsEndBeforeTheServersDo(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	s := session(t, c)
	node, err := s.Create(testzk.Context(t), testzk.Path(t), nil, framework.Ephemeral(), framework.WithParents())
	require.NoError(t, err)
	observer := testzk.Synced(t, testzk.Observer(t))
	seen := make(chan error, 1)
	require.True(t, bridge.OfSession(s).Go(func() {
		<-s.Done()
		_, _, err := observer.Get(node)
		seen <- err
	}))
	closed(t, c)
	require.NoError(t, <-seen, "the node must outlive those who rely on it")
	_, _, there := observe(t, observer, node)
	require.False(t, there)
}
