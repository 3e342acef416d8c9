package rwlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// A writer gives up while a reader upgrades. At no instant may the reader behind that writer hold
// the lock together with the upgraded hold.
func TestUpgradeRacingWithWritersThatGiveUp(t *testing.T) {
	sim.Run(t, 60, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		in := on(srv)
		rw, theirs := in.lock(t), in.lock(t)
		reading := acquire(t, rw.Read())
		w, r := enter(t, theirs.Write()), enter(t, theirs.Read())
		time.AfterFunc(time.Duration(random.Int64N(int64(15*time.Millisecond))), w.Cancel)
		written, err := rw.TryUpgrade(reading.Context(testzk.Context(t)))
		if err == nil {
			in.waits(t, r)
			require.NoError(t, written.Err())
			release(t, written)
		} else {
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
		}
		release(t, r.Won(t), reading)
		empty(t, rw)
	})
}

func TestReadersThatUpgradeAtTheSameTimeNeverHang(t *testing.T) {
	for name, differ := range map[string]bool{"two readers": true, "twice under one hold": false} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, 40, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				in := on(srv)
				locks := []*rwlock.RWLock{in.lock(t), in.lock(t)}
				holds := []*recipes.Hold{acquire(t, locks[0].Read()), nil}
				if differ {
					holds[1] = acquire(t, locks[1].Read())
				} else {
					locks[1], holds[1] = locks[0], holds[0]
				}
				upgraded := both(random, func(i int) (*recipes.Hold, error) {
					return locks[i].TryUpgrade(holds[i].Context(context.Background()))
				})
				if differ {
					require.Empty(t, upgraded)
					release(t, holds[1])
					upgraded = append(upgraded, upgrade(t, locks[0], holds[0]))
				}
				require.LessOrEqual(t, len(upgraded), 1)
				require.NoError(t, holds[0].Err())
				release(t, append(upgraded, holds[0])...)
				empty(t, locks[0])
			})
		})
	}
}

// both calls try twice at about the same time, and returns the holds of the calls that are not
// refused.
func both(random *rand.Rand, try func(i int) (*recipes.Hold, error)) (holds []*recipes.Hold) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range 2 {
		pause := time.Duration(random.Int64N(int64(4 * time.Millisecond)))
		running.Go(func() {
			time.Sleep(pause)
			hold, err := try(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				holds = append(holds, hold)
			} else if !errors.Is(err, rwlock.ErrUpgrade) {
				panic(err)
			}
		})
	}
	running.Wait()
	return holds
}

// The write hold is released or its node is deleted at a random time around the downgrade. If the
// downgrade succeeds, it has the position of the write hold, and no writer holds the lock.
func TestDowngradeRacingWithTheEndOfTheWriteHold(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, c *framework.Client, h *recipes.Hold) error{
		"released": func(_ context.Context, _ *framework.Client, h *recipes.Hold) error { return h.Release() },
		"node deleted": func(ctx context.Context, c *framework.Client, h *recipes.Hold) error {
			return c.Delete(ctx, h.Path(), -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, 40, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				in := on(srv)
				rw, other, c := in.lock(t), in.lock(t), in.client(t)
				written := acquire(t, rw.Write())
				ctx := context.WithoutCancel(written.Context(testzk.Context(t)))
				rival := enter(t, other.Write())
				var running sync.WaitGroup
				defer running.Wait()
				pause := time.Duration(random.Int64N(int64(3 * time.Millisecond)))
				running.Go(func() {
					time.Sleep(pause)
					if err := end(ctx, c, written); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
				short, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				reading, err := rw.Read().Acquire(short)
				switch {
				case err == nil:
					require.Equal(t, written.Token(), reading.Token())
					in.waits(t, rival)
					release(t, reading)
				case !errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrNodeDeleted):
					require.ErrorIs(t, err, recipes.ErrNotAcquired, "it has queued behind the rival")
				}
				release(t, rival.Won(t))
				running.Wait()
				empty(t, rw)
			})
		})
	}
}
