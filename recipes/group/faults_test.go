package group_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// incident is what happens to one request of the client a.
type incident struct {
	action fault.Action
	after  func(srv *zktest.Server) // when the rule has fired
}

var incidents = map[string]incident{
	"connection drops before": {action: fault.DropBefore()},
	"connection drops after":  {action: fault.DropAfter()},
	"request is late":         {action: fault.Delay(testzk.SessionTimeout / 2)},
	"session expires": {fault.Hold(), func(srv *zktest.Server) {
		for _, session := range srv.Client("a").Sessions() {
			_ = session.Expire()
		}
	}},
	"nothing gets through":  {fault.Hold(), func(srv *zktest.Server) { srv.Client("a").Cut() }},
	"no reply gets through": {fault.Hold(), func(srv *zktest.Server) { srv.Client("a").CutReplies() }},
	"another client deletes the nodes": {fault.Hold(), func(srv *zktest.Server) {
		_ = srv.Delete(path)
	}},
}

// A member joins, gets another payload and leaves, and its client watches the group, where another
// member leaves and joins. Each request in turn meets each fault.
func TestEachRequestMayFail(t *testing.T) {
	for what, f := range incidents {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				reached := false
				t.Run(fmt.Sprintf("request %d", n+1), func(t *testing.T) {
					sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
						reached = goesOnDespite(t, srv, f, n)
					})
				})
				if !reached {
					require.Greater(t, n, 12)
					return
				}
			}
		})
	}
}

func goesOnDespite(t *testing.T, srv *zktest.Server, f incident, skip int) (reached bool) {
	c, calm := client(t, srv, "a"), client(t, srv, "calm")
	rule := srv.On(fault.Match{Client: "a", Path: path, Skip: skip}, f.action)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if rule.Wait(t.Context()) != nil {
			return // removed
		}
		if f.after != nil {
			f.after(srv)
		}
		rule.Release()
		time.Sleep(3 * testzk.SessionTimeout)
		srv.ResetFaults()
	}()
	outlast := func() {
		settle()
		if rule.Hits() > 0 && !reached {
			reached = true
			<-over
			outage()
			settle()
		}
	}
	w := watch(t, c, path)
	agree := func(want ...string) {
		t.Helper()
		require.Equal(t, want, list(t, calm, path))
		require.Equal(t, want, w.members())
	}
	two := join(t, calm, path, "two", "2")
	one, err := group.Join(testzk.Context(t), c, path, "one", []byte("1"))
	require.NoError(t, err)
	outlast()
	require.NoError(t, one.WaitReady(t.Context()))
	agree("one=1", "two=2")
	require.NoError(t, one.SetPayload([]byte("1b")))
	require.NoError(t, two.SetPayload([]byte("2b")))
	outlast()
	require.NoError(t, one.WaitReady(t.Context()))
	agree("one=1b", "two=2b")
	require.NoError(t, two.Close())
	if err := one.Close(); err != nil {
		require.ErrorIs(t, err, group.ErrPending)
	}
	outlast()
	rule.Remove()
	<-over
	agree()
	require.NoError(t, one.Close())
	return reached
}

// A join is given up while the answer to its create is late. The process may join again at once.
func TestJoinAgainAfterAJoinThatWasGivenUp(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		late := srv.On(fault.Match{Client: "a", Op: fault.OpCreate, Path: path}, fault.Delay(2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := group.Join(ctx, c, path, "one", []byte("first"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, late.Hits())
		m, err := group.Join(testzk.Context(t), c, path, "one", []byte("second"))
		require.NoError(t, err)
		settle()
		require.Equal(t, []string{"one=second"}, list(t, c, path))
		require.NoError(t, m.Close())
		require.Empty(t, list(t, c, path))
	})
}
