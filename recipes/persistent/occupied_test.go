package persistent_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// occupy creates an ephemeral node of another client at the path.
func occupy(t *testing.T, srv *zktest.Server, text string) *framework.Client {
	t.Helper()
	other := client(t, srv, "other")
	_, err := other.Create(t.Context(), path, []byte(text), framework.Ephemeral(), framework.Parents())
	require.NoError(t, err)
	return other
}

func TestOccupiedPathEndsTheNodeAfterSomeTime(t *testing.T) {
	for name, c := range map[string]struct {
		opts []persistent.Option
		want time.Duration
	}{
		"by default": {nil, 2 * testzk.SessionTimeout},
		"at once":    {[]persistent.Option{persistent.WithOccupiedTimeout(0)}, 0},
		"later":      {[]persistent.Option{persistent.WithOccupiedTimeout(time.Minute)}, time.Minute},
		"container":  {[]persistent.Option{persistent.WithContainer()}, 2 * testzk.SessionTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				occupy(t, srv, data)
				begun := time.Now()
				n := started(t, client(t, srv, "a"), path, c.opts...)
				<-n.Done()
				require.InDelta(t, c.want, time.Since(begun), float64(100*time.Millisecond))
				require.ErrorIs(t, n.Err(), persistent.ErrOccupied)
				require.ErrorIs(t, n.WaitReady(t.Context()), persistent.ErrOccupied)
				require.NoError(t, n.Close())
				require.Equal(t, data, content(t, srv, path), "it is another program's")
			})
		})
	}
}

func TestOccupiedPathIsTakenWhenItIsVacant(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		other := occupy(t, srv, "theirs")
		n := started(t, client(t, srv, "a"), path, persistent.WithOccupiedTimeout(persistent.NoLimit))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := n.WaitReady(ctx)
		require.ErrorIs(t, err, persistent.ErrOccupied)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, n.Path())
		require.NoError(t, other.Close())
		await(t, n)
		require.Equal(t, data, content(t, srv, path))
	})
}

// Another program takes the path while this one is cut off.
func TestPathThatWasLostIsNotTakenBack(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ours := func([]byte, zk.Stat) bool { return true }
		n := kept(t, client(t, srv, "a"), path, persistent.WithTakeover(ours))
		srv.Client("a").Cut()
		outage()
		occupy(t, srv, "theirs")
		srv.Client("a").Heal()
		<-n.Done()
		require.ErrorIs(t, n.Err(), persistent.ErrOccupied)
		require.NoError(t, n.Close())
		require.Equal(t, "theirs", content(t, srv, path))
	})
}

func TestTakeover(t *testing.T) {
	ours := func(data []byte, stat zk.Stat) bool {
		return bytes.HasPrefix(data, []byte("ours")) && stat.Version == 0
	}
	for name, mode := range modes {
		opts := append([]persistent.Option{persistent.WithTakeover(ours)}, mode...)
		if name == "protected" || name == "sequential" || name == "protected and persistent" {
			_, err := persistent.New(testzk.Client(t, "127.0.0.1:1"), path, nil, opts...)
			require.ErrorContains(t, err, "WithTakeover")
			continue
		}
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.Create("/services", nil))
				require.NoError(t, srv.Create("/services/orders", nil))
				const last = "ours, of the last process"
				other := client(t, srv, "other")
				if mode == nil {
					other = occupy(t, srv, last)
				} else {
					require.NoError(t, srv.Create(path, []byte(last)))
				}
				before, err := srv.Stat(path)
				require.NoError(t, err)
				begun := time.Now()
				n := kept(t, client(t, srv, "a"), path, opts...)
				require.Less(t, time.Since(begun), time.Second)
				require.Equal(t, data, content(t, srv, path))
				require.NoError(t, other.Close())
				settle()
				await(t, n)
				require.True(t, srv.Exists(path))
				after, err := srv.Stat(path)
				require.NoError(t, err)
				require.Equal(t, name != "ephemeral", after.Czxid == before.Czxid)
				require.NoError(t, n.Close())
				require.False(t, srv.Exists(path))
			})
		})
	}
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		occupy(t, srv, "theirs")
		n := started(t, client(t, srv, "a"), path, persistent.WithTakeover(ours))
		<-n.Done()
		require.ErrorIs(t, n.Err(), persistent.ErrOccupied)
		require.Equal(t, "theirs", content(t, srv, path))
	})
}

// A node that looks like that of a lost create counts as its node for five minutes only.
func TestLostCreateIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  error
	}{
		"soon":  {time.Minute, nil},
		"later": {6 * time.Minute, persistent.ErrOccupied},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.Create("/services", nil))
				require.NoError(t, srv.Create("/services/orders", nil))
				srv.On(fault.Match{Op: fault.OpCreate, Path: path}, fault.DropBefore())
				n := kept(t, client(t, srv, "a"), path, persistent.WithPersistence())
				time.Sleep(c.after)
				require.NoError(t, srv.Delete(path))
				require.NoError(t, srv.Create(path, []byte(data)))
				time.Sleep(4 * testzk.SessionTimeout)
				require.ErrorIs(t, n.Err(), c.want)
			})
		})
	}
}

// An outage begins after a create was applied, and before its answer. It lasts longer than requests
// can be late.
func TestLostCreateIsKnownAfterALongOutage(t *testing.T) {
	for kind, k := range kinds {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, closed %t", kind, closed), func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zktest.Server) {
					require.NoError(t, srv.Create("/services", nil))
					require.NoError(t, srv.Create("/services/orders", nil))
					c := client(t, srv, "a")
					create := srv.On(fault.Match{Client: "a", Path: path, Skip: 1}, fault.Hold())
					n := started(t, c, path, k.opts...)
					require.NoError(t, create.Wait(t.Context()))
					srv.Client("a").CutReplies()
					create.Release()
					settle()
					require.Equal(t, data, content(t, srv, path))
					if closed {
						_ = n.Close() // ErrPending, unless the node ends with its session
					}
					time.Sleep(6 * time.Minute)
					srv.Client("a").Heal()
					settle()
					if closed {
						require.NoError(t, n.Close())
						require.Empty(t, nodes(srv))
					} else {
						requireOne(t, srv, n, data)
					}
				})
			})
		}
	}
}

func TestErrorOfAnOccupiedPathNamesTheOwner(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		other, want := client(t, srv, "other"), ""
		for kind, opts := range map[string][]framework.CreateOption{
			"ephemeral": {framework.Ephemeral(), framework.Parents()},
			"container": {framework.Container(), framework.Parents()},
			"":          {framework.Parents()},
		} {
			made, err := other.CreateResult(t.Context(), path, nil, opts...)
			require.NoError(t, err)
			n := started(t, client(t, srv, "a"), path, persistent.WithOccupiedTimeout(0))
			<-n.Done()
			if want = ": persistent"; kind == "ephemeral" {
				want = fmt.Sprintf(": of session %#x", uint64(owner(t, srv, path)))
			}
			want += fmt.Sprintf(", created in transaction %#x", uint64(made.Czxid))
			require.EqualError(t, n.Err(), "keep "+path+": "+persistent.ErrOccupied.Error()+want, kind)
			require.NoError(t, other.Delete(t.Context(), path, -1))
		}
	})
}

// Both programs ask for 30 s, and the servers grant both 30 s. The second one was granted 6 s before. It waits
// until the node of the first one expires.
func TestNodeOfAProcessWithTheSameTimeoutIsWaitedFor(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		asking := func(name string) *framework.Client {
			return testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext),
				framework.WithSessionTimeout(30*time.Second))
		}
		second := asking("second")
		srv.SetSessionTimeouts(time.Second, time.Hour)
		srv.Client("second").Drop()
		time.Sleep(time.Hour / 4)
		first := asking("first")
		_, err := first.Create(t.Context(), path, nil, framework.Ephemeral(), framework.Parents())
		require.NoError(t, err)
		srv.Client("first").Cut() // it crashes
		for _, s := range srv.Sessions() {
			require.Equal(t, 30*time.Second, s.Timeout)
		}
		n := started(t, second, path)
		require.NoError(t, n.WaitReady(t.Context()))
		srv.Client("first").Heal()
	}, zktest.WithSessionTimeouts(time.Second, 6*time.Second))
}
