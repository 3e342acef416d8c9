package barrier_test

import (
	"context"
	"fmt"
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

func requireCount(t *testing.T, l *barrier.CountDown, want int) {
	t.Helper()
	n, err := l.Count(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, n)
}

func TestLatchOpensAfterItsCounts(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		requireCount(t, newLatch(t, all[0], path, 3), 3)
		require.Empty(t, srv.Tree())
		var waiting []*call[struct{}]
		for _, c := range all {
			waiting = append(waiting, wait(t, newLatch(t, c, path, 3)))
		}
		for i, c := range all {
			settle()
			allWait(waiting)
			l := newLatch(t, c, path, 3)
			require.NoError(t, l.CountDown(t.Context()))
			requireCount(t, l, 2-i)
		}
		returned(waiting)
		l := newLatch(t, all[0], path, 3)
		require.NoError(t, l.CountDown(t.Context()), "of an open latch")
		require.NoError(t, l.Wait(t.Context()))
		requireCount(t, l, 0)
		require.Len(t, childrenOf(t, srv), 3)
	})
}

func TestLatchIsDeletedOnceItIsOpen(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		l := newLatch(t, all[0], path, 250)
		require.NoError(t, l.Delete(t.Context()), "there is none")
		for range 249 {
			require.NoError(t, l.CountDown(t.Context()))
		}
		require.ErrorIs(t, l.Delete(t.Context()), barrier.ErrNotOpen)
		waiting := []*call[struct{}]{wait(t, newLatch(t, all[1], path, 250)), wait(t, newLatch(t, all[2], path, 250))}
		settle()
		for _, c := range []string{"c1", "c2"} {
			srv.Client(c).HoldEvents() // they learn of all that follows too late
		}
		require.NoError(t, l.CountDown(t.Context()))
		require.NoError(t, l.Delete(t.Context()))
		require.Empty(t, srv.Tree())
		require.NoError(t, newLatch(t, all[0], path, 1).CountDown(t.Context()), "the next latch")
		for _, c := range []string{"c1", "c2"} {
			srv.Client(c).ReleaseEvents()
		}
		returned(waiting)
	})
}

func TestWaiterOfALatchThatIsDeletedBeforeItIsOpen(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		w := wait(t, newLatch(t, client(t, srv, "a"), path, 2))
		settle()
		require.NoError(t, srv.Delete(path))
		w.fails(barrier.ErrNodeDeleted)
	})
}

// A deletion that has not ended leaves an open latch.
func TestLatchThatIsPartlyDeletedIsOpen(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := newLatch(t, client(t, srv, "a"), path, 2)
		require.NoError(t, l.CountDown(t.Context()))
		require.NoError(t, l.CountDown(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		held := srv.On(fault.Match{Op: fault.OpMulti}, fault.Hold())
		require.ErrorIs(t, l.Delete(ctx), context.DeadlineExceeded)
		require.Equal(t, 1, held.Hits())
		require.NoError(t, l.Wait(t.Context()))
		requireCount(t, l, 0)
		require.NoError(t, l.CountDown(t.Context()))
		srv.ResetFaults()
		require.NoError(t, l.Delete(t.Context()))
		require.Empty(t, srv.Tree())
	})
}

// Two programs delete a latch, and a third one makes the next latch. The slow one of the two neither
// deletes a count of the next latch nor marks it as open.
func TestSlowDeletionLeavesTheNextLatchAlone(t *testing.T) {
	for name, slow := range map[string]fault.Match{
		"list of the counts": {Client: "b", Op: fault.OpGetChildren2, Path: path, Skip: 2}, // after the mark
		"mark":               {Client: "b", Op: fault.OpMulti},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a, b := newLatch(t, client(t, srv, "a"), path, 2), newLatch(t, client(t, srv, "b"), path, 2)
				require.NoError(t, a.CountDown(t.Context()))
				require.NoError(t, a.CountDown(t.Context()))
				held := srv.On(slow, fault.Hold())
				deleting := begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, b.Delete(ctx) })
				require.NoError(t, held.Wait(t.Context()))
				require.NoError(t, a.Delete(t.Context()))
				require.NoError(t, a.CountDown(t.Context()))
				held.Release()
				deleting.returns()
				requireCount(t, a, 1)
			})
		})
	}
}

// The path has the next latch when Delete looks whether its own is deleted. The next one is not touched, also if it is
// open by then.
func TestDeleteEndsWithItsLatch(t *testing.T) {
	for _, n := range []int{1, 2} { // the next latch is open, or not
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			a, b := newLatch(t, client(t, srv, "a"), path, n), newLatch(t, client(t, srv, "b"), path, n)
			for range n {
				require.NoError(t, a.CountDown(t.Context()))
			}
			again := srv.On(fault.Match{Client: "a", Op: fault.OpGetData, Path: path, Skip: 2}, fault.Hold())
			deleting := begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, a.Delete(ctx) })
			require.NoError(t, again.Wait(testzk.Context(t)))
			require.Empty(t, srv.Tree(), "the latch is deleted")
			require.NoError(t, b.CountDown(t.Context()))
			again.Release()
			deleting.returns()
			requireCount(t, b, n-1)
			require.True(t, srv.Exists(path))
		})
	}
}

// A latch is opened and deleted between the two reads of a first look. That begins no other latch.
func TestLatchThatIsDeletedDuringTheFirstLook(t *testing.T) {
	calls := map[string]func(*barrier.CountDown, context.Context) error{
		"wait": (*barrier.CountDown).Wait, "count down": (*barrier.CountDown).CountDown,
	}
	for name, call := range calls {
		for _, next := range []bool{false, true} { // there is another one
			t.Run(fmt.Sprint(name, " ", next), func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zktest.Server) {
					l := newLatch(t, client(t, srv, "a"), path, 2)
					require.NoError(t, l.CountDown(t.Context()))
					list := srv.On(fault.Match{Client: "w", Op: fault.OpGetChildren2, Path: path}, fault.Hold())
					other := newLatch(t, client(t, srv, "w"), path, 2)
					looking := begin(t, func(ctx context.Context) (struct{}, error) {
						return struct{}{}, call(other, ctx)
					})
					require.NoError(t, list.Wait(testzk.Context(t)))
					require.NoError(t, l.CountDown(t.Context()))
					require.NoError(t, l.Delete(t.Context()))
					if next {
						require.NoError(t, l.CountDown(t.Context()))
					}
					list.Release()
					looking.returns()
					require.Equal(t, next, srv.Exists(path))
					requireCount(t, l, map[bool]int{false: 2, true: 1}[next])
				})
			})
		}
	}
}

// Delete fails if the servers refuse it, and leaves an open latch.
func TestLatchWithNodesOfAnotherProgramIsNotDeleted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := newLatch(t, client(t, srv, "a"), path, 1)
		require.NoError(t, l.CountDown(t.Context()))
		require.NoError(t, srv.Create(path+"/x", nil))
		require.NoError(t, srv.Create(path+"/x/y", nil))
		require.ErrorIs(t, l.Delete(t.Context()), zk.ErrNotEmpty)
		require.NoError(t, l.Wait(t.Context()))
		require.NoError(t, srv.Delete(path+"/x"))
		require.NoError(t, l.Delete(t.Context()))
		require.Empty(t, srv.Tree())
	})
}

// The answer to each request in turn is lost. Each call counts once.
func TestLostAnswersToACount(t *testing.T) {
	for name, policy := range map[string]retry.Policy{"retries": nil, "no retries": retry.Never()} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				var opts []framework.Option
				if policy != nil {
					opts = append(opts, framework.WithRetry(policy))
				}
				c := client(t, srv, "a", opts...)
				for skip := range 6 {
					for i, action := range []fault.Action{fault.DropBefore(), fault.DropAfter()} {
						at := fmt.Sprintf("/latch-%d-%d", skip, i)
						l := newLatch(t, c, at, 3)
						srv.On(fault.Match{Path: at, Skip: skip}, action)
						require.NoError(t, l.CountDown(t.Context()))
						require.NoError(t, l.CountDown(t.Context()))
						requireCount(t, l, 1)
						srv.ResetFaults()
					}
				}
			})
		})
	}
}

// A call that fails without an answer is repeated by the next call.
func TestCountThatMayHaveBeenCountedIsRepeated(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := newLatch(t, client(t, srv, "a"), path, 3)
		require.NoError(t, l.CountDown(t.Context()))
		for _, applied := range []bool{true, false} {
			before := srv.Client("a")
			held := srv.On(fault.Match{Op: fault.OpCreate, Path: path + "/"}, fault.Hold())
			ctx, cancel := context.WithCancel(t.Context())
			c := begin(t, func(context.Context) (struct{}, error) { return struct{}{}, l.CountDown(ctx) })
			require.NoError(t, held.Wait(testzk.Context(t)))
			cancel()
			require.Equal(t, framework.Unknown, framework.OutcomeOf(c.fails(context.Canceled)))
			if applied {
				held.Release()
				settle()
				requireCount(t, l, 1)
			} else {
				before.Drop()
				srv.ResetFaults()
				settle()
			}
			require.NoError(t, l.CountDown(t.Context()))
			requireCount(t, l, map[bool]int{true: 1, false: 0}[applied])
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := newLatch(t, client(t, srv, "b"), path, 3).CountDown(ctx)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
	})
}

// Each of many programs counts in about one attempt, and a waiter reads the latch a few times.
func TestCostOfALatch(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		const n = 100
		all := clients(t, srv, n)
		w := wait(t, newLatch(t, client(t, srv, "waiter"), path, n))
		settle()
		var counting []*call[struct{}]
		for _, c := range all {
			l := newLatch(t, c, path, n)
			counting = append(counting, begin(t, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, l.CountDown(ctx)
			}))
		}
		returned(counting)
		w.returns()
		creates := 0
		for i := range n {
			creates += srv.Client(fmt.Sprint("c", i)).Requests()[fault.OpCreate]
		}
		require.Less(t, creates, 5*n)
		require.Less(t, srv.Client("waiter").Requests()[fault.OpGetChildren2], 15)
	})
}

func TestManyCountsOfOneLatchValue(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := newLatch(t, client(t, srv, "a"), path, 20)
		var counting []*call[struct{}]
		for range 19 {
			counting = append(counting, begin(t, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, l.CountDown(ctx)
			}))
		}
		returned(counting)
		requireCount(t, l, 1)
	})
}

// Goroutines of one client count at once, each with a CountDown of its own. Few of them choose the same
// place.
func TestCountsAtOnceChooseDifferentPlaces(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		const n = 50
		c := client(t, srv, "a")
		require.NoError(t, newLatch(t, c, path, n).CountDown(t.Context()))
		srv.ResetCounts()
		var counting []*call[struct{}]
		for range n - 1 {
			l := newLatch(t, c, path, n)
			counting = append(counting, begin(t, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, l.CountDown(ctx)
			}))
		}
		returned(counting)
		require.Less(t, srv.Requests()[fault.OpCreate], 5*n)
	})
}
