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
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// closed closes c within a time limit. Main checks after all tests that no goroutine is left.
func closed(t testing.TB, c *framework.Client) {
	t.Helper()
	within(t, "Close", func() { require.NoError(t, c.Close()) })
	require.Equal(t, framework.Closed, c.State())
	require.NoError(t, c.Close(), "a second Close")
}

func TestCloseEndsInEachState(t *testing.T) {
	quick := []framework.Option{framework.WithConnectTimeout(time.Second), longSession()}
	for name, row := range map[string]struct {
		before func(p *proxy.Proxy)                                    // New
		after  func(t *testing.T, c *framework.Client, p *proxy.Proxy) // it is connected; nil: it never connects
	}{
		"at once":           {before: func(*proxy.Proxy) {}},
		"refused":           {before: func(p *proxy.Proxy) { _ = p.Refuse(true) }},
		"handshake":         {before: func(p *proxy.Proxy) { p.Blackhole(true) }},
		"connected":         {after: func(*testing.T, *framework.Client, *proxy.Proxy) {}},
		"connected, silent": {after: func(_ *testing.T, _ *framework.Client, p *proxy.Proxy) { p.Blackhole(true) }},
		"suspended": {after: func(t *testing.T, c *framework.Client, p *proxy.Proxy) {
			require.NoError(t, p.Refuse(true))
			testzk.Eventually(t, func() bool { return c.State() == framework.Suspended }, "not suspended")
		}},
		"suspended, handshake": {after: func(t *testing.T, c *framework.Client, p *proxy.Proxy) {
			p.Blackhole(true)
			p.DropConnections()
			testzk.Eventually(t, func() bool { return c.State() == framework.Suspended }, "not suspended")
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

// The earlier session is still being closed on the servers. That may take as long as its timeout,
// and Close must not.
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
		const slack = time.Second // for the rest of Close
		require.LessOrEqual(t, time.Since(start), connectTimeout+slack, "Close waited for the session to expire")
	})
}

func TestCloseDeletesEphemeralNodesBeforeItReturns(t *testing.T) {
	for range 5 {
		c := testzk.Connected(t, testzk.Connect(), framework.WithConnectTimeout(soon))
		path := parent(t)
		for _, opts := range [][]framework.CreateOption{kinds["lock node"], kinds["ephemeral"]} {
			_, err := c.Create(testzk.Context(t), path+"/n", nil, opts...)
			require.NoError(t, err)
		}
		closed(t, c)
		require.Empty(t, children(t, testzk.Observer(t), path))
	}
}

func TestCloseWhileSuspendedEndsTheSessionIfTheServersReturn(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t, longSession(), framework.WithConnectTimeout(time.Minute))
	path := parent(t)
	_, err := c.Create(testzk.Context(t), path+"/n", nil, framework.Ephemeral())
	require.NoError(t, err)
	require.NoError(t, p.Refuse(true))
	states.await(t, framework.Connected, framework.Suspended)
	done := make(chan struct{})
	go func() { defer close(done); closed(t, c) }()
	testzk.Eventually(t, func() bool { return c.State() == framework.Lost }, "the session is not lost at once")
	require.NoError(t, p.Refuse(false))
	closes(t, done, "the return of Close")
	require.Empty(t, children(t, testzk.Observer(t), path))
	require.Equal(t, 1, p.Requests()[fault.OpCloseSession])
	states.await(t, framework.Connected, framework.Suspended, framework.Lost, framework.Closed)
}

func TestPendingOperationsEndWithErrClosed(t *testing.T) {
	for name, row := range map[string]struct {
		spoil   func(p *proxy.Proxy)
		outcome framework.Outcome
	}{
		"sent":                     {func(*proxy.Proxy) {}, framework.Unknown},
		"waiting for a connection": {func(p *proxy.Proxy) { _ = p.Refuse(true) }, framework.NotApplied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p, states := traced(t, framework.WithConnectTimeout(2*time.Second), longSession())
			path := parent(t)
			row.spoil(p)
			if row.outcome == framework.NotApplied {
				states.await(t, framework.Connected, framework.Suspended)
			}
			rule := p.On(fault.Match{Path: path, Times: fault.Always}, fault.Hold())
			errs := make(chan error, len(each))
			for _, op := range each {
				go func() { errs <- op(context.Background(), c, path+"/a") }()
			}
			if row.outcome == framework.Unknown {
				require.NoError(t, rule.Wait(testzk.Context(t)))
			}
			select {
			case err := <-errs:
				require.NoError(t, err, "returned without waiting")
			case <-time.After(100 * time.Millisecond): // until all operations have begun
			}
			closed(t, c)
			for range each {
				err := <-errs
				require.ErrorIs(t, err, framework.ErrClosed)
				require.NotErrorIs(t, err, context.Canceled, "the caller's context was not canceled")
				require.False(t, framework.IsTransient(err), "%v", err)
				if row.outcome == framework.NotApplied {
					require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
				}
			}
		})
	}
}

func TestOperationsBetweenTwoAttemptsEndWithErrClosed(t *testing.T) {
	attempts := make(chan struct{}, 1) // failed ones
	c, p := proxied(t, framework.WithRetry(func(int, time.Duration) (time.Duration, bool) {
		attempts <- struct{}{}
		return time.Hour, true
	}))
	path := parent(t)
	p.On(fault.Match{Op: fault.OpGetData}, fault.DropBefore())
	result := make(chan error, 1)
	go func() { _, _, err := c.Get(context.Background(), path); result <- err }()
	<-attempts
	closed(t, c)
	err := <-result
	require.ErrorIs(t, err, framework.ErrClosed)
	require.NotErrorIs(t, err, context.Canceled, "the caller's context was not canceled")
	require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
	require.ErrorIs(t, err, zk.ErrConnectionClosed, "the error of the attempt is missing")
}

func TestCloseFromManyGoroutines(t *testing.T) {
	c, p := proxied(t)
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
	testzk.Eventually(t, func() bool { return p.Requests()[fault.OpGetData] > 50 }, "no traffic")
	for range 8 {
		all.Go(func() { closed(t, c) })
	}
	all.Wait()
}

func TestFunctionsOfASessionEndBeforeTheSessionIsClosedOnTheServers(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect(), framework.WithConnectTimeout(soon))
	s := session(t, c)
	node, err := s.Create(testzk.Context(t), testzk.Path(t), nil, framework.Ephemeral(), framework.Parents())
	require.NoError(t, err)
	observer := testzk.Observer(t)
	seen := make(chan error, 1)
	require.True(t, bridge.OfSession(s).Go(func() {
		<-s.Done()
		_, _, err := observer.Get(node)
		seen <- err
	}))
	closed(t, c)
	require.NoError(t, <-seen, "the node was deleted before the function of the session returned")
	_, _, there := observe(t, observer, node)
	require.False(t, there)
}

// A client is closed while a goroutine of its session still runs. Its connection is lost meanwhile
// and made again. Later the server cannot be reached for less than half of the session timeout.
func TestClosedSessionStaysOnTheServersUntilItsGoroutinesHaveReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		server := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(server.DialContext),
			framework.WithSessionTimeout(12*time.Second), framework.WithConnectTimeout(4*time.Second))
		running := make(chan struct{})
		release := sync.OnceFunc(func() { close(running) })
		defer release()
		require.True(t, bridge.OfSession(session(t, c)).Go(func() { <-running }))
		closing := make(chan error, 1)
		go func() { closing <- c.Close() }()
		time.Sleep(30 * time.Second)
		server.Drop()
		time.Sleep(7900 * time.Millisecond)
		server.Refuse(true)
		server.Reset()
		time.Sleep(5500 * time.Millisecond)
		server.Refuse(false)
		time.Sleep(time.Second)
		require.Len(t, srv.Sessions(), 1)
		release()
		require.NoError(t, <-closing)
	})
}

// In a bubble of testing/synctest a second Close waits for the first one, which waits for the server.
func TestSecondCloseLetsVirtualTimeGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		srv.Client("a").Cut()
		closing := make(chan error, 1)
		go func() { closing <- c.Close() }()
		synctest.Wait()
		require.Empty(t, closing)
		require.NoError(t, c.Close())
		require.NoError(t, <-closing)
	})
}
