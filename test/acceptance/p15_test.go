package acceptance_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

// p15Lock returns a read-write lock on a new client. All calls return the same lock.
func p15Lock(t *testing.T, in place) *rwlock.RWLock {
	t.Helper()
	rw, err := rwlock.New(in.client(t), in.root+"/rw")
	require.NoError(t, err)
	return rw
}

func p15Acquired(t *testing.T, ctx context.Context, side *rwlock.Side) *recipes.Hold {
	t.Helper()
	hold, err := side.Acquire(ctx)
	require.NoError(t, err)
	return hold
}

// p15Queued acquires on another goroutine, and returns when it is in the queue behind n others of
// its side.
func p15Queued(t *testing.T, side *rwlock.Side, n int) (got <-chan *recipes.Hold) {
	t.Helper()
	c := make(chan *recipes.Hold, 1)
	ctx, done := testzk.Context(t), make(chan struct{})
	go func() {
		defer close(done)
		hold, err := side.Acquire(ctx)
		assert.NoError(t, err)
		c <- hold
	}()
	t.Cleanup(func() { <-done })
	testzk.Eventually(t, func() bool {
		queue, err := side.Participants(t.Context())
		return err == nil && len(queue) == n+1
	}, "no waiter is in the queue")
	return c
}

// p15NotGranted checks that waiters are not granted the lock for a while.
func p15NotGranted(t *testing.T, all ...<-chan *recipes.Hold) {
	t.Helper()
	time.Sleep(time.Second)
	for i, c := range all {
		select {
		case <-c:
			require.Fail(t, "granted", "number %d in the queue", i)
		default:
		}
	}
}

// This is the script of CURATOR-276. A holder of the write lock acquires the read lock and releases
// the write lock. Another writer has joined the queue before or after the downgrade. It is granted
// the lock when the reader has released it, and not before.
func TestP15_ContendingWriterWaitsForTheDowngradedReader(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"in the queue before the downgrade": true,
		"in the queue after it": false} {
		t.Run(name, func(t *testing.T) {
			anywhere(t, func(t *testing.T, in place) {
				ours, theirs := p15Lock(t, in), p15Lock(t, in)
				written := p15Acquired(t, testzk.Context(t), ours.Write())
				var writer <-chan *recipes.Hold
				if early {
					writer = p15Queued(t, theirs.Write(), 1)
				}
				reading := p15Acquired(t, written.Context(testzk.Context(t)), ours.Read())
				if !early {
					writer = p15Queued(t, theirs.Write(), 1)
				}
				p15NotGranted(t, writer)
				require.NoError(t, written.Release())
				p15NotGranted(t, writer)
				_, err := reading.Guard(t.Context())
				require.NoError(t, err)
				require.Equal(t, written.Token(), reading.Token())

				start := time.Now()
				require.NoError(t, reading.Release())
				next := <-writer
				require.Less(t, time.Since(start), in.within(time.Second))
				require.Greater(t, next.Token(), reading.Token())
				require.NoError(t, next.Release())
			})
		})
	}
}

// Two readers upgrade at the same time. Neither hangs, at most one writes, and the other gets
// ErrUpgrade within 1 s (10 s where time is real and the machine busy). When one of them has
// released its lock, the other upgrades. A plain write acquire under a read hold is ErrUpgrade,
// too.
func TestP15_TwoUpgradersNeverHang(t *testing.T) {
	t.Parallel()
	anywhere(t, func(t *testing.T, in place) {
		locks := []*rwlock.RWLock{p15Lock(t, in), p15Lock(t, in)}
		var reading []*recipes.Hold
		for _, rw := range locks {
			reading = append(reading, p15Acquired(t, testzk.Context(t), rw.Read()))
		}
		var refused atomic.Int64
		var running sync.WaitGroup
		start := time.Now()
		for i, rw := range locks {
			running.Go(func() {
				written, err := rw.TryUpgrade(reading[i].Context(context.Background()))
				if err == nil {
					assert.NoError(t, written.Release())
				} else if assert.ErrorIs(t, err, rwlock.ErrUpgrade) {
					refused.Add(1)
				}
				_, err = rw.Write().Acquire(reading[i].Context(context.Background()))
				assert.ErrorIs(t, err, rwlock.ErrUpgrade)
			})
		}
		running.Wait()
		require.Less(t, time.Since(start), in.within(time.Second))
		require.EqualValues(t, 2, refused.Load(), "both still read, so neither can write")
		require.NoError(t, errors.Join(reading[0].Err(), reading[1].Err()))

		require.NoError(t, reading[1].Release())
		written, err := locks[0].TryUpgrade(reading[0].Context(testzk.Context(t)))
		require.NoError(t, err)
		require.NoError(t, written.Release())
		require.NoError(t, reading[0].Release())
	})
}

// Readers arrive all the time, and three of them read at any moment. A writer waits for the readers
// in front of it only. No reader that arrived later reads before the writer writes.
func TestP15_WriterWaitsForTheReadersBeforeItOnly(t *testing.T) {
	t.Parallel()
	anywhere(t, func(t *testing.T, in place) {
		const readers, rounds = 3, 5
		var stop atomic.Bool
		var newest atomic.Int64 // the largest token of a reader
		var running sync.WaitGroup
		defer running.Wait()
		defer stop.Store(true)
		for range readers {
			rw := p15Lock(t, in)
			running.Go(func() {
				for !stop.Load() {
					hold, err := rw.Read().Acquire(context.Background())
					if !assert.NoError(t, err) {
						return
					}
					newest.Store(max(newest.Load(), hold.Token()))
					time.Sleep(50 * time.Millisecond)
					assert.NoError(t, hold.Release())
				}
			})
		}
		writer := p15Lock(t, in)
		for range rounds {
			time.Sleep(100 * time.Millisecond)
			start := time.Now()
			written := p15Acquired(t, testzk.Context(t), writer.Write())
			require.Less(t, time.Since(start), in.within(time.Second))
			require.Less(t, newest.Load(), written.Token(), "a later reader was granted the lock before the writer")
			require.NoError(t, written.Release())
		}
	})
}
