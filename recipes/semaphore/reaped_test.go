package semaphore_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/fault"
)

// The servers may delete the empty directory of the leases as often as it is created, on a busy machine
// many times between its creation and that of the lease.
func TestLeasesThatAreDeletedOftenAreNoError(t *testing.T) {
	const often = 50
	p := testzk.Proxy(t)
	s := newSemaphore(t, testzk.Connected(t, p.Addr()), testzk.Path(t), 2)
	o, ctx := testzk.Observer(t), testzk.Context(t)
	leases := s.Path() + "/leases"
	acquire := p.On(fault.Match{Op: fault.OpMulti, Path: s.Path()}, fault.Hold())
	type result struct {
		hold *recipes.Hold
		err  error
	}
	acquired := make(chan result, 1)
	during, end := context.WithCancel(ctx)
	go func() {
		defer end()
		hold, err := s.Acquire(ctx)
		acquired <- result{hold, err}
	}()
	deleted := 0
	for deleted < often && acquire.Wait(during) == nil {
		held := acquire
		acquire = p.On(fault.Match{Op: fault.OpMulti, Path: s.Path()}, fault.Hold())
		switch err := o.Delete(leases, -1); err {
		case nil:
			deleted++
		default:
			require.ErrorIs(t, err, zk.ErrNoNode)
		}
		held.Release()
	}
	acquire.Release()
	r := <-acquired
	require.NoError(t, r.err, "after %d deletions", deleted)
	require.NoError(t, r.hold.Release())
}
