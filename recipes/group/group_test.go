package group_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/hooks"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

var reaped = zktest.WithConfig("znode.container.checkIntervalMs", "1000")

func TestMembersJoinAndLeave(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := client(t, srv, "a"), client(t, srv, "b")
		require.Empty(t, list(t, a, path), "there is no such path")
		first := join(t, a, path, "one", "1")
		require.Equal(t, "one", first.ID())
		second := join(t, b, path, "two", "")
		require.Equal(t, []string{"one=1", "two="}, list(t, a, path))
		require.Equal(t, "/workers container\n/workers/one \"1\" ephemeral of a\n"+
			"/workers/two ephemeral of b\n", srv.Tree())
		require.NoError(t, second.SetPayload([]byte("2")))
		require.NoError(t, second.WaitReady(t.Context()))
		require.Equal(t, []string{"one=1", "two=2"}, list(t, a, path))
		require.NoError(t, first.Err())
		require.NoError(t, first.Close())
		<-first.Done()
		require.ErrorIs(t, first.Err(), group.ErrClosed)
		require.ErrorIs(t, first.SetPayload(nil), group.ErrClosed)
		require.NoError(t, first.Close())
		require.Equal(t, []string{"two=2"}, list(t, b, path))
	})
}

func TestChangesAreObservedOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "watcher")
		w := watch(t, c, path)
		settle()
		require.Empty(t, w.take())
		one := join(t, client(t, srv, "a"), path, "one", "1")
		two := join(t, client(t, srv, "b"), path, "two", "2")
		settle()
		require.Equal(t, []string{"added one=1", "added two=2"}, w.take())
		late := watch(t, c, path)
		settle()
		require.Equal(t, []string{"added one=1", "added two=2"}, late.take())
		require.NoError(t, one.SetPayload([]byte("1b")))
		settle()
		require.Equal(t, []string{"changed one=1b"}, w.take())
		require.NoError(t, two.Close())
		settle()
		require.Equal(t, []string{"removed two=2"}, w.take())
		expire(t, srv, "a")
		settle()
		require.Equal(t, []string{"removed one=1b", "added one=1b"}, w.take())
		require.Equal(t, []string{"changed one=1b", "removed two=2", "removed one=1b", "added one=1b"}, late.take())
	})
}

// What has happened during an outage of the watcher is there as one difference.
func TestOutageOfTheWatcher(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		w := watch(t, client(t, srv, "watcher"), path)
		a := client(t, srv, "a")
		one, two := join(t, a, path, "one", "1"), join(t, a, path, "two", "2")
		settle()
		w.take()
		for name, cut := range map[string]func(){
			"short": func() { time.Sleep(time.Second) },
			"long":  func() { time.Sleep(time.Minute) },
		} {
			srv.Client("watcher").Cut()
			require.NoError(t, one.SetPayload([]byte("a")))
			require.NoError(t, one.WaitReady(t.Context()))
			require.NoError(t, one.SetPayload([]byte(name)))
			require.NoError(t, two.Close())
			join(t, a, path, "three "+name, "3")
			cut()
			srv.Client("watcher").Heal()
			settle()
			outage()
			want := []string{"removed two=2", "changed one=" + name, "added three " + name + "=3"}
			require.ElementsMatch(t, want, w.take())
			two = join(t, a, path, "two", "2")
			settle()
			require.Equal(t, []string{"added two=2"}, w.take())
		}
	})
}

func TestGroupThatIsReapedIsEmpty(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		w := watch(t, client(t, srv, "watcher"), path)
		for range 2 {
			m := join(t, c, path, "one", "1")
			settle()
			require.NoError(t, m.Close())
			time.Sleep(5 * time.Second)
			require.Empty(t, srv.Tree())
			require.Equal(t, []string{"added one=1", "removed one=1"}, w.take())
			require.Empty(t, list(t, c, path))
		}
		errs, _ := w.state()
		require.Empty(t, errs)
	}, reaped)
}

func TestIDThatIsInUseIsAnError(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := client(t, srv, "a"), client(t, srv, "b")
		join(t, a, path, "one", "1")
		_, err := group.Join(t.Context(), a, path, "one", nil)
		require.ErrorIs(t, err, group.ErrIDInUse, "of the same client")
		begun := time.Now()
		_, err = group.Join(t.Context(), b, path, "one", nil)
		require.ErrorIs(t, err, group.ErrIDInUse)
		require.InDelta(t, 2*testzk.SessionTimeout, time.Since(begun), float64(time.Second))
		begun = time.Now()
		_, err = group.Join(t.Context(), b, path, "one", nil, group.WithWait(0))
		require.ErrorIs(t, err, group.ErrIDInUse)
		require.Less(t, time.Since(begun), time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = group.Join(ctx, b, path, "one", nil)
		require.ErrorIs(t, err, group.ErrIDInUse)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"one=1"}, list(t, b, path))
	})
}

// The process that had the id has crashed.
func TestIDOfACrashedProcess(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		join(t, client(t, srv, "a"), path, "one", "1")
		srv.Client("a").Cut()
		join(t, client(t, srv, "b"), path, "one", "2")
		srv.Client("a").Heal()
		settle()
		require.Equal(t, []string{"one=2"}, list(t, client(t, srv, "c"), path))
	})
}

// Another process has taken the id while the member was cut off.
func TestMemberWhoseIDIsTakenEnds(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		m := join(t, client(t, srv, "a"), path, "one", "1")
		srv.Client("a").Cut()
		join(t, client(t, srv, "b"), path, "one", "2")
		srv.Client("a").Heal()
		<-m.Done()
		require.ErrorIs(t, m.Err(), group.ErrIDInUse)
	})
}

func TestJoinThatIsGivenUpLeavesNothing(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		create := srv.On(fault.Match{Path: path + "/one", Skip: 1}, fault.Hold())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := group.Join(ctx, c, path, "one", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, create.Hits())
		create.Release()
		settle()
		require.Equal(t, "/workers container\n", srv.Tree())
		join(t, c, path, "one", "1")
	})
}

func TestKazooNames(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		kazoo := group.WithKazooNames()
		w := watch(t, c, path, kazoo)
		first, second := join(t, c, path, "one", "", kazoo), join(t, c, path, "one", "", kazoo)
		require.NoError(t, srv.Create(path+"/other", nil))
		require.Equal(t, []string{"one=", "one="}, list(t, c, path, kazoo))
		names, err := srv.Children(path)
		require.NoError(t, err)
		party := 0
		for _, name := range names {
			if strings.HasSuffix(name, "__party__") && len(name) == 32+len("__party__") {
				party++
			}
		}
		require.Equal(t, 2, party)
		require.ErrorIs(t, first.SetPayload(nil), group.ErrNoPayload)
		_, err = group.Join(t.Context(), c, path, "one", []byte("1"), kazoo)
		require.ErrorIs(t, err, group.ErrNoPayload)
		require.NoError(t, second.Close())
		settle()
		require.Equal(t, []string{"added one=", "added one=", "removed one="}, w.take())
	})
}

func TestObserveEnds(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		closing := watch(t, c, path)
		other := client(t, srv, "b")
		join(t, other, path, "one", "1")
		for change, err := range group.Observe(t.Context(), other, path) {
			require.NoError(t, err)
			require.Equal(t, group.Added, change.Kind)
			break
		}
		settle()
		require.NoError(t, c.Close())
		settle()
		errs, ended := closing.state()
		require.True(t, ended)
		require.ErrorIs(t, errs[len(errs)-1], framework.ErrClosed)
		_, err := other.SetACL(t.Context(), path, zk.WorldACL(zk.PermCreate), -1)
		require.NoError(t, err)
		refused := watch(t, other, path)
		settle()
		errs, ended = refused.state()
		require.True(t, ended)
		require.ErrorIs(t, errs[0], zk.ErrNoAuth)
	})
}

// A watcher goes on after an outage that is longer than its client's retries.
func TestObserveOutlastsAnOutage(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		w := watch(t, client(t, srv, "watcher"), path)
		m := join(t, client(t, srv, "a"), path, "one", "1")
		settle()
		w.take()
		srv.Stop()
		time.Sleep(2 * time.Minute)
		errs, ended := w.state()
		require.NotEmpty(t, errs)
		require.False(t, ended)
		require.NoError(t, m.SetPayload([]byte("2")))
		require.NoError(t, srv.Start())
		outage()
		outage()
		require.Equal(t, []string{"one=2"}, w.members())
	})
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	var none context.Context
	for name, bad := range map[string]struct {
		ctx  context.Context
		c    *framework.Client
		path string
		id   string
		opts []group.Option
		says string
	}{
		"nil context":   {none, c, path, "a", nil, framework.ErrNilContext.Error()},
		"ended context": {ended, c, path, "a", nil, "why"},
		"nil client":    {t.Context(), nil, path, "a", nil, "client is nil"},
		"zero client":   {t.Context(), &framework.Client{}, path, "a", nil, framework.ErrZeroValue.Error()},
		"relative path": {t.Context(), c, "workers", "a", nil, framework.ErrInvalidPath.Error()},
		"no id":         {t.Context(), c, path, "", nil, `id ""`},
		"id is a path":  {t.Context(), c, path, "a/b", nil, `id "a/b"`},
		"id is a dot":   {t.Context(), c, path, ".", nil, framework.ErrInvalidPath.Error()},
		"nil option":    {t.Context(), c, path, "a", []group.Option{nil}, "option 0 is nil"},
		"negative wait": {t.Context(), c, path, "a", []group.Option{group.WithWait(-1)}, "WithWait: -1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := group.Join(bad.ctx, bad.c, bad.path, bad.id, nil, bad.opts...)
			require.ErrorContains(t, err, bad.says)
			if strings.Contains(name, "id") || name == "ended context" {
				return
			}
			_, err = group.Members(bad.ctx, bad.c, bad.path, bad.opts...)
			require.ErrorContains(t, err, bad.says)
			for _, err := range group.Observe(bad.ctx, bad.c, bad.path, bad.opts...) {
				require.ErrorContains(t, err, bad.says)
			}
		})
	}
	_, err := group.Members(ended, c, path)
	require.ErrorIs(t, err, why)
	for range group.Observe(ended, c, path) {
		require.Fail(t, "a sequence with an ended context is empty")
	}
	for _, zero := range []*group.Membership{{}} {
		require.ErrorIs(t, zero.Err(), framework.ErrZeroValue)
		require.ErrorIs(t, zero.WaitReady(t.Context()), framework.ErrZeroValue)
		require.ErrorIs(t, zero.SetPayload(nil), framework.ErrZeroValue)
		require.ErrorIs(t, zero.Close(), framework.ErrZeroValue)
		require.Empty(t, zero.ID())
		<-zero.Done()
	}
	require.Equal(t, "kind 7", group.Kind(7).String())
}

func TestTooLargePayloadIsRefusedAndTheMemberStays(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c, much := client(t, srv, "a"), make([]byte, 2<<20)
		_, err := group.Join(t.Context(), c, path, "one", much)
		require.ErrorIs(t, err, framework.ErrTooLarge)
		m := join(t, c, path, "one", "1")
		require.ErrorIs(t, m.SetPayload(much), framework.ErrTooLarge)
		require.NoError(t, m.WaitReady(t.Context()))
		require.NoError(t, m.Err())
		require.Equal(t, []string{"one=1"}, list(t, c, path))
	})
}

func TestZeroMembershipIsNamed(t *testing.T) {
	zero := &group.Membership{}
	for what, err := range map[string]error{
		"Close": zero.Close(), "Err": zero.Err(), "WaitReady": zero.WaitReady(t.Context()),
		"SetPayload": zero.SetPayload(nil),
	} {
		require.ErrorIs(t, err, framework.ErrZeroValue, what)
		require.ErrorContains(t, err, "group.Membership", what)
	}
	<-zero.Done()
}

func TestReadersRefuseTheWaitOfAMember(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		_, err := group.Members(t.Context(), c, path, group.WithKazooNames(), group.WithWait(time.Second))
		require.ErrorContains(t, err, "WithWait is for Join")
		count := 0
		for _, err := range group.Observe(t.Context(), c, path, group.WithWait(0)) {
			require.ErrorContains(t, err, "WithWait is for Join")
			count++
		}
		require.Equal(t, 1, count)
	})
}

// counted counts the functions that wait for a watch.
type counted struct {
	bridge.Watch
	waiting *atomic.Int64
}

func (c counted) Then(fn func()) func() {
	c.waiting.Add(1)
	done := sync.OnceFunc(func() { c.waiting.Add(-1) })
	stop := c.Watch.Then(func() { done(); fn() })
	return func() { stop(); done() }
}

// The watches are the client's, and stay when a loop ends.
func TestObserverLeavesNothingInTheWatches(t *testing.T) {
	before, waiting := hooks.Watch, &atomic.Int64{}
	hooks.Watch = func(w any) any { return counted{before(w).(bridge.Watch), waiting} }
	defer func() { hooks.Watch = before }()
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		join(t, c, path, "one", "1")
		join(t, c, path, "two", "2")
		for end := range 2 {
			seen := 0
			for range group.Observe(t.Context(), c, path) {
				if seen++; seen > end {
					break
				}
			}
			require.Zero(t, waiting.Load(), "after %d changes", end+1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for change := range group.Observe(ctx, c, path) {
			require.Contains(t, []string{"added one", "added two"}, change.String())
			if change.Member.ID == "two" {
				require.EqualValues(t, 3, waiting.Load(), "the list and two members")
				cancel()
			}
		}
		require.Zero(t, waiting.Load(), "after the end of the context")
	})
}
