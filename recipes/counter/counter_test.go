package counter_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestAddReturnsTheResult(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a := newAtomic(t, client(t, srv, "c"), path)
		added(t, a, 1, 1)
		added(t, a, -1, 0)
		added(t, a, 10, 10)
		added(t, a, -15, -5)
		added(t, a, 0, -5)
		require.Equal(t, int64(-5), stored(t, srv, path))
		now, err := a.Get(testzk.Context(t))
		require.NoError(t, err)
		require.Equal(t, int64(-5), now)
	})
}

func TestUncontendedAddIsOneRequest(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a := newAtomic(t, client(t, srv, "c"), path)
		added(t, a, 1, 1)
		requests := testlock.RequestsOn(srv)
		for i := range int64(3) {
			added(t, a, 1, 2+i)
			require.Equal(t, "multi", requests.Of("c"))
		}
		idle()
		require.Equal(t, "delete", requests.Of("c"))
		added(t, a, 1, 5)
		require.Equal(t, "create getData multi", requests.Of("c"))
	})
}

func TestNothingIsLeftOfACounterThatIsNotUsed(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "c")
		for _, name := range []string{"/a", "/b", "/c"} {
			added(t, newAtomic(t, c, path+name), 1, 1)
		}
		children, err := srv.Children(path + "/a")
		require.NoError(t, err)
		require.Len(t, children, 1)
		idle()
		for _, name := range []string{"/a", "/b", "/c"} {
			children, err := srv.Children(path + name)
			require.NoError(t, err)
			require.Empty(t, children)
		}
	})
}

func TestMissingAndEmptyNodesAreZero(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "c")
		a := newAtomic(t, c, path)
		now, err := a.Get(testzk.Context(t))
		require.NoError(t, err)
		require.Zero(t, now)
		require.False(t, srv.Exists(path))
		wrote, err := a.CompareAndSet(testzk.Context(t), 5, 6)
		require.NoError(t, err)
		require.False(t, wrote)
		require.Zero(t, stored(t, srv, path), "it is created")
		for _, at := range []string{"/empty", "/nil"} {
			data := map[string][]byte{"/empty": {}, "/nil": nil}[at]
			require.NoError(t, srv.Create(at, data))
			added(t, newAtomic(t, c, at), 7, 7)
			require.Equal(t, int64(7), stored(t, srv, at))
		}
	})
}

// Curator: testCorruptedValue.
func TestDataOfAWrongLengthIsAnErrorThatShowsTheLength(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/a", []byte("foo")))
		c := client(t, srv, "c")
		a, n := newAtomic(t, c, "/a"), newCount(t, c, "/a", 0)
		ctx := testzk.Context(t)
		_, get := a.Get(ctx)
		_, add := a.Add(ctx, 1)
		_, compare := a.CompareAndSet(ctx, 1, 2)
		_, getCount := n.Get(ctx)
		_, addCount := n.Add(ctx, 1)
		for _, err := range []error{get, add, compare, getCount, addCount} {
			failed(t, err, framework.NotApplied, counter.ErrCorrupt)
			require.ErrorContains(t, err, "3 bytes")
		}
		require.NoError(t, a.Set(ctx, 5))
		added(t, a, 1, 6)
	})
}

func TestAddThatOverflowsWritesNothing(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "c")
		ctx := testzk.Context(t)
		a := newAtomic(t, c, path)
		for _, limit := range []int64{math.MaxInt64, math.MinInt64} {
			require.NoError(t, a.Set(ctx, limit))
			sign := limit>>63 | 1
			_, err := a.Add(ctx, sign)
			failed(t, err, framework.NotApplied, counter.ErrOverflow)
			_, err = a.Add(ctx, limit)
			failed(t, err, framework.NotApplied, counter.ErrOverflow)
			require.Equal(t, limit, stored(t, srv, path))
			added(t, a, -sign, limit-sign)
		}
		n := newCount(t, c, "/count", math.MaxInt32)
		_, err := n.Add(ctx, 1)
		failed(t, err, framework.NotApplied, counter.ErrOverflow)
		sum, err := n.Add(ctx, math.MinInt32)
		require.NoError(t, err)
		require.Equal(t, int32(-1), sum)
	})
}

// Curator: testCompareAndSet, testCompareAndSetWithFreshInstance. What the client knows is not
// enough for a refusal.
func TestCompareAndSetComparesWithTheServersValue(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		a, b := newAtomic(t, client(t, srv, "a"), path), newAtomic(t, client(t, srv, "b"), path)
		wrote, err := a.CompareAndSet(ctx, 1, 2)
		require.NoError(t, err)
		require.False(t, wrote)
		wrote, err = a.CompareAndSet(ctx, 0, 2)
		require.NoError(t, err)
		require.True(t, wrote)
		added(t, b, 1, 3)
		wrote, err = a.CompareAndSet(ctx, 2, 9)
		require.NoError(t, err)
		require.False(t, wrote)
		added(t, b, 1, 4)
		wrote, err = a.CompareAndSet(ctx, 4, 9)
		require.NoError(t, err)
		require.True(t, wrote)
		require.Equal(t, int64(9), stored(t, srv, path))
	})
}

// Curator: testMultiClientDifferentSeed.
func TestSeedIsWrittenOnlyIfTheNodeIsMissing(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := client(t, srv, "a"), client(t, srv, "b")
		for _, c := range []*framework.Client{a, b} {
			seed := map[*framework.Client]int32{a: 10, b: 20}[c]
			now, err := newCount(t, c, path, seed).Get(testzk.Context(t))
			require.NoError(t, err)
			require.Equal(t, int32(10), now)
			text := map[*framework.Client]string{a: "first", b: "second"}[c]
			data, err := newValue(t, c, "/value", text).Get(testzk.Context(t))
			require.NoError(t, err)
			require.Equal(t, "first", string(data))
		}
	})
}

// Curator: testSimpleVersioned, testMultiClientVersioned.
func TestCompareAndSetComparesVersions(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		a, b := newCount(t, client(t, srv, "a"), path, 0), newCount(t, client(t, srv, "b"), path, 0)
		old, err := a.GetVersioned(ctx)
		require.NoError(t, err)
		first, wrote, err := a.CompareAndSet(ctx, old, 10)
		require.NoError(t, err)
		require.True(t, wrote)
		now, wrote, err := b.CompareAndSet(ctx, old, 20)
		require.NoError(t, err)
		require.False(t, wrote)
		require.Equal(t, first, now)
		second, wrote, err := b.CompareAndSet(ctx, now, 20)
		require.NoError(t, err)
		require.True(t, wrote)
		third, wrote, err := b.CompareAndSet(ctx, second, 20)
		require.NoError(t, err)
		require.True(t, wrote)
		require.NotEqual(t, second, third, "the same value has another version")
		require.NoError(t, srv.Set(path, []byte{0, 0, 0, 20}))
		_, wrote, err = b.CompareAndSet(ctx, third, 30)
		require.NoError(t, err)
		require.False(t, wrote)
		_, wrote, err = b.CompareAndSet(ctx, counter.Versioned[int32]{}, 30)
		require.NoError(t, err)
		require.False(t, wrote)
	})
}

func TestVersionsOfANodeAreNotThoseOfTheNextOne(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		n := newCount(t, client(t, srv, "a"), path, 5)
		old, err := n.GetVersioned(ctx)
		require.NoError(t, err)
		require.NoError(t, srv.Delete(path))
		require.NoError(t, srv.Create(path, []byte{0, 0, 0, 5}))
		_, wrote, err := n.CompareAndSet(ctx, old, 6)
		require.NoError(t, err)
		require.False(t, wrote)
	})
}

// The node is deleted and created again with the version that the client knows.
func TestUpdateOfADeletedNodeIsNotAppliedToTheNextOne(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a := newAtomic(t, client(t, srv, "a"), path)
		added(t, a, 5, 5)
		c := client(t, srv, "b")
		require.NoError(t, c.DeleteRecursive(testzk.Context(t), path))
		require.NoError(t, srv.Create(path, nil))
		require.NoError(t, srv.Set(path, []byte{0, 0, 0, 0, 0, 0, 0, 50}))
		added(t, a, 1, 51)
	})
}

func TestManyClientsAddEachOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		const clients, adds = 10, 30
		var all sync.WaitGroup
		var mu sync.Mutex
		var results []int64
		for i := range clients {
			a := newAtomic(t, client(t, srv, string(rune('a'+i))), path)
			all.Go(func() {
				for range adds {
					sum, err := a.Add(background(), 1)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					results = append(results, sum)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		require.Equal(t, int64(clients*adds), stored(t, srv, path))
		slices.Sort(results)
		require.Len(t, slices.Compact(results), clients*adds, "two adds have the same result")
		idle()
		children, err := srv.Children(path)
		require.NoError(t, err)
		require.Empty(t, children)
	})
}

func TestAddsOfOneClientShareTransactions(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a := newAtomic(t, client(t, srv, "c"), path)
		added(t, a, 1, 1)
		requests := testlock.RequestsOn(srv)
		var all sync.WaitGroup
		sums := make([]int64, 100)
		for i := range sums {
			all.Go(func() { sums[i], _ = a.Add(background(), 1) })
		}
		all.Wait()
		slices.Sort(sums)
		for i, sum := range sums {
			require.Equal(t, int64(i+2), sum)
		}
		require.Contains(t, []string{"multi", "multi multi", "multi multi multi"}, requests.Of("c"))
	})
}

func TestObserveYieldsEachChangeOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		n := newCount(t, c, path, 3)
		ctx, cancel := context.WithCancel(testzk.Context(t))
		defer cancel()
		seen := make(chan int32)
		go func() {
			defer close(seen)
			for now, err := range n.Observe(ctx) {
				if err != nil {
					t.Error(err)
				}
				seen <- now
			}
		}()
		require.Equal(t, int32(3), <-seen)
		other := newCount(t, client(t, srv, "b"), path, 0)
		for _, next := range []int32{1, 2, 10} {
			require.NoError(t, other.Set(ctx, next))
			require.Equal(t, next, <-seen)
		}
		require.NoError(t, other.Set(ctx, 10)) // no change
		srv.Client("a").Drop()
		time.Sleep(time.Second)
		expire(t, srv, "a")
		time.Sleep(time.Second)
		require.NoError(t, other.Set(ctx, 11))
		require.Equal(t, int32(11), <-seen)
	})
}

func TestNodeIsPersistentAndItsParentsAreContainers(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		added(t, newAtomic(t, client(t, srv, "c"), path), 1, 1)
		idle()
		require.Contains(t, srv.Tree(), "container")
	})
}

func TestArgumentsAreChecked(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	for _, bad := range []string{"", "/", "a", "/a/"} {
		_, err := counter.NewAtomic(c, bad)
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		_, err = counter.NewCount(c, bad, 0)
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		_, err = counter.NewValue(c, bad, nil)
		require.ErrorIs(t, err, framework.ErrInvalidPath)
	}
	_, err := counter.NewAtomic(nil, "/a")
	require.ErrorContains(t, err, "nil")
	_, err = counter.NewAtomic(c, "/a", counter.WithLock("b"))
	require.ErrorContains(t, err, "WithLock")
	_, err = counter.NewAtomic(c, "/a", counter.WithLock("/a"))
	require.ErrorContains(t, err, "WithLock")
	_, err = counter.NewCount(c, "/a", 0, counter.WithText())
	require.ErrorContains(t, err, "WithText")
	_, err = counter.NewValue(c, "/a", nil, counter.WithText())
	require.ErrorContains(t, err, "WithText")
	_, err = counter.NewSequence(nil, 1)
	require.ErrorContains(t, err, "nil")
	_, err = counter.NewSequence(&counter.Atomic{}, 1)
	require.ErrorIs(t, err, framework.ErrZeroValue)
	_, err = counter.NewSequence(newAtomic(t, c, "/a"), 0)
	require.ErrorContains(t, err, "0")
	ended, cancel := context.WithCancel(background())
	cancel()
	_, err = newAtomic(t, c, "/a").Add(ended, 1)
	failed(t, err, framework.NotApplied, context.Canceled)
	v := newValue(t, c, "/a", "")
	failed(t, v.Set(background(), make([]byte, 1<<20)), framework.NotApplied, framework.ErrTooLarge)
}

func TestRefusalsOfTheServersAreReported(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		c := client(t, srv, "c")
		_, err := c.Create(ctx, "/readonly", make([]byte, 8), framework.ACL(zk.WorldACL(zk.PermRead)...))
		require.NoError(t, err)
		_, err = newAtomic(t, c, "/readonly").Add(ctx, 1)
		failed(t, err, framework.NotApplied, zk.ErrNoAuth)
	})
}

func TestClientThatMayNotCreateChildrenGoesOnWithoutAMarker(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		c := client(t, srv, "c")
		_, err := c.Create(ctx, "/a", make([]byte, 8), framework.ACL(zk.WorldACL(zk.PermRead|zk.PermWrite)...))
		require.NoError(t, err)
		a := newAtomic(t, c, "/a")
		added(t, a, 1, 1)
		added(t, a, 1, 2)
		_, err = c.Create(ctx, "/b", nil, framework.Ephemeral())
		require.NoError(t, err)
		added(t, newAtomic(t, c, "/b"), 1, 1)
	})
}

// A client that may create a marker and not delete it has one marker, however often it stops using the
// counter.
func TestMarkerThatMayNotBeDeletedIsUsedAgain(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "c")
		perms := framework.ACL(zk.WorldACL(zk.PermRead | zk.PermWrite | zk.PermCreate)...)
		_, err := c.Create(testzk.Context(t), path, nil, framework.Parents(), perms)
		require.NoError(t, err)
		a := newAtomic(t, c, path)
		for i := range int64(5) {
			if i == 3 {
				srv.On(fault.Match{Client: "c", Op: fault.OpMulti}, fault.DropAfter())
			}
			added(t, a, 1, i+1)
			idle()
			names, err := srv.Children(path)
			require.NoError(t, err)
			require.Len(t, names, 1)
		}
		expire(t, srv, "c")
		added(t, a, 1, 6)
		idle()
		names, err := srv.Children(path)
		require.NoError(t, err)
		require.Len(t, names, 1)
	})
}
