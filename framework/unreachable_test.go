package framework_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/proxy"
)

// unreachable is two servers that cannot be reached, and the client of them.
func unreachable(t testing.TB, spoil func(p *proxy.Proxy), opts ...framework.Option) (c *framework.Client, servers []string) {
	t.Helper()
	for range 2 {
		p := testzk.Proxy(t)
		spoil(p)
		servers = append(servers, p.Addr())
	}
	c = testzk.Client(t, strings.Join(servers, ","), append(opts, framework.WithConnectTimeout(50*time.Millisecond))...)
	return c, servers
}

func TestOperationsEndWithTheirContextWhenNoServerAnswers(t *testing.T) {
	noSuchHost := framework.WithDialer(func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
	})
	for name, row := range map[string]struct {
		spoil func(p *proxy.Proxy)
		opts  []framework.Option
		want  string
	}{
		"refused":      {func(p *proxy.Proxy) { _ = p.Refuse(true) }, nil, "connection refused"},
		"black hole":   {func(p *proxy.Proxy) { p.Blackhole(true) }, nil, "no reply to the connect request"},
		"unresolvable": {func(*proxy.Proxy) {}, []framework.Option{noSuchHost}, "no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, servers := unreachable(t, row.spoil, append(row.opts, framework.WithRetry(retry.Forever(10*time.Millisecond)))...)
			ops := map[string]func(context.Context) error{
				"WaitConnected": c.WaitConnected,
				"Session":       func(ctx context.Context) error { _, err := c.Session(ctx); return err },
			}
			for name, op := range each {
				ops[name] = func(ctx context.Context) error { return op(ctx, c, "/a") }
			}
			var all sync.WaitGroup
			defer all.Wait()
			for name, op := range ops {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					start := time.Now()
					err := op(ctx)
					unanswered(t, name, err, row.want, servers, time.Since(start))
				})
			}
		})
	}
}

// unanswered checks the error of an operation; it does not end the test, for it runs on other goroutines.
func unanswered(t *testing.T, name string, err error, want string, servers []string, took time.Duration) {
	t.Helper()
	ok := func(good bool, what string) {
		if !good {
			t.Errorf("%s: want an error that %s, got after %v: %v", name, what, took, err)
		}
	}
	ok(err != nil && strings.Contains(err.Error(), "deadline exceeded"), "tells of the deadline")
	ok(took < soon, "comes in time")
	if name == "delete guaranteed" { // does not wait for the reason
		ok(framework.OutcomeOf(err) == framework.Unknown, "is unknown: it goes on")
		return
	}
	ok(framework.OutcomeOf(err) == framework.NotApplied, "is not applied")
	for _, server := range servers {
		ok(strings.Contains(err.Error(), server+": "), "names "+server)
	}
	ok(strings.Contains(err.Error(), framework.ErrNotConnected.Error()), "matches ErrNotConnected")
	ok(strings.Contains(err.Error(), want), "says "+want)
}

func TestOperationsGiveUpByThePolicyWhenNoServerAnswers(t *testing.T) {
	t.Parallel()
	c, servers := unreachable(t, func(p *proxy.Proxy) { _ = p.Refuse(true) }, framework.WithRetry(retry.Times(2, time.Millisecond)))
	for name, op := range each {
		if name == "delete guaranteed" {
			continue // does not give up
		}
		err := op(context.Background(), c, "/a")
		failed(t, err, framework.NotApplied, framework.ErrNotConnected)
		require.True(t, framework.IsTransient(err), name)
		require.ErrorContains(t, err, "gave up after 3 attempts")
		require.ErrorContains(t, err, servers[0]+": ")
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
	}
}

func TestOperationsThatWaitForAConnectionGoOnInTheirOrder(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
		client.Refuse(true)
		client.Reset()
		synctest.Wait()
		require.Equal(t, framework.Suspended, c.State())
		var want []string
		var running sync.WaitGroup
		for i := range many {
			path := fmt.Sprintf("/%d", i)
			want = append(want, path)
			running.Go(func() { _, _ = c.Exists(t.Context(), path) })
			synctest.Wait()
		}
		client.Refuse(false)
		running.Wait()
		var got []string
		for _, e := range srv.Trace().Entries {
			if e.What == "exists" {
				got = append(got, e.Path)
			}
		}
		require.Equal(t, want, got)
	})
}

func TestSuspendedSessionFailsItsOperationsInTime(t *testing.T) {
	c, p := through(t, framework.WithConnectTimeout(50*time.Millisecond), framework.WithRetry(retry.Forever(10*time.Millisecond)))
	s := session(t, c)
	require.NoError(t, p.Refuse(true))
	testzk.Eventually(t, func() bool { return c.State() == framework.Suspended }, "never suspended")
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, _, err := s.Get(ctx, "/")
	failed(t, err, framework.NotApplied, context.DeadlineExceeded, framework.ErrNotConnected)
	require.ErrorContains(t, err, p.Addr()+": ")
}
