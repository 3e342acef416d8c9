package striped_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simPrograms = 3
	simTurns    = 3 // of each program in each stage
	simTimeout  = 4 * time.Second
	simFaults   = 8
)

// simKeys share stripes in different ways under the two numbers.
var simKeys = []string{"a", "b", "c", "d", "e"}

// reaped makes a server delete empty containers soon.
var reaped = zktest.WithConfig("znode.container.checkIntervalMs", "1000")

// Programs are replaced one after another, by programs that hold both numbers of stripes and then by
// programs with the new number. Some crash, some skip a step, and connections and sessions are lost.
// Each key has one holder at a time and growing tokens. All programs get their locks, and nothing is
// left.
func TestSimulatedChangeOfTheNumber(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpMulti, fault.OpCreate, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		f := &fleet{t: t, srv: srv, model: testlock.NewModel(t, srv), connect: srv.MemAddr()}
		if random.IntN(2) == 0 {
			f.connect = sim.Ensemble(srv, random, 2)
		}
		f.change(aim, random)
	}, reaped)
}

// fleet is the programs of a service.
type fleet struct {
	t       *testing.T
	srv     *zktest.Server
	model   *testlock.Model
	connect string
}

func (f *fleet) change(aim *testlock.Aim, random *rand.Rand) {
	var running, before sync.WaitGroup
	before.Add(simPrograms)
	for i := range simPrograms {
		seed := random.Uint64()
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, 0))
			f.run(fmt.Sprintf("c%d", i), random, 3)
			f.run(fmt.Sprintf("c%d", i), random, 5, striped.WithPrevious(3))
			before.Done()
			if random.IntN(3) > 0 { // or else the program skips the wait for the others
				before.Wait()
			}
			f.run(fmt.Sprintf("c%d", i), random, 5)
		})
	}
	faults := aim.Faults(f.t, f.srv, random, simTimeout)
	for range simFaults {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		link := f.srv.Client(fmt.Sprintf("c%d", random.IntN(simPrograms)))
		switch random.IntN(8) {
		case 0:
			f.model.Expire(link)
		case 1:
			sim.Disturb(f.srv, random, simTimeout)
		default:
			faults.Strike(link)
		}
	}
	time.Sleep(2 * simTimeout)
	sim.Calm(f.srv)
	f.srv.ResetFaults()
	running.Wait()
	time.Sleep(3*simTimeout + 5*time.Second)
	require.Empty(f.t, f.srv.Tree())
}

// run is one program, from its start until it is replaced.
func (f *fleet) run(name string, random *rand.Rand, n int, opts ...striped.Option) {
	client, err := framework.New(f.connect,
		framework.WithDialer(f.srv.Client(name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N))
	if err != nil {
		f.t.Error(err)
		return
	}
	if random.IntN(4) == 0 { // it crashes: its session lasts until it expires
		defer func() {
			link := f.srv.Client(name)
			link.Cut()
			_ = client.Close()
			link.Heal()
		}()
	} else {
		defer client.Close()
	}
	locks, err := striped.New(client, "/locks", n, opts...)
	if err != nil {
		f.t.Error(err)
		return
	}
	for done := 0; done < simTurns; {
		var keys []string
		for _, i := range random.Perm(len(simKeys))[:1+random.IntN(3)] {
			keys = append(keys, simKeys[i])
		}
		hold, err := locks.ForAll(keys...).Acquire(context.Background())
		if err != nil {
			if !errors.Is(err, striped.ErrStripes) && !errors.Is(err, framework.ErrNotConnected) {
				f.t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
			continue
		}
		f.use(hold, keys, random)
		done++
	}
}

func (f *fleet) use(hold *recipes.Hold, keys []string, random *rand.Rand) {
	for _, key := range keys {
		f.model.Begin(testlock.Use{Lock: key, Nodes: hold.Paths(), Token: hold.Token(), Err: hold.Err})
	}
	select {
	case <-time.After(testlock.HoldTime(random, simTimeout)):
	case <-hold.Done():
	}
	_ = hold.Release()
}

// Programs with different numbers start at the same time. Only those with one of the numbers get
// holds, whatever the order of their requests.
func TestSimulatedRaceOfTwoNumbers(t *testing.T) {
	sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		var running sync.WaitGroup
		var mu sync.Mutex
		held := map[int][]*recipes.Hold{} // by number
		for i := range 4 {
			n := 3 + i%2
			client := testlock.Client(t, srv.Client(fmt.Sprint("c", i)), srv.MemAddr(), random, simTimeout)
			locks, err := striped.New(client, "/locks", n)
			require.NoError(t, err)
			require.NoError(t, client.CreateContainers(t.Context(), "/locks/programs"))
			lock, pause := locks.For(fmt.Sprint("key ", i)), time.Duration(random.Int64N(int64(10*time.Millisecond)))
			running.Go(func() {
				time.Sleep(pause)
				hold, err := lock.TryAcquire(context.Background())
				if err != nil {
					if !errors.Is(err, striped.ErrStripes) && !errors.Is(err, recipes.ErrNotAcquired) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				held[n] = append(held[n], hold)
			})
		}
		running.Wait()
		require.False(t, len(held[3]) > 0 && len(held[4]) > 0, "both numbers have holds")
		require.NotEmpty(t, append(held[3], held[4]...))
		time.Sleep(time.Second)
		names, err := srv.Children("/locks/programs")
		require.NoError(t, err)
		for n, other := range map[int]int{3: 4, 4: 3} {
			refused := func(name string) bool { return strings.Contains(name, fmt.Sprintf("stripes-%d-", other)) }
			if len(held[n]) > 0 {
				require.False(t, slices.ContainsFunc(names, refused), "left: %v", names)
			}
		}
	})
}
