package recipes_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// queueFixture is a queue on a server of its own in virtual time. Each node has another time.
type queueFixture struct {
	*testing.T
	srv *zktest.Server
	c   *framework.Client
}

func inVirtualTime(t *testing.T, test func(t *testing.T, f *queueFixture)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		dialer := framework.WithDialer(srv.Client("c").DialContext)
		test(t, &queueFixture{t, srv, testzk.Connected(t, srv.MemAddr(), dialer)})
	})
}

// holds acquires a lock that is free.
func (f *queueFixture) holds(l recipes.Locker) *recipes.Hold {
	f.Helper()
	hold, err := l.TryAcquire(f.Context())
	require.NoError(f, err)
	time.Sleep(time.Second)
	return hold
}

// waits starts an acquire that queues behind the others. The holds that it gets come by the
// channel.
func (f *queueFixture) waits(l recipes.Locker) <-chan *recipes.Hold {
	f.Helper()
	got := make(chan *recipes.Hold, 1)
	go func() {
		if hold, err := l.Acquire(f.Context()); err == nil { // else the test has ended
			got <- hold
		}
	}()
	time.Sleep(time.Second)
	synctest.Wait()
	require.Empty(f, got)
	return got
}

func (f *queueFixture) release(holds ...*recipes.Hold) {
	f.Helper()
	for _, h := range holds {
		require.NoError(f, h.Release())
	}
	time.Sleep(time.Second)
}

// lists requires which participants hold the lock, one letter for each: h or w. It returns them.
func (f *queueFixture) lists(l lister, want string) []recipes.Participant {
	f.Helper()
	all, err := l.Participants(f.Context())
	require.NoError(f, err)
	got := ""
	for _, p := range all {
		if p.Holds {
			got += "h"
			continue
		}
		got += "w"
		require.Zero(f, p.HeldSince, "a waiter holds nothing")
	}
	require.Equal(f, want, got)
	return all
}

func TestHolderOfAMutexHasHeldItSinceTheLastCreation(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *queueFixture) {
		mu := must(mutex.New(f.c, "/lock"))
		f.lists(mu, "")
		first := f.holds(mu)
		alone := f.lists(mu, "h")
		require.False(t, alone[0].HeldSince.IsZero())
		require.Equal(t, alone[0].Since, alone[0].HeldSince, "it did not wait")
		second, third := f.waits(mu), f.waits(mu)
		all := f.lists(mu, "hww")
		require.Equal(t, first.Path(), all[0].Node)
		require.Equal(t, all[2].Since, all[0].HeldSince, "nothing was deleted since the last one came")
		f.release(first)
		all = f.lists(mu, "hw")
		require.Zero(t, all[0].HeldSince, "nothing shows when the one ahead was deleted")
		fourth := f.waits(mu)
		all = f.lists(mu, "hww")
		require.Equal(t, all[2].Since, all[0].HeldSince)
		require.True(t, all[0].HeldSince.After(all[0].Since))
		require.NoError(t, f.srv.Create("/lock/other", nil))
		require.Zero(t, f.lists(mu, "hww")[0].HeldSince, "another child is no participant")
		f.release(<-second)
		f.release(<-third)
		require.Zero(t, f.lists(mu, "h")[0].HeldSince, "it has waited, and its node is as old as before")
		f.release(<-fourth)
	})
}

// A successor that the list shows behind the deleted node holds the lock now.
func TestParticipantsLeaveOutAHolderThatIsDeletedMeanwhile(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *queueFixture) {
		mu := must(mutex.New(f.c, "/lock"))
		first := f.holds(mu)
		second := f.waits(mu)
		observer := testzk.Connected(t, f.srv.MemAddr(), framework.WithDialer(f.srv.Client("observer").DialContext))
		read := f.srv.On(fault.Match{Client: "observer", Op: fault.OpGetData, Path: first.Path()}, fault.Hold())
		listed := make(chan []recipes.Participant, 1)
		go func() { listed <- must(must(mutex.New(observer, "/lock")).Participants(t.Context())) }()
		require.NoError(t, read.Wait(t.Context()))
		f.release(first)
		read.Release()
		all := <-listed
		require.Len(t, all, 1)
		require.True(t, all[0].Holds)
		require.Zero(t, all[0].HeldSince)
		f.release(<-second)
	})
}

// At the end of the counter the numbers are equal, or negative.
func TestHoldersAreKnownAtTheEndOfTheCounter(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *queueFixture) {
		require.NoError(t, f.srv.Create("/lock", nil))
		require.NoError(t, f.srv.SetSequence("/lock", 1<<31-2))
		rw := must(rwlock.New(f.c, "/lock"))
		written := f.holds(rw.Write())
		waiting := f.waits(rw.Write())
		reading := must(rw.Read().Acquire(written.Context(t.Context())))
		late := f.waits(rw.Read())
		f.lists(rw.Write(), "hw")
		f.lists(rw.Read(), "hw")
		f.release(written)
		f.lists(rw.Write(), "w")
		f.lists(rw.Read(), "hw")
		f.release(reading)
		f.lists(rw.Write(), "h")
		f.lists(rw.Read(), "w")
		f.release(<-waiting)
		f.lists(rw.Read(), "h")
		f.release(<-late)
	})
}

func TestHoldersOfAReadWriteLock(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *queueFixture) {
		rw := must(rwlock.New(f.c, "/lock"))
		one, two := f.holds(rw.Read()), f.holds(rw.Read())
		all := f.lists(rw.Read(), "hh")
		require.Equal(t, all[1].Since, all[0].HeldSince)
		require.Equal(t, all[1].Since, all[1].HeldSince)
		writer := f.waits(rw.Write())
		late := f.waits(rw.Read())
		f.lists(rw.Read(), "hhw")
		f.lists(rw.Write(), "w")
		f.release(one, two)
		f.lists(rw.Read(), "w")
		written := <-writer
		all = f.lists(rw.Write(), "h")
		require.Zero(t, all[0].HeldSince)
		beside := must(rw.Read().Acquire(written.Context(t.Context())))
		f.lists(rw.Read(), "hw")
		f.lists(rw.Write(), "h")
		f.release(written)
		f.lists(rw.Read(), "hh")
		f.release(<-late)
		upgraded := must(rw.TryUpgrade(beside.Context(t.Context())))
		f.lists(rw.Read(), "h")
		f.lists(rw.Write(), "h")
		f.release(upgraded, beside)
	})
}

func TestPermitsAreHeldSinceTheyWereCreated(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *queueFixture) {
		sem := must(semaphore.New(f.c, "/semaphore", 2))
		one, two := f.holds(sem), f.holds(sem)
		first, second := f.waits(sem), f.waits(sem)
		for _, p := range f.lists(sem, "hhww")[:2] {
			require.Equal(t, p.Since, p.HeldSince)
		}
		f.release(one)
		for _, p := range f.lists(sem, "hhw")[:2] {
			require.Equal(t, p.Since, p.HeldSince)
		}
		f.release(two)
		f.release(<-first, <-second)
	})
}

func TestLeaderIsTheParticipantThatHolds(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *queueFixture) {
		var latches []*leader.Latch
		for range 3 {
			l := must(leader.NewLatch(f.c, "/leader"))
			require.NoError(t, l.Start(t.Context()))
			time.Sleep(time.Second)
			latches = append(latches, l)
		}
		list := func(want string) []recipes.Participant {
			return f.lists(latchLister{nil, latches[0]}, want)
		}
		all := list("hww")
		require.Equal(t, all[2].Since, all[0].HeldSince)
		for p, err := range leader.Observe(t.Context(), f.c, "/leader") {
			require.NoError(t, err)
			require.True(t, p.Holds)
			require.Equal(t, all[0].Node, p.Node)
			break
		}
		require.NoError(t, latches[0].Close())
		require.Zero(t, list("hw")[0].HeldSince)
		require.NoError(t, latches[1].Close())
		require.NoError(t, latches[2].Close())
		list("")
	})
}

// latchLister is a Latch as a lister.
type latchLister struct {
	recipes.Locker
	latch *leader.Latch
}

func (l latchLister) Participants(ctx context.Context) ([]recipes.Participant, error) {
	return l.latch.Participants(ctx)
}

func TestParticipantShowsThatItHolds(t *testing.T) {
	p := recipes.Participant{Node: "/lock/n-1", Data: []byte("d"), Since: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)}
	fields := func() map[string]any {
		log := zapcore.NewMapObjectEncoder()
		require.NoError(t, p.MarshalLogObject(log))
		return log.Fields
	}
	require.Equal(t, false, fields()["holds"])
	p.Holds = true
	require.Equal(t, `"d", node /lock/n-1, session 0x0, since 2024-05-06T07:08:09Z, holds`, p.String())
	require.Equal(t, true, fields()["holds"])
	require.NotContains(t, fields(), "held_since")
	p.HeldSince = p.Since.Add(time.Second)
	require.Equal(t, `"d", node /lock/n-1, session 0x0, since 2024-05-06T07:08:09Z, holds since 2024-05-06T07:08:10Z`,
		p.String())
	require.Equal(t, p.HeldSince, fields()["held_since"])
}
