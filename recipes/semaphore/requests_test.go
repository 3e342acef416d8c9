package semaphore_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// counted runs a test on a server that says what a client has asked it for since it was last asked.
func counted(t *testing.T, test func(t *testing.T, srv *zktest.Server, asked func(name string) string)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		seen := 0
		test(t, srv, func(name string) string {
			time.Sleep(10 * time.Millisecond) // less than a hold lasts before it is watched
			entries := srv.Trace().Entries
			var all []string
			for _, e := range entries[seen:] {
				if e.Client == name && e.What != "event" && e.What != "sync" {
					all = append(all, e.What)
				}
			}
			seen = len(entries)
			return strings.Join(all, " ")
		})
	})
}

func TestUncontendedAcquireAndReleaseAreOneRequestEachOfHoweverManyPermits(t *testing.T) {
	for _, opts := range [][]semaphore.Option{nil, {semaphore.WithSharedLimit("/limit")}} {
		for n, releases := range map[int]string{1: "delete", 5: "multi"} {
			counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
				s := newSemaphore(t, client(t, srv, "c"), "/sem", 5, opts...)
				release(t, acquire(t, s, 1)) // the nodes are there now
				asked("c")
				hold := acquire(t, s, n)
				require.Equal(t, "multi", asked("c"))
				release(t, hold)
				require.Equal(t, releases, asked("c"))
			})
		}
	}
}

func TestSlotsTakeOneReadMore(t *testing.T) {
	counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 5, semaphore.WithSlots())
		release(t, acquire(t, s, 1))
		asked("c")
		hold := acquire(t, s, 3)
		require.Equal(t, "getChildren2 multi", asked("c"))
		release(t, hold)
		require.Equal(t, "multi", asked("c"))
	})
}

func TestTryAcquireThatFailsTakesTwoReadsAndWritesNothing(t *testing.T) {
	for name, opts := range map[string][]semaphore.Option{"fixed": nil, "slots": {semaphore.WithSlots()}} {
		counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
			s := newSemaphore(t, client(t, srv, "c"), "/sem", 2, opts...)
			release(t, acquire(t, s, 1))
			hold := acquire(t, newSemaphore(t, client(t, srv, "other"), "/sem", 2, opts...), 2)
			asked("c")
			refused(t, s, 1)
			require.Equal(t, "getChildren2 getChildren2", asked("c"), name)
			release(t, hold)
		})
	}
}

func TestTryAcquireReadsASharedLimitBeforeItSaysNo(t *testing.T) {
	counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		shared := semaphore.WithSharedLimit("/limit")
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 2, shared)
		hold := acquire(t, s, 2)
		asked("c")
		refused(t, s, 1)
		require.Equal(t, "getChildren2 getChildren2 getData", asked("c"))
		release(t, hold)
	})
}

func TestTryAcquireThatSucceedsTakesTwoReadsMore(t *testing.T) {
	counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 2)
		release(t, acquire(t, s, 1))
		asked("c")
		hold, err := s.TryAcquireN(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, "getChildren2 getChildren2 multi", asked("c"))
		release(t, hold)
	})
}

// The first in line reads the leases whenever they change; when there is room it exchanges its place for a permit.
func TestFirstInLineReadsTheLeasesAndExchangesItsPlace(t *testing.T) {
	counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		holder := newSemaphore(t, client(t, srv, "holder"), "/sem", 1)
		release(t, acquire(t, holder, 1))
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 1)
		release(t, acquire(t, s, 1))
		hold := acquire(t, holder, 1)
		asked("c")
		waiter := start(t, s, 1)
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, "multi delete create getChildren2 getChildren2 getData", asked("c"),
			"takes it back, enters the line and reads it, reads the leases, watches itself")
		release(t, hold)
		hold = waiter.won(t)
		require.Equal(t, "getChildren2 multi", asked("c"))
		release(t, hold)
		require.Equal(t, "delete", asked("c"))

		hold = acquire(t, holder, 1)
		waiter = start(t, s, 1)
		require.Equal(t, "create getChildren2 getChildren2 getData", asked("c"), "there were others the last time: it stands in line at once")
		release(t, hold)
		release(t, waiter.won(t))
		asked("c")
		release(t, acquire(t, s, 1))
		require.Equal(t, "create getChildren2 getChildren2 multi delete", asked("c"), "and does so once more")
		release(t, acquire(t, s, 1))
		require.Equal(t, "multi delete", asked("c"), "but not if it did not have to wait")
	})
}

func TestWhoHasFoundOthersStandsInLineAtOnceNextTime(t *testing.T) {
	counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 1)
		release(t, acquire(t, s, 1))
		hold := acquire(t, newSemaphore(t, client(t, srv, "holder"), "/sem", 1), 1)
		impatient := start(t, s, 1)
		time.Sleep(time.Second)
		impatient.cancel()
		_, err := impatient.wait()
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		release(t, hold)
		asked("c")
		release(t, acquire(t, s, 1))
		require.Equal(t, "create getChildren2 getChildren2 multi delete", asked("c"))
	})
}

func TestWhoIsNotFirstInLineReadsItOnceAndWatchesTwoNodes(t *testing.T) {
	counted(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		hold := acquire(t, newSemaphore(t, client(t, srv, "holder"), "/sem", 1), 1)
		first := start(t, newSemaphore(t, client(t, srv, "first"), "/sem", 1), 1)
		time.Sleep(time.Second)
		require.True(t, first.waiting())
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 1)
		acquireAndRelease := start(t, s, 1)
		time.Sleep(time.Second)
		require.True(t, acquireAndRelease.waiting())
		require.Regexp(t, `multi delete create getChildren2 getData getData$`, asked("c"))
		release(t, hold)
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, "getChildren2", asked("c"), "the leases: it is the first now, and others hold")
		release(t, first.won(t))
		release(t, acquireAndRelease.won(t))
	})
}
