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
)

// unreachable returns a client of the servers a and b, in virtual time. spoil makes each server
// unreachable.
func unreachable(t *testing.T, spoil func(server *zktest.Client), opts ...framework.Option) *framework.Client {
	t.Helper()
	srv := zktest.Start(t)
	for _, name := range []string{"a", "b"} {
		spoil(srv.Client(name))
	}
	opts = append([]framework.Option{byHost(srv), framework.WithConnectTimeout(50 * time.Millisecond)}, opts...)
	return testzk.Client(t, "a:1,b:1", opts...)
}

func TestOperationsEndWithTheirContextWhenNoServerAnswers(t *testing.T) {
	noSuchHost := framework.WithDialer(func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
	})
	for name, row := range map[string]struct {
		spoil func(server *zktest.Client)
		opts  []framework.Option
		want  string
	}{
		"refused": {func(server *zktest.Client) { server.Refuse(true) }, nil, "connection refused"},
		"silent": {
			func(server *zktest.Client) { server.Blackhole(true) }, nil, "no reply to the connect request",
		},
		"unknown host": {func(*zktest.Client) {}, []framework.Option{noSuchHost}, "no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := append(row.opts, framework.WithRetry(retry.Forever(10*time.Millisecond)))
				c := unreachable(t, row.spoil, opts...)
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
						const timeout = time.Second
						ctx, cancel := context.WithTimeout(context.Background(), timeout)
						defer cancel()
						start := time.Now()
						err := op(ctx)
						unanswered(t, name, err, row.want, time.Since(start) == timeout)
					})
				}
			})
		})
	}
}

// unanswered checks the error of an operation. It does not end the test, because it runs on other
// goroutines.
func unanswered(t *testing.T, name string, err error, want string, inTime bool) {
	t.Helper()
	ok := func(good bool, what string) {
		if !good {
			t.Errorf("%s: want an error that %s, got: %v", name, what, err)
		}
	}
	ok(err != nil && strings.Contains(err.Error(), "deadline exceeded"), "mentions the deadline")
	ok(inTime, "is returned at the deadline")
	if name == "delete guaranteed" { // it does not wait for the reason
		ok(framework.OutcomeOf(err) == framework.Unknown, "has an unknown outcome: the deletion goes on")
		return
	}
	ok(framework.OutcomeOf(err) == framework.NotApplied, "has the outcome not applied")
	for _, server := range []string{"a:1", "b:1"} {
		ok(strings.Contains(err.Error(), server+": "), "names "+server)
	}
	ok(strings.Contains(err.Error(), framework.ErrNotConnected.Error()), "matches ErrNotConnected")
	ok(strings.Contains(err.Error(), want), "says "+want)
}

func TestOperationsGiveUpByThePolicyWhenNoServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(server *zktest.Client) { server.Refuse(true) }
		c := unreachable(t, refuse, framework.WithRetry(retry.Times(2, time.Millisecond)))
		for name, op := range each {
			if name == "delete guaranteed" {
				continue // it goes on in the background
			}
			err := op(context.Background(), c, "/a")
			failed(t, err, framework.NotApplied, framework.ErrNotConnected)
			require.True(t, framework.IsTransient(err), name)
			require.ErrorContains(t, err, "gave up after 3 attempts")
			require.ErrorContains(t, err, "a:1: ")
			require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		}
	})
}

func TestOperationsThatWaitForAConnectionAreSentInOrder(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		server := srv.Client("a")
		c := testzk.Connected(t, "a:1", byHost(srv), framework.WithConnectTimeout(50*time.Millisecond),
			framework.WithRetry(retry.Forever(10*time.Millisecond)))
		s := session(t, c)
		server.Refuse(true)
		server.Reset()
		synctest.Wait()
		require.Equal(t, framework.Suspended, c.State())
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		_, _, err := s.Get(ctx, "/")
		failed(t, err, framework.NotApplied, context.DeadlineExceeded, framework.ErrNotConnected)
		require.ErrorContains(t, err, "a:1: ")
	})
}
