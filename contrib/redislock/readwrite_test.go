package redislock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

func TestReadersShareAndWritersDoNot(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		opts.ReadTimeout = time.Minute // a script that is sent again takes another token
		a := newReadWrite(t, newClient(t, opts), "catalogue")
		b := newReadWrite(t, newClient(t, opts), "catalogue")
		first, second := acquire(t, a.Read()), acquire(t, b.Read())
		require.Equal(t, []int64{1, 2}, []int64{first.Token(), second.Token()})
		for _, rw := range []*redislock.ReadWrite{a, b} {
			_, err := rw.Write().TryAcquire(bounded(t))
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
		}
		require.NoError(t, first.Release())
		_, err := a.Write().TryAcquire(bounded(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "another reader is left")
		require.NoError(t, second.Release())

		writing := acquire(t, a.Write())
		require.Equal(t, int64(3), writing.Token())
		for _, lock := range []*redislock.Lock{a.Read(), b.Read(), a.Write(), b.Write()} {
			_, err := lock.TryAcquire(bounded(t))
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
		}
		require.True(t, renewed(writing))
		require.NoError(t, writing.Release())
		reading := acquire(t, b.Read())
		require.Equal(t, int64(4), reading.Token())
		require.True(t, renewed(reading))
		require.NoError(t, reading.Release())
		keys, err := direct.Keys(bounded(t), "*").Result()
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"{docent:catalogue}:token", "{docent:catalogue}:done"}, keys)
	})
}

// bubbleRW runs a test in virtual time, with the read-write locks of some clients that never poll.
func bubbleRW(t *testing.T, test func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite)) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake()
		var peers []*peer
		var locks []*redislock.ReadWrite
		for range 3 {
			p := newPeer(t, srv)
			peers, locks = append(peers, p), append(locks, newReadWrite(t, p.client, "catalogue"))
		}
		test(t, srv, peers, locks)
	})
}

// start acquires a lock in the background. What it returns receives nil if ctx has ended.
func start(ctx context.Context, t testing.TB, l recipes.Locker) <-chan *recipes.Hold {
	won := make(chan *recipes.Hold, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, 100*ttl)
		defer cancel()
		hold, err := l.Acquire(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		won <- hold
	}()
	synctest.Wait()
	return won
}

func TestWaitingWriterKeepsNewReadersWaiting(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		reading := acquire(t, locks[0].Read())
		writing := start(t.Context(), t, locks[1].Write())
		for range 10 { // the mark of the writer is renewed
			_, err := locks[2].Read().TryAcquire(t.Context())
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			time.Sleep(ttl / 2)
		}
		late := start(t.Context(), t, locks[2].Read())
		require.Empty(t, late)
		require.NoError(t, reading.Release())
		written := <-writing
		require.Empty(t, late)
		released := time.Now()
		require.NoError(t, written.Release())
		require.NoError(t, (<-late).Release())
		require.Equal(t, released, time.Now(), "no poll was needed")
	})
}

// Readers that come one after another, each before the last has left, would keep a writer waiting for ever.
func TestReadersDoNotStarveAWriter(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		reading := acquire(t, locks[0].Read())
		writing := start(t.Context(), t, locks[1].Write())
		for i := range 100 {
			next := start(t.Context(), t, locks[2*(i%2)].Read())
			require.NoError(t, reading.Release())
			select {
			case written := <-writing:
				require.Zero(t, i, "the writer is next")
				require.NoError(t, written.Release())
				require.NoError(t, (<-next).Release())
				return
			case reading = <-next:
			}
		}
		t.Fatal("the writer starves")
	})
}

// What a waiting writer leaves when it gives up, or crashes, does not keep readers waiting.
func TestWriterThatGivesUpLetsReadersIn(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		reading := acquire(t, locks[0].Read())
		ctx, cancel := context.WithCancel(t.Context())
		writing := start(ctx, t, locks[1].Write())
		late := start(t.Context(), t, locks[2].Read())
		begun := time.Now()
		cancel()
		require.Nil(t, <-writing)
		require.NoError(t, (<-late).Release())
		require.Equal(t, begun, time.Now(), "the reader was told")

		ctx, cancel = context.WithCancel(t.Context())
		writing = start(ctx, t, locks[1].Write())
		peers[1].setCut(true) // as if it had crashed
		late = start(t.Context(), t, locks[2].Read())
		begun = time.Now()
		require.NoError(t, (<-late).Release())
		require.LessOrEqual(t, time.Since(begun), ttl+ttl/10)
		cancel()
		require.Nil(t, <-writing)
		peers[1].setCut(false)
		require.NoError(t, reading.Release())
	})
}

func TestReadersThatCrashAreSwept(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		crashed, other := acquire(t, locks[0].Read()), acquire(t, locks[1].Read())
		peers[0].setCut(true)
		time.Sleep(2 * ttl)
		require.Error(t, crashed.Err())
		require.NoError(t, other.Err())
		require.Equal(t, 1, srv.count(locks[1].Read().Key()))
		require.NoError(t, other.Release())
		begun := time.Now()
		require.NoError(t, acquire(t, locks[1].Write()).Release())
		require.Equal(t, begun, time.Now())
		peers[0].setCut(false)
	})
}

func TestSidesUnderEachOther(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		rw := locks[0]
		reading := acquire(t, rw.Read())
		ctx := reading.Context(t.Context())
		_, err := rw.Write().Acquire(ctx)
		require.ErrorIs(t, err, redislock.ErrUpgrade)
		_, err = rw.Write().TryAcquire(ctx)
		require.ErrorIs(t, err, redislock.ErrUpgrade)
		require.NoError(t, reading.Err())
		again, err := rw.Read().Acquire(ctx)
		require.NoError(t, err)
		require.NoError(t, reading.Release())
		require.Equal(t, 1, srv.count(rw.Read().Key()))
		require.NoError(t, again.Release())

		writing := acquire(t, rw.Write())
		under, err := rw.Read().Acquire(writing.Context(t.Context()))
		require.NoError(t, err)
		require.Equal(t, writing.Token(), under.Token())
		require.NoError(t, writing.Release())
		_, err = locks[1].Read().TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "it is a writer's until the last release")
		require.NoError(t, under.Release())
		require.NoError(t, acquire(t, locks[1].Read()).Release())
	})
}

// The client of Redis sends a release again by itself. Meanwhile others may have the lock.
func TestRepeatedReleasesOfSides(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		for _, side := range []*redislock.Lock{locks[0].Read(), locks[0].Write()} {
			for _, then := range []*redislock.Lock{locks[1].Read(), locks[1].Write()} {
				hold := acquire(t, side)
				var next *recipes.Hold
				peers[0].repeat = func() { next = acquire(t, then) }
				require.NoError(t, hold.Release())
				peers[0].repeat = nil
				require.NoError(t, next.Release())
				hold = acquire(t, side)
				srv.delete(side.Key())
				require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
			}
		}
	})
}

// A repeated acquire has a token that no other owner has.
func TestRepeatedAcquireOfASide(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		require.NoError(t, acquire(t, locks[0].Read()).Release()) // the server knows the scripts
		var others []*recipes.Hold
		peers[0].repeat = func() { others = append(others, acquire(t, locks[1].Read())) }
		hold := acquire(t, locks[0].Read())
		peers[0].repeat = nil
		require.Greater(t, hold.Token(), others[0].Token())
		for _, hold := range append(others, hold) {
			require.NoError(t, hold.Release())
		}
		require.Zero(t, srv.count(locks[0].Read().Key()))
	})
}

func TestKindsOfOneNameDoNotMix(t *testing.T) {
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		c := newClient(t, opts)
		hold := acquire(t, newReadWrite(t, c, "name").Read())
		_, err := newLock(t, c, "name").Acquire(bounded(t))
		require.ErrorContains(t, err, "WRONGTYPE")
		require.NoError(t, hold.Release())
		hold = acquire(t, newLock(t, c, "name"))
		_, err = newReadWrite(t, c, "name").Read().Acquire(bounded(t))
		require.ErrorContains(t, err, "WRONGTYPE")
		_, err = newSemaphore(t, c, "name", 1).Acquire(bounded(t))
		require.ErrorContains(t, err, "WRONGTYPE")
		require.NoError(t, hold.Release())
		rw, permits := newReadWrite(t, c, "name"), newSemaphore(t, c, "name", 3)
		for _, side := range []*redislock.Lock{rw.Read(), rw.Write()} {
			hold = acquire(t, side)
			_, err = permits.Acquire(bounded(t))
			require.ErrorContains(t, err, "WRONGTYPE docent:name is a read-write lock")
			require.NoError(t, hold.Release())
			hold = acquire(t, permits)
			_, err = side.Acquire(bounded(t))
			require.ErrorContains(t, err, "WRONGTYPE docent:name is a semaphore")
			require.NoError(t, hold.Release())
		}
	})
}

// A reader and, behind it, a writer of one client. The mark of the writer keeps the reader waiting.
func TestReaderAndWriterOfOneClientDoNotWaitForEachOther(t *testing.T) {
	bubbleRW(t, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.ReadWrite) {
		written := acquire(t, locks[0].Write())
		reading := start(t.Context(), t, locks[1].Read())
		writing := start(t.Context(), t, locks[1].Write())
		released := time.Now()
		require.NoError(t, written.Release())
		require.NoError(t, (<-writing).Release())
		require.NoError(t, (<-reading).Release())
		require.Equal(t, released, time.Now())
	})
}

// The holds of a lock with another name are not mistaken for those of a side.
func TestSideIsNotALockOfAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := redislock.NewClientOf(&link{fake: newFake()}, redislock.WithPrefix(""))
		require.NoError(t, err)
		defer c.Close()
		reading := acquire(t, newReadWrite(t, c, "x").Read())
		hold := acquire(t, newLock(t, c, "write:x"))
		_, err = newReadWrite(t, c, "x").Write().TryAcquire(hold.Context(t.Context()))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, reading.Release())
	})
}

func TestNilAndZeroReadWrite(t *testing.T) {
	_, err := redislock.NewReadWrite(nil, "lock")
	require.ErrorContains(t, err, "nil")
	var zero redislock.ReadWrite
	for _, lock := range []*redislock.Lock{zero.Read(), zero.Write()} {
		_, err = lock.Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrZeroValue)
		require.Empty(t, lock.Key())
	}
}

// The same of a waiting writer.
func TestWriterOfAKeyOfAnotherKindLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		rw := newReadWrite(t, a.client, "rw")
		hold := acquire(t, newReadWrite(t, b.client, "rw").Read())
		failed := make(chan error, 1)
		go func() {
			_, err := rw.Write().Acquire(t.Context())
			failed <- err
		}()
		time.Sleep(ttl / 10)
		srv.delete("docent:rw")
		require.NoError(t, srv.redis.Set("docent:rw", "other"))
		require.ErrorContains(t, <-failed, "WRONGTYPE")
		<-hold.Done()
		time.Sleep(ttl / 10) // until the record is deleted in the background
		srv.delete("docent:rw")
		next, err := rw.Read().TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, next.Release())
	})
}
