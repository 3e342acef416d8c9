package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestReadersAndWritersDoNotStarveEachOther(t *testing.T) {
	for name, sides := range map[string]func(*rwlock.RWLock) (crowd, single *rwlock.Side){
		"readers": func(rw *rwlock.RWLock) (_, _ *rwlock.Side) { return rw.Read(), rw.Write() },
		"writers": func(rw *rwlock.RWLock) (_, _ *rwlock.Side) { return rw.Write(), rw.Read() },
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, 10, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				in := on(srv)
				var over atomic.Bool
				var running sync.WaitGroup
				for range 4 {
					crowd, _ := sides(in.lock(t))
					pauses := rand.New(rand.NewPCG(random.Uint64(), 0))
					running.Go(func() {
						for !over.Load() {
							hold, err := crowd.Acquire(context.Background())
							if err != nil {
								t.Error(err)
								return
							}
							time.Sleep(time.Duration(pauses.Int64N(int64(time.Second))))
							_ = hold.Release()
						}
					})
				}
				_, single := sides(in.lock(t))
				for range 5 {
					time.Sleep(time.Second)
					began := time.Now()
					hold, err := single.Acquire(context.Background())
					if err != nil {
						t.Error(err)
						break
					}
					// At most four clients are ahead, for less than a second each.
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("%v", took)
					}
					_ = hold.Release()
				}
				over.Store(true)
				running.Wait()
			})
		})
	}
}

// Curator: testBasic.
func TestWritersAreAloneAndReadersOverlapUnderLoad(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		const clients, turns = 8, 100
		var readers, writers, most atomic.Int64
		var running sync.WaitGroup
		for i := range clients {
			rw, random := in.lock(t), rand.New(rand.NewPCG(uint64(i), 0))
			turn := func() error {
				if random.IntN(10) > 0 {
					return with(testzk.Context(t), rw.Read(), func() error {
						most.Store(max(most.Load(), readers.Add(1)))
						defer readers.Add(-1)
						time.Sleep(time.Millisecond)
						return others("reads", 0, writers.Load())
					})
				}
				return with(testzk.Context(t), rw.Write(), func() error {
					defer writers.Add(-1)
					return others("writes", 1, writers.Add(1)+readers.Load())
				})
			}
			running.Go(func() {
				for range turns {
					if err := turn(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		running.Wait()
		require.Greater(t, most.Load(), int64(1), "readers do not overlap")
		empty(t, in.lock(t))
	})
}

func with(ctx context.Context, side *rwlock.Side, work func() error) error {
	hold, err := side.Acquire(ctx)
	if err != nil {
		return err
	}
	return errors.Join(work(), hold.Release())
}

func others(what string, want, got int64) error {
	if got != want {
		return fmt.Errorf("%s together with %d", what, got-want)
	}
	return nil
}
