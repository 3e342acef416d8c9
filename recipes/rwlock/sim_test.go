package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simClients   = 3
	simTurns     = 4 // each member uses the lock so often
	simTimeout   = 4 * time.Second
	faultsInARun = 10
)

// Members of three clients read, write, downgrade and upgrade. Whatever happens, no valid write
// hold is beside another member's valid hold, and tokens order the writers. Every member gets the
// lock, and no node is left.
func TestSimulatedReadersAndWriters(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpMulti, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) { simulate(t, srv, random, aim) })
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim) {
	model, faults := testlock.NewModel(t, srv), aim.Faults(t, srv, random, simTimeout)
	if random.IntN(4) == 0 { // the sequence numbers are near or at their end
		require.NoError(t, srv.Create("/lock", nil))
		require.NoError(t, srv.SetSequence("/lock", math.MaxInt32-random.Int32N(30)))
	}
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i, opts := range [simClients][]rwlock.Option{{rwlock.WithKazooNames()}} { // different names exclude each other
		name := fmt.Sprintf("c%d", i)
		client := testlock.Client(t, srv.Client(name), srv.MemAddr(), random, simTimeout,
			framework.WithMetrics(&measured), framework.WithLossPolicy(framework.LossPolicy(random.IntN(2))))
		lock := newLock(t, client, "/lock", opts...)
		for j := range 2 {
			a := &member{t: t, model: model, name: fmt.Sprintf("%s.%d", name, j), lock: lock, turns: simTurns}
			a.random = rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(a.run)
		}
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		faults.Harm(srv.Client(fmt.Sprintf("c%d", random.IntN(simClients))), model, "/lock")
	}
	running.Wait()
	time.Sleep(2 * simTimeout) // background work that is still pending after this would never end
	left, _ := srv.Children("/lock")
	require.Empty(t, left)
	require.Empty(t, measured.Levels())
}

// member is a goroutine that uses the lock of a client.
type member struct {
	t      *testing.T
	model  *testlock.Model
	name   string
	random *rand.Rand
	lock   *rwlock.RWLock
	turns  int    // it uses the lock so often
	under  string // the namespace of the lock
}

// use checks a new hold. beside reports whether it has the position of another hold.
func (a *member) use(h *recipes.Hold, write, beside bool) {
	use := testlock.UseOf(h)
	use.By, use.Shared, use.Beside = a, !write, beside
	for i, node := range use.Nodes {
		use.Nodes[i] = a.under + node
	}
	a.model.Begin(use)
}

func (a *member) upTo(most time.Duration) time.Duration {
	return time.Duration(a.random.Int64N(int64(most)))
}

func (a *member) run() {
	for range a.turns {
		time.Sleep(a.upTo(300 * time.Millisecond))
		if a.random.IntN(5) == 0 {
			a.hurry()
		}
		if a.random.IntN(2) == 0 {
			a.read()
		} else {
			a.write()
		}
	}
}

// hurry acquires one side and gives up after a short time.
func (a *member) hurry() {
	ctx, cancel := context.WithTimeout(context.Background(), a.upTo(2*time.Second)+time.Millisecond)
	defer cancel()
	side, write := a.lock.Read(), false
	if a.random.IntN(2) == 0 {
		side, write = a.lock.Write(), true
	}
	if hold, err := side.Acquire(ctx); err == nil {
		a.use(hold, write, false)
		a.hold(hold)
	}
}

func (a *member) read() {
	reading, err := a.lock.Read().Acquire(context.Background())
	if err != nil {
		a.t.Errorf("%s does not read: %v", a.name, err)
		return
	}
	a.use(reading, false, false)
	a.more(reading, 3)
}

func (a *member) write() {
	written, err := a.lock.Write().Acquire(context.Background())
	if err != nil {
		a.t.Errorf("%s does not write: %v", a.name, err)
		return
	}
	a.use(written, true, false)
	if a.random.IntN(2) == 0 {
		a.hold(written)
		return
	}
	a.pause(written)
	if a.random.IntN(4) == 0 {
		late := time.AfterFunc(a.upTo(5*time.Millisecond), func() { _ = written.Release() }) // during the downgrade
		defer late.Stop()
	}
	// The write hold may have ended by now. Then this is an ordinary acquire.
	reading, err := a.lock.Read().Acquire(context.WithoutCancel(written.Context(context.Background())))
	if err != nil {
		a.lost(written, err)
		return
	}
	a.use(reading, false, false)
	if a.random.IntN(4) == 0 {
		a.hold(reading)
		a.hold(written)
		return
	}
	a.hold(written)
	a.more(reading, 3)
}

// more uses a read hold. It sometimes upgrades it and downgrades again.
func (a *member) more(reading *recipes.Hold, depth int) {
	a.pause(reading)
	if depth == 0 || a.random.IntN(3) == 0 {
		a.hold(reading)
		return
	}
	written, err := a.lock.TryUpgrade(context.WithoutCancel(reading.Context(context.Background())))
	switch {
	case errors.Is(err, rwlock.ErrUpgrade):
		a.hold(reading)
		return
	case err != nil:
		a.lost(reading, err)
		return
	}
	a.use(written, true, true)
	if a.random.IntN(2) == 0 {
		a.hold(written)
		a.more(reading, depth-1)
		return
	}
	a.hold(reading) // is released first
	next, err := a.lock.Read().Acquire(written.Context(context.Background()))
	if err != nil {
		a.lost(written, err)
		return
	}
	a.use(next, false, true)
	a.hold(written)
	a.more(next, depth-1)
}

// lost checks that h has ended: only that may make a downgrade or an upgrade fail with err.
func (a *member) lost(h *recipes.Hold, err error) {
	select {
	case <-h.Done():
	case <-time.After(2 * simTimeout):
		a.t.Errorf("%s has a valid hold, but failed: %v", a.name, err)
	}
	_ = h.Release()
}

// pause waits for a random time, or until the hold has ended.
func (a *member) pause(h *recipes.Hold) {
	select {
	case <-time.After(a.upTo(500 * time.Millisecond)):
	case <-h.Done():
	}
}

// hold keeps a hold for a while and releases it.
func (a *member) hold(h *recipes.Hold) {
	a.pause(h)
	_ = h.Release()
}
