package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	contenders   = 4
	turns        = 4 // each contender gets its locks so often
	simTimeout   = 4 * time.Second
	faultsInARun = 8
)

var simPaths = []string{"/a", "/b", "/c"}

// Contenders acquire different sets of the locks in different orders. Faults of connections and
// sessions leave one holder of each lock at a time and growing tokens. Every contender gets its
// locks, and no node is left.
func TestSimulatedContenders(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpMulti, fault.OpCreate, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 50, func(t *testing.T, srv *zktest.Server, random *rand.Rand) { simulate(t, srv, random, aim) })
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim) {
	model, faults := testlock.NewModel(t, srv), aim.Faults(t, srv, random, simTimeout)
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i := range contenders {
		c := &contender{t: t, model: model, random: rand.New(rand.NewPCG(random.Uint64(), 0))}
		link := srv.Client(fmt.Sprintf("c%d", i))
		c.client = testlock.Client(t, link, srv.MemAddr(), c.random, simTimeout, framework.WithMetrics(&measured))
		running.Go(c.run)
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		faults.Harm(srv.Client(fmt.Sprintf("c%d", random.IntN(contenders))), model, simPaths...)
	}
	running.Wait()
	time.Sleep(2 * simTimeout) // background work that is still pending after this would never end
	for _, path := range simPaths {
		children, err := srv.Children(path)
		require.NoError(t, err)
		require.Empty(t, children, path)
	}
	require.Empty(t, measured.Levels())
}

// One node of a waiter is deleted when a holder ahead of its other node releases. So the waiter
// handles both events at once.
func TestNodesAreDeletedWhileTheyAreExamined(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		connect := func(name string) *framework.Client {
			return testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
		}
		other, waiting := connect("other"), connect("waiter")
		first, second := acquire(t, newMutex(t, other, "/a")), acquire(t, newMutex(t, other, "/b"))
		next := testlock.Start(t, newMutex(t, other, "/a").Acquire)
		time.Sleep(time.Second)
		waiter := testlock.Start(t, newMulti(t, waiting, []string{"/a", "/b"}).Acquire)
		time.Sleep(time.Second)
		queue := queued(t, other, "/b", 2)
		require.NoError(t, srv.Delete(queue[1].Node))
		require.NoError(t, first.Release())
		time.Sleep(time.Second)
		require.NoError(t, errors.Join(second.Release(), next.Won(t).Release()))
		require.NoError(t, waiter.Won(t).Release())
	})
}

type contender struct {
	t      *testing.T
	model  *testlock.Model
	random *rand.Rand
	client *framework.Client
}

// want returns some of the locks in random order, and a lock of them made in one of the possible
// ways.
func (c *contender) want() (paths []string, lock recipes.Locker) {
	for _, i := range c.random.Perm(len(simPaths))[:1+c.random.IntN(len(simPaths))] {
		paths = append(paths, simPaths[i])
	}
	if len(paths) == 1 && c.random.IntN(2) == 0 {
		return paths, newMutex(c.t, c.client, paths[0])
	}
	return paths, newMulti(c.t, c.client, paths)
}

func (c *contender) run() {
	for done := 0; done < turns; {
		paths, lock := c.want()
		hold, err := lock.Acquire(context.Background())
		if err != nil {
			continue
		}
		for i, path := range paths {
			c.model.Begin(testlock.Use{
				Lock: path, Nodes: hold.Paths()[i : i+1], Token: hold.Tokens()[i], Err: hold.Err,
			})
		}
		select {
		case <-time.After(testlock.HoldTime(c.random, simTimeout)):
		case <-hold.Done():
		}
		_ = hold.Release()
		done++
	}
}
