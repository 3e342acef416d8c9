package barrier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestBarrierThatIsNotSetIsOpen(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		b := newBarrier(t, client(t, srv, "a"), path)
		require.NoError(t, b.Wait(t.Context()))
		require.NoError(t, b.Remove(t.Context()))
		require.Empty(t, srv.Tree())
	})
}

func TestWaitersPassWhenTheBarrierIsRemoved(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		setter := newBarrier(t, all[2], path)
		require.NoError(t, setter.Set(t.Context()))
		require.NoError(t, setter.Set(t.Context()), "again")
		var waiting []*call[struct{}]
		for _, c := range all {
			waiting = append(waiting, wait(t, newBarrier(t, c, path)))
		}
		settle()
		allWait(waiting)
		require.NoError(t, setter.Remove(t.Context()))
		require.NoError(t, setter.Remove(t.Context()), "again")
		for _, w := range waiting {
			w.returns()
		}
		require.Empty(t, srv.Tree())
	})
}

func TestNodeOfABarrier(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		require.NoError(t, newBarrier(t, c, "/a/b").Set(t.Context()))
		data, err := srv.Get("/a/b")
		require.NoError(t, err)
		require.Regexp(t, `^\d+\.\d+\.\d+\.\d+$`, string(data), "Curator's default")
		b, err := barrier.New(c, "/c", barrier.WithData(nil))
		require.NoError(t, err)
		require.NoError(t, b.Set(t.Context()))
		require.Contains(t, srv.Tree(), "/c\n")
		require.Contains(t, srv.Tree(), "/a container\n")
	})
}

// A barrier that is opened and closed again ends the waits that have begun, also those of clients that
// had no connection.
func TestBarrierThatIsClosedAgainEndsItsWaits(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		setter := newBarrier(t, client(t, srv, "setter"), path)
		require.NoError(t, setter.Set(t.Context()))
		for _, length := range []func(){nil, settle, outage} {
			w := wait(t, newBarrier(t, client(t, srv, "waiter"), path))
			settle()
			if length != nil {
				srv.Client("waiter").Cut()
			}
			require.NoError(t, setter.Remove(t.Context()))
			require.NoError(t, setter.Set(t.Context()))
			if length != nil {
				length()
				srv.Client("waiter").Heal()
			}
			w.returns()
		}
	})
}

func TestBarrierDuringAnOutageOfAWaiter(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		setter := newBarrier(t, client(t, srv, "setter"), path)
		require.NoError(t, setter.Set(t.Context()))
		w := wait(t, newBarrier(t, client(t, srv, "waiter"), path))
		for _, length := range []func(){settle, outage} {
			settle()
			srv.Client("waiter").Cut()
			length()
			srv.Client("waiter").Heal()
			outage()
			w.waits()
		}
		srv.Client("waiter").Cut()
		require.NoError(t, setter.Remove(t.Context()))
		outage()
		w.waits()
		srv.Client("waiter").Heal()
		w.returns()
	})
}

func TestWaitOutlastsAServerThatRestarts(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		setter := newBarrier(t, client(t, srv, "setter"), path)
		require.NoError(t, setter.Set(t.Context()))
		w := wait(t, newBarrier(t, client(t, srv, "waiter"), path))
		settle()
		srv.Stop()
		time.Sleep(5 * time.Minute)
		w.waits()
		require.NoError(t, srv.Start())
		outage()
		w.waits()
		require.NoError(t, setter.Remove(t.Context()))
		w.returns()
	})
}

// The server of the waiter is behind: it does not know yet that the barrier is set.
func TestWaitKnowsABarrierThatWasSetBefore(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		follower := srv.Follower(0)
		dialer := framework.WithDialer(srv.Client("waiter").DialContext)
		behind := testzk.Connected(t, follower.MemAddr(), dialer)
		setter := newBarrier(t, client(t, srv, "setter"), path)
		follower.SetLag(time.Second)
		require.NoError(t, setter.Set(t.Context()))
		w := wait(t, newBarrier(t, behind, path))
		settle()
		w.waits()
		require.NoError(t, setter.Remove(t.Context()))
		w.returns()
	})
}

func TestSetAndRemoveGoOnAfterALostAnswer(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		b := newBarrier(t, client(t, srv, "a"), path)
		for _, action := range []fault.Action{fault.DropBefore(), fault.DropAfter()} {
			create := srv.On(fault.Match{Op: fault.OpCreate, Path: path}, action)
			require.NoError(t, b.Set(t.Context()))
			require.Equal(t, 1, create.Hits())
			require.True(t, srv.Exists(path))
			remove := srv.On(fault.Match{Op: fault.OpDelete, Path: path}, action)
			require.NoError(t, b.Remove(t.Context()))
			require.Equal(t, 1, remove.Hits())
			require.Empty(t, srv.Tree())
		}
	})
}

// The first attempt may have been applied: its answer is lost. The others are not applied, because
// there is no connection.
func TestOutcomeOfSetAndRemoveIsThatOfAllAttempts(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		b := newBarrier(t, client(t, srv, "a", framework.WithRetry(retry.Times(2, 10*time.Millisecond))), path)
		calls := map[fault.Op]func(context.Context) error{fault.OpCreate: b.Set, fault.OpDelete: b.Remove}
		for op, call := range calls {
			require.NoError(t, newBarrier(t, client(t, srv, "b"), path).Remove(t.Context()))
			if op == fault.OpDelete {
				require.NoError(t, b.Set(t.Context()))
			}
			lost := srv.On(fault.Match{Client: "a", Op: op, Path: path}, fault.DropAfter())
			begun := begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
			require.NoError(t, lost.Wait(t.Context()))
			srv.Client("a").Refuse(true)
			_, err := begun.outcome()
			require.Error(t, err)
			require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
			require.Equal(t, op == fault.OpCreate, srv.Exists(path), "it was applied")
			require.Equal(t, framework.NotApplied, framework.OutcomeOf(call(t.Context())))
			srv.Client("a").Refuse(false)
			outage()
		}
	})
}

func TestEndsOfAWait(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		setter := client(t, srv, "setter")
		require.NoError(t, newBarrier(t, setter, path).Set(t.Context()))
		latch := newLatch(t, setter, "/latch", 1)
		c := client(t, srv, "a")
		for _, b := range []waiter{newBarrier(t, c, path), newLatch(t, c, "/latch", 1)} {
			why := errors.New("why")
			ctx, cancel := context.WithCancelCause(t.Context())
			w := begin(t, func(context.Context) (struct{}, error) { return struct{}{}, b.Wait(ctx) })
			settle()
			cancel(why)
			require.ErrorIs(t, w.fails(why), context.Canceled)
			require.ErrorIs(t, b.Wait(ctx), why)
			limited, stop := context.WithTimeout(t.Context(), time.Second)
			require.ErrorIs(t, b.Wait(limited), context.DeadlineExceeded)
			stop()
		}
		waiting := []*call[struct{}]{wait(t, newBarrier(t, c, path)), wait(t, newLatch(t, c, "/latch", 1))}
		member, party := enter(t, newDouble(t, c, "/double", 2)), await(t, newCyclic(t, c, "/cyclic", 2))
		settle()
		require.NoError(t, c.Close())
		for _, w := range waiting {
			w.fails(framework.ErrClosed)
		}
		member.fails(framework.ErrClosed)
		party.fails(framework.ErrClosed)
		refused := client(t, srv, "b")
		_, err := setter.SetACL(t.Context(), "/latch", zk.WorldACL(zk.PermAdmin), -1)
		require.NoError(t, err)
		require.ErrorIs(t, latch.Wait(t.Context()), zk.ErrNoAuth)
		require.ErrorIs(t, latch.CountDown(t.Context()), zk.ErrNoAuth)
		require.NoError(t, setter.CreateContainers(t.Context(), "/closed"))
		_, err = setter.SetACL(t.Context(), "/closed", zk.WorldACL(zk.PermAdmin), -1)
		require.NoError(t, err)
		require.ErrorIs(t, newBarrier(t, refused, "/closed/a").Set(t.Context()), zk.ErrNoAuth)
		_, err = newDouble(t, refused, "/closed", 1).Enter(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth)
		_, err = newCyclic(t, refused, "/closed", 1).Await(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
	})
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	for name, make := range map[string]func(c *framework.Client, path string, n int) error{
		"barrier": func(c *framework.Client, path string, _ int) error { _, err := barrier.New(c, path); return err },
		"double": func(c *framework.Client, path string, n int) error {
			_, err := barrier.NewDouble(c, path, n)
			return err
		},
		"cyclic": func(c *framework.Client, path string, n int) error {
			_, err := barrier.NewCyclic(c, path, n)
			return err
		},
		"latch": func(c *framework.Client, path string, n int) error {
			_, err := barrier.NewCountDown(c, path, n)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, make(c, path, 5000))
			require.ErrorContains(t, make(nil, path, 1), "client is nil")
			require.ErrorIs(t, make(&framework.Client{}, path, 1), framework.ErrZeroValue)
			require.ErrorIs(t, make(c, "a", 1), framework.ErrInvalidPath)
			require.ErrorIs(t, make(c, "/", 1), framework.ErrInvalidPath)
			if name != "barrier" {
				for _, n := range []int{-1, 0, 5001} {
					require.ErrorContains(t, make(c, path, n), "want 1 to 5000")
				}
			}
		})
	}
	_, err := barrier.New(c, path, nil)
	require.ErrorContains(t, err, "option 0 is nil")
	_, err = barrier.NewDouble(c, path, 1, nil)
	require.ErrorContains(t, err, "option 0 is nil")
	var none context.Context
	b := newBarrier(t, c, path)
	require.ErrorIs(t, b.Set(none), framework.ErrNilContext)
	require.ErrorIs(t, b.Remove(none), framework.ErrNilContext)
	require.ErrorIs(t, b.Wait(none), framework.ErrNilContext)
	_, err = newDouble(t, c, path, 1).Enter(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	_, err = newCyclic(t, c, path, 1).Await(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	l := newLatch(t, c, path, 1)
	require.ErrorIs(t, l.Wait(none), framework.ErrNilContext)
	require.ErrorIs(t, l.CountDown(none), framework.ErrNilContext)
	require.ErrorIs(t, l.Delete(none), framework.ErrNilContext)
	_, err = l.Count(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
}
