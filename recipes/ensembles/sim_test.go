package ensembles_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/ensembles"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simEnsembles = 10
	simPrograms  = 4
	simTurns     = 4 // of each program in each step
	simTimeout   = 4 * time.Second
	simFaults    = 12
)

// world is several ensembles in virtual time, each with one server.
type world struct {
	t       *testing.T
	servers []*zktest.Server
	model   *testlock.Model
	random  *rand.Rand

	mu     sync.Mutex
	begun  int64    // number of holds
	moving []string // names whose ensemble changes
	names  []string // all names
}

// newWorld adds ensembles to that of srv. Failures of the model are those of judge.
func newWorld(t *testing.T, judge testing.TB, srv *zktest.Server, random *rand.Rand, n int) *world {
	w := &world{t: t, servers: []*zktest.Server{srv}, random: random, model: testlock.NewModel(judge, srv)}
	for range n - 1 {
		w.servers = append(w.servers, zktest.Start(t, zktest.WithSeed(random.Int64())))
	}
	return w
}

func ensembleName(i int) string { return fmt.Sprintf("ensemble-%02d", i) }

// connect returns the ensembles as a program sees them. It is called in the scenario's goroutine.
func (w *world) connect(program string, policy retry.Policy) (all []ensembles.Ensemble) {
	for i, srv := range w.servers {
		all = append(all, ensembles.Ensemble{Name: ensembleName(i), Client: testlock.Client(
			w.t, srv.Client(program), srv.MemAddr(), w.random, simTimeout, framework.WithRetry(policy))})
	}
	return all
}

// choose chooses names, half of which move.
func (w *world) choose(all []ensembles.Ensemble, before, after int) {
	old, next := newSet(w.t, all[:before]), newSet(w.t, all[:after])
	var stay []string
	for i := 0; len(w.moving) < 3 || len(stay) < 3; i++ {
		name := fmt.Sprint("order-", i)
		if old.Client(name) != next.Client(name) {
			w.moving = append(w.moving, name)
		} else {
			stay = append(stay, name)
		}
	}
	w.names = append(w.moving[:3:3], stay[:3]...)
}

// use uses a hold, whose tokens must grow on each ensemble by itself.
func (w *world) use(s *ensembles.Set, name string, hold *recipes.Hold, random *rand.Rand) {
	w.mu.Lock()
	w.begun++
	w.model.Begin(testlock.Use{Lock: name, Token: w.begun, Err: hold.Err})
	for i, e := range s.Of(name) {
		w.model.Begin(testlock.Use{Lock: e.Name + " " + name, Token: hold.Tokens()[i], Err: hold.Err})
	}
	w.mu.Unlock()
	select {
	case <-time.After(testlock.HoldTime(random, simTimeout)):
	case <-hold.Done():
	}
	_ = hold.Release()
}

// turns acquires locks a number of times. Some acquires give up.
func (w *world) turns(s *ensembles.Set, random *rand.Rand, names []string) {
	for done := 0; done < simTurns; {
		name := names[random.IntN(len(names))]
		lock, err := s.Lock(name, order(name))
		if err != nil {
			w.t.Error(err)
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		if random.IntN(3) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(random.Int64N(int64(2*time.Second))))
		}
		hold, err := lock.Acquire(ctx)
		cancel()
		switch {
		case err == nil:
			w.use(s, name, hold, random)
			done++
		case !strings.HasPrefix(err.Error(), `ensemble "`):
			w.t.Errorf("the error does not name the ensemble: %v", err)
			return
		default:
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// disturb makes faults at the clients and the servers of random ensembles.
func (w *world) disturb() {
	for range simFaults {
		time.Sleep(time.Duration(w.random.Int64N(int64(time.Second))))
		srv := w.servers[w.random.IntN(len(w.servers))]
		link, lasts := srv.Client(fmt.Sprint("p", w.random.IntN(simPrograms))),
			time.Duration(w.random.Int64N(int64(2*simTimeout)))
		switch w.random.IntN(5) {
		case 0:
			link.Drop()
		case 1:
			link.Cut()
			time.AfterFunc(lasts, link.Heal)
		case 2:
			link.CutReplies()
			time.AfterFunc(lasts, link.Heal)
		case 3:
			link.Freeze()
			time.AfterFunc(lasts, link.Thaw)
		default:
			srv.Pause()
			time.AfterFunc(lasts, func() { srv.Resume(zktest.ExpireFirst) })
		}
	}
}

// An ensemble is added to ten, or removed, while programs run. Each goes from the old set to both and
// then, when all others have, to the new one. Connections and servers fail. Each name has one holder
// at a time.
func TestSimulatedChangeOfTheSet(t *testing.T) {
	sim.Run(t, 30, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		before, after := simEnsembles, simEnsembles+1
		if random.IntN(2) == 0 {
			before, after = after, before
		}
		w := newWorld(t, t, srv, random, simEnsembles+1)
		var running, old sync.WaitGroup
		old.Add(simPrograms)
		for i := range simPrograms {
			all := w.connect(fmt.Sprint("p", i), retry.Forever(100*time.Millisecond))
			if w.names == nil {
				w.choose(all, before, after)
			}
			random := rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(func() {
				w.turns(newSet(t, all[:before]), random, w.names)
				old.Done()
				both := newSet(t, all[:after], ensembles.WithPrevious(all[:before]...))
				w.turns(both, random, w.names)
				old.Wait()
				w.turns(newSet(t, all[:after]), random, w.names)
			})
		}
		w.disturb()
		running.Wait()
	})
}

// judge is a test that keeps its failures.
type judge struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (j *judge) Errorf(format string, args ...any) {
	j.failures = append(j.failures, fmt.Sprintf(format, args...))
}
func (j *judge) Cleanup(f func()) { j.cleanups = append(j.cleanups, f) }

// Programs that skip the step between have locks at once, and the model of the simulation above
// finds that.
func TestTheModelFindsThatAStepWasSkipped(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the drawing of the history
	j := &judge{TB: t}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		w := newWorld(t, j, srv, random, simEnsembles+1)
		var running sync.WaitGroup
		for i := range simPrograms {
			all := w.connect(fmt.Sprint("p", i), retry.Forever(100*time.Millisecond))
			if w.names == nil {
				w.choose(all, simEnsembles, simEnsembles+1)
			}
			random := rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(func() {
				w.turns(newSet(t, all[:simEnsembles+i%2]), random, w.moving[:1])
			})
		}
		running.Wait()
	})
	for _, check := range j.cleanups {
		check()
	}
	require.Len(t, j.failures, 1)
	require.Contains(t, j.failures[0], "the history of lock")
}

// One of ten ensembles is down. The locks of its names fail, with its name in the error. All others
// go on. Once the ensemble is back, so are its locks.
func TestSimulatedDeadEnsemble(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		w := newWorld(t, t, srv, random, simEnsembles)
		s := newSet(t, w.connect("p0", retry.Times(3, 100*time.Millisecond)))
		dead := random.IntN(simEnsembles)
		held := map[string]*recipes.Hold{}
		for i := 0; len(held) < 50; i++ {
			name := fmt.Sprint("order-", i)
			held[name] = acquire(t, lockOf(t, s, name))
		}
		w.servers[dead].Stop()
		time.Sleep(2 * simTimeout)
		failed := 0
		for name, hold := range held {
			released := hold.Release()
			again, err := lockOf(t, s, name).Acquire(t.Context())
			if s.Of(name)[0].Name != ensembleName(dead) {
				require.NoError(t, released)
				require.NoError(t, err)
				require.NoError(t, again.Release())
				continue
			}
			failed++
			require.ErrorIs(t, released, framework.ErrSessionLost)
			require.ErrorIs(t, err, framework.ErrNotConnected)
			require.ErrorContains(t, err, fmt.Sprintf("ensemble %q: ", ensembleName(dead)))
		}
		requireShare(t, failed, len(held), 1.0/simEnsembles, "names of the ensemble that is down")
		require.NoError(t, w.servers[dead].Start())
		for name := range held {
			require.NoError(t, s.Client(name).WaitConnected(t.Context()))
			require.NoError(t, acquire(t, lockOf(t, s, name)).Release())
		}
	})
}
