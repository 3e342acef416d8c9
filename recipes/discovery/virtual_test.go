package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestReconnectLeavesTheInstanceAlone(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		self := register(t, newRegistry(t, client(t, srv, "a"), "/services"), orders("a"))
		v, r := watch(t, newRegistry(t, client(t, srv, "b"), "/services")), &recorder{}
		v.Listen(r.add)
		before, err := srv.Stat(self.Path())
		require.NoError(t, err)
		for range 5 {
			srv.Client("a").Drop()
			settle()
		}
		after, err := srv.Stat(self.Path())
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.Equal(t, []string{"added new a", "ready"}, r.events())
	})
}

func TestInstanceComesBackAfterALostSession(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		self := register(t, newRegistry(t, client(t, srv, "a"), "/services"), orders("a"))
		v, r := watch(t, newRegistry(t, client(t, srv, "b"), "/services")), &recorder{}
		v.Listen(r.add)
		srv.Client("a").Cut()
		outage()
		require.Empty(t, v.Instances())
		changed := self.Instance()
		changed.Payload = []byte(`"new"`)
		require.NoError(t, self.SetInstance(changed))
		srv.Client("a").Heal()
		require.NoError(t, self.WaitReady(testzk.Context(t)))
		settle()
		require.Equal(t, []string{"added new a", "ready", "removed old a", `added new a"new"`}, r.events())
		require.Equal(t, self.Instance().Registered, v.Instances()[0].Registered)
	})
}

func TestServersRestart(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		r := newRegistry(t, client(t, srv, "a"), "/services")
		self := register(t, r, orders("a"))
		v := watch(t, r)
		srv.Stop()
		outage()
		require.Equal(t, []string{"a"}, ids(v.Instances()))
		require.NoError(t, srv.Start())
		outage()
		require.NoError(t, self.WaitReady(testzk.Context(t)))
		require.NoError(t, v.WaitReady(testzk.Context(t)))
		require.Equal(t, []string{"a"}, ids(v.Instances()))
	})
}

func TestStaleViewServesWhatItHas(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		self := register(t, newRegistry(t, client(t, srv, "a"), "/services"), orders("a"))
		v, r := watch(t, newRegistry(t, client(t, srv, "b"), "/services")), &recorder{}
		v.Listen(r.add)
		p := newProvider(t, v)
		srv.Client("b").Cut()
		outage()
		require.NoError(t, self.Close())
		since, stale := v.StaleSince()
		require.True(t, stale)
		require.Less(t, time.Since(since), 3*testzk.SessionTimeout)
		i, err := p.Pick(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", i.ID)
		require.Equal(t, []string{"added new a", "ready", "stale"}, r.events())
		p.Fail(i)
		p.Fail(i)
		_, err = p.Pick(t.Context())
		require.ErrorIs(t, err, discovery.ErrNoInstance)
		require.ErrorContains(t, err, "1 registered, none available, as of")
		srv.Client("b").Heal()
		outage()
		_, stale = v.StaleSince()
		require.False(t, stale)
		_, err = p.Pick(t.Context())
		require.EqualError(t, err, "discovery: no instance of orders: 0 registered, none available")
		require.Equal(t, []string{"added new a", "ready", "stale", "removed old a", "ready"}, r.events())
	})
}

func TestFirstPickWaitsUntilTheViewIsReady(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		register(t, newRegistry(t, client(t, srv, "a"), "/services"), orders("a"))
		b := client(t, srv, "b")
		srv.Client("b").Cut()
		v, err := newRegistry(t, b, "/services").View("orders")
		require.NoError(t, err)
		t.Cleanup(v.Close)
		p := newProvider(t, v)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Pick(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, stale := v.StaleSince()
		require.False(t, stale)
		time.AfterFunc(time.Second, srv.Client("b").Heal)
		i, err := p.Pick(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", i.ID)
	})
}

func TestProviderOfAClosedViewFails(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		r := newRegistry(t, c, "/services")
		register(t, r, orders("a"))
		v, other := watch(t, r), watch(t, r)
		p := newProvider(t, v)
		v.Close()
		<-v.Done()
		_, err := p.Pick(t.Context())
		require.ErrorIs(t, err, discovery.ErrClosed)
		require.Equal(t, []string{"a"}, ids(v.Instances()))
		require.ErrorIs(t, v.WaitReady(t.Context()), discovery.ErrClosed, "it was ready before")
		_, stale := v.StaleSince()
		require.True(t, stale)
		srv.Client("a").Cut()
		unready, err := r.View("other")
		require.NoError(t, err)
		unready.Close()
		require.ErrorIs(t, unready.WaitReady(t.Context()), discovery.ErrClosed)
		srv.Client("a").Heal()
		require.NoError(t, c.Close())
		<-other.Done()
		require.ErrorIs(t, other.Err(), framework.ErrClosed)
		_, err = r.Register(orders("b"))
		require.ErrorIs(t, err, framework.ErrClosed)
		_, err = r.View("orders")
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

func TestFailingInstancesAreLeftOutForAWhile(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		r := newRegistry(t, client(t, srv, "a"), "/services")
		a := register(t, r, orders("a"))
		register(t, r, orders("b"))
		v := watch(t, r)
		settle()
		p := newProvider(t, v, discovery.WithFailures(2, 10*time.Second))
		first := v.Instances()[0]
		available := func(want ...string) {
			t.Helper()
			synctest.Wait()
			require.Equal(t, want, ids(p.Instances()))
		}
		p.Fail(nil)
		p.Fail(first)
		time.Sleep(9 * time.Second)
		available("a", "b")
		time.Sleep(time.Second)
		p.Fail(first) // the other failure is forgotten
		available("a", "b")
		time.Sleep(9 * time.Second)
		p.Fail(first)
		available("b")
		p.Fail(first)
		time.Sleep(9 * time.Second)
		available("b")
		i, err := p.Pick(t.Context())
		require.NoError(t, err)
		require.Equal(t, "b", i.ID)
		time.Sleep(time.Second)
		available("a", "b")

		p.Fail(first)
		p.Fail(first)
		available("b")
		require.NoError(t, a.Close())
		register(t, r, orders("a")) // as after a restart of its process
		settle()
		available("a", "b")
		three := newProvider(t, v, discovery.WithFailures(3, 30*time.Second))
		for _, pause := range []time.Duration{0, 29 * time.Second, 2 * time.Second} {
			time.Sleep(pause)
			three.Fail(v.Instances()[0])
			require.Len(t, three.Instances(), 2)
		}
		time.Sleep(time.Second)
		three.Fail(v.Instances()[0]) // the first failure is forgotten, and three are left
		require.Len(t, three.Instances(), 1)
		never := newProvider(t, v, discovery.WithFailures(0, time.Second))
		never.Fail(first)
		require.Len(t, never.Instances(), 2)
	})
}

func TestDisabledAndFilteredInstancesAreLeftOut(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		r := newRegistry(t, client(t, srv, "a"), "/services")
		self := register(t, r, orders("a"))
		register(t, r, orders("b"))
		register(t, r, orders("c"))
		v := watch(t, r)
		p := newProvider(t, v, discovery.WithFilter(func(i *discovery.Instance) bool { return i.ID != "b" }))
		settle()
		require.Equal(t, []string{"a", "c"}, ids(p.Instances()))
		i := self.Instance()
		i.Disabled = true
		require.NoError(t, self.SetInstance(i))
		settle()
		require.Equal(t, []string{"c"}, ids(p.Instances()))
		require.Len(t, v.Instances(), 3)
		i.Disabled = false
		require.NoError(t, self.SetInstance(i))
		settle()
		require.Equal(t, []string{"a", "c"}, ids(p.Instances()))
	})
}

func TestServiceWithoutInstancesIsForgotten(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		r := newRegistry(t, client(t, srv, "a"), "/services")
		self := register(t, r, orders("a"))
		require.NoError(t, self.Close())
		require.ErrorIs(t, self.Err(), discovery.ErrClosed)
		time.Sleep(time.Minute)
		names, err := r.Names(t.Context())
		require.NoError(t, err)
		require.Empty(t, names)
		again := register(t, r, orders("a"))
		require.Equal(t, "/services/orders/a", again.Path())
	}, zktest.WithConfig("znode.container.checkIntervalMs", "1000"))
}

func TestInstanceThatLeavesDuringAReadIsLeftOut(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		r := newRegistry(t, client(t, srv, "a"), "/services")
		a := register(t, r, orders("a"))
		register(t, r, orders("b"))
		reader := newRegistry(t, client(t, srv, "b"), "/services")
		hold := srv.On(fault.Match{Client: "b", Op: fault.OpGetData, Path: a.Path()}, fault.Hold())
		closed := make(chan error, 1)
		go func() {
			err := hold.Wait(t.Context())
			closed <- errors.Join(err, a.Close())
			hold.Release()
		}()
		found, err := reader.Instances(t.Context(), "orders")
		require.NoError(t, err)
		require.NoError(t, <-closed)
		require.Equal(t, []string{"b"}, ids(found))
	})
}

// Once one read has failed for good, no other one is begun.
func TestInstancesEndsWithTheFirstError(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		other := newRegistry(t, client(t, srv, "b"), "/services")
		for n := range 64 {
			register(t, other, orders(fmt.Sprint(n)))
		}
		r := newRegistry(t, client(t, srv, "a"), "/services")
		refused := srv.On(fault.Match{Client: "a", Op: fault.OpGetData, Times: fault.Always}, fault.Fail(zktest.NoAuth))
		_, err := r.Instances(t.Context(), "orders")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.True(t, strings.HasPrefix(err.Error(), "instances of orders: "), err.Error())
		require.NotContains(t, err.Error(), "\n", "it is one error")
		require.LessOrEqual(t, refused.Hits(), 16)
	})
}

func TestEventsAreText(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		self := register(t, newRegistry(t, client(t, srv, "a"), "/services"), orders("a"))
		v := watch(t, newRegistry(t, client(t, srv, "b"), "/services"))
		var got []string
		var mu sync.Mutex
		stop := v.Listen(func(e discovery.Event) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, e.String())
			require.Equal(t, e.Kind == discovery.Stale, !e.Since.IsZero(), e.Kind)
		})
		defer stop()
		settle()
		require.NoError(t, self.Close())
		settle()
		srv.Client("b").Drop()
		settle()
		mu.Lock()
		defer mu.Unlock()
		a := "orders/a at 10.0.0.3:8080"
		require.Equal(t, []string{"added " + a, "ready", "removed " + a, "stale", "ready"}, got)
	})
}

// An instance is registered with another type before the last node of its ID is deleted.
func TestInstanceOfAnotherTypeReplacesTheLast(t *testing.T) {
	for last, next := range map[discovery.Type]discovery.Type{
		discovery.Static: discovery.Dynamic, discovery.Dynamic: discovery.Static,
	} {
		t.Run(fmt.Sprintf("%s, then %s", last, next), func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				r := newRegistry(t, client(t, srv, "a"), "/services")
				i := orders("a")
				i.Type = last
				self := register(t, r, i)
				refused := srv.On(fault.Match{Op: fault.OpDelete, Times: fault.Always}, fault.Fail(zktest.Throttled))
				require.ErrorIs(t, self.Close(), discovery.ErrPending)
				i.Type = next
				self, err := r.Register(i)
				require.NoError(t, err)
				refused.Remove()
				require.NoError(t, self.WaitReady(testzk.Context(t)))
				v := watch(t, r)
				require.Equal(t, next, v.Instances()[0].Type)
				require.NoError(t, self.Close())
				shows(t, v)
			})
		})
	}
}
