package counter_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/history"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simTimeout = 4 * time.Second
	simClients = 3
	simUpdates = 9 // of each client; 2 bits each
	simQuiet   = 3*simTimeout + 10*time.Second
	// others is what a program adds that is not docent, above the bits of the updates.
	others = 1 << (2 * simClients * simUpdates)
)

var simPolicies = []retry.Policy{retry.Forever(100 * time.Millisecond), retry.Times(3, 100*time.Millisecond)}

// Networks flap, sessions are lost, servers restart and lag, nodes of clients are deleted, contexts
// end, and another program writes too. Each update has a digit of its own in the sum. It is 1 for
// updates that were reported as applied, 0 for those reported as not applied, and one of both for
// those with an unknown outcome.
func TestSimulatedUpdatesAreAppliedOnceOrNotAtAll(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpMulti, fault.OpMulti, fault.OpCreate, fault.OpGetData, fault.OpConnect,
		fault.AnyOp)
	var outcomes tally
	t.Cleanup(func() { t.Log(outcomes.String()) })
	sim.Run(t, 60, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		connect := srv.MemAddr()
		ensemble := random.IntN(2) == 0
		if ensemble {
			connect = sim.Ensemble(srv, random, 2)
		}
		w := &simWorld{t: t, srv: srv, random: random, outcomes: &outcomes, current: !ensemble}
		faults, model := aim.Faults(t, srv, random, simTimeout), testlock.NewModel(t, srv)
		var using sync.WaitGroup
		for i := range simClients {
			policy := simPolicies[random.IntN(len(simPolicies))]
			c := testlock.Client(t, srv.Client(fmt.Sprint("c", i)), connect, random, simTimeout,
				framework.WithRetry(policy))
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			using.Go(func() { w.use(c, i, own) })
		}
		done := make(chan struct{})
		go func() {
			using.Wait()
			close(done)
		}()
		w.harm(done, func() {
			switch n := random.IntN(8); {
			case n == 0 && ensemble:
				sim.Disturb(srv, random, simTimeout)
			case n == 0 && random.IntN(2) == 0:
				_ = srv.Restart()
			case n == 1:
				w.write()
			default:
				faults.Harm(srv.Client(fmt.Sprint("c", random.IntN(simClients))), model, path)
			}
		})
		sim.Calm(srv)
		srv.ResetFaults()
		time.Sleep(simQuiet)
		w.check()
	})
}

// simWorld is the updates of all clients.
type simWorld struct {
	t        *testing.T
	srv      *zktest.Server
	random   *rand.Rand
	outcomes *tally
	written  int  // number of writes by the other program
	current  bool // reads are of the last write: there is one server
	history  history.Recorder
}

// use makes the updates of one client, some of them at the same time.
func (w *simWorld) use(c *framework.Client, number int, random *rand.Rand) {
	a, err := counter.NewAtomic(c, path)
	if err != nil {
		w.t.Error(err)
		return
	}
	v, err := counter.NewValue(c, path, make([]byte, 8))
	if err != nil {
		w.t.Error(err)
		return
	}
	var running sync.WaitGroup
	for i := range simUpdates {
		digit := number*simUpdates + i
		kind, within := random.IntN(4), time.Duration(random.Int64N(int64(3*simTimeout)))
		if random.IntN(3) == 0 {
			within = time.Hour / 2
		}
		if kind == 0 {
			running.Wait()
		}
		end := time.Now().Add(within)
		if random.IntN(2) == 0 {
			within += time.Second // after the end of a late context
		}
		running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			late := lateContext{ctx, func() bool { return time.Now().After(end) }}
			outcome, err := w.update(late, a, v, kind, 1<<(2*digit))
			w.outcomes.add(outcome, err)
			if !isExplained(outcome, err) {
				w.t.Errorf("no end of an update: %v, %v", outcome, err)
			}
		})
		if random.IntN(2) == 0 {
			running.Wait()
			time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		}
	}
	running.Wait()
}

// isExplained reports whether an update may end so: with the end of its context, for want of a
// connection, or because an answer is missing.
func isExplained(outcome framework.Outcome, err error) bool {
	return err == nil || outcome == framework.Unknown || errors.Is(err, context.DeadlineExceeded) ||
		framework.IsTransient(err)
}

// update adds a digit.
func (w *simWorld) update(
	ctx context.Context, a *counter.Atomic, v *counter.Value, kind int, digit int64,
) (framework.Outcome, error) {
	var now int64
	var err error
	var set func() (bool, error)
	switch kind {
	case 0:
		call := w.history.Call()
		now, err = a.Get(ctx)
		w.read(call, now, err)
		set = func() (bool, error) { return a.CompareAndSet(ctx, now, now+digit) }
	case 1:
		var old counter.Versioned[[]byte]
		call := w.history.Call()
		if old, err = v.GetVersioned(ctx); err == nil {
			now = int64(binary.BigEndian.Uint64(old.Value))
		}
		w.read(call, now, err)
		set = func() (bool, error) {
			_, wrote, err := v.CompareAndSet(ctx, old, binary.BigEndian.AppendUint64(nil, uint64(now+digit)))
			return wrote, err
		}
	default:
		call := w.history.Call()
		sum, err := a.Add(ctx, digit)
		return w.record(call, digit, history.Add{Delta: digit, Sum: sum, Known: true}, true, err)
	}
	if err != nil {
		return framework.NotApplied, err
	}
	call := w.history.Call()
	wrote, err := set()
	return w.record(call, digit, history.Swap{Old: now, New: now + digit}, wrote, err)
}

// read records a read.
func (w *simWorld) read(call, value int64, err error) {
	if err == nil && w.current {
		w.history.Return(call, history.Get{Value: value})
	}
}

// record records an update, and returns its outcome. what is the update if there was no error. After
// an error there is no result.
func (w *simWorld) record(call, digit int64, what any, wrote bool, err error) (framework.Outcome, error) {
	if err == nil && !wrote {
		return framework.NotApplied, nil
	}
	outcome := framework.OutcomeOf(err)
	switch {
	case err == nil:
		w.history.Return(call, what)
	case outcome == framework.Applied:
		w.history.Return(call, history.Add{Delta: digit})
	case outcome == framework.Unknown:
		w.history.Unknown(call, history.Add{Delta: digit})
	}
	return outcome, err
}

// write adds as a program without docent does.
func (w *simWorld) write() {
	data, err := w.srv.Get(path)
	if err != nil || len(data) != 8 || w.written > 100 {
		return
	}
	sum, call := int64(binary.BigEndian.Uint64(data))+others, w.history.Call()
	if w.srv.Set(path, binary.BigEndian.AppendUint64(nil, uint64(sum))) == nil {
		w.history.Return(call, history.Add{Delta: others, Sum: sum, Known: true})
		w.written++
	}
}

// harm makes faults until the updates are done.
func (w *simWorld) harm(done <-chan struct{}, fault func()) {
	for range 60 {
		timer := time.NewTimer(time.Duration(w.random.Int64N(int64(time.Second))))
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
		fault()
	}
	sim.Calm(w.srv)
	w.srv.ResetFaults()
	<-done
}

// check reads the sum and checks the history.
func (w *simWorld) check() {
	var sum int64
	call := w.history.Call()
	if w.srv.Exists(path) {
		sum = stored(w.t, w.srv, path)
		children, err := w.srv.Children(path)
		require.NoError(w.t, err)
		require.Empty(w.t, children, "markers are left")
	}
	w.history.Return(call, history.Get{Value: sum})
	require.NoError(w.t, w.history.Check(history.Counter{}))
}

// tally counts outcomes of all seeds.
type tally struct {
	mu                           sync.Mutex
	applied, notApplied, unknown int
	ended                        int // of the unknown ones, those whose context has ended
}

func (c *tally) add(o framework.Outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o {
	case framework.Applied:
		c.applied++
	case framework.NotApplied:
		c.notApplied++
	default:
		c.unknown++
		if errors.Is(err, context.DeadlineExceeded) {
			c.ended++
		}
	}
}

func (c *tally) String() string {
	return fmt.Sprintf("%d applied, %d not applied, %d unknown, %d of these because the context has ended",
		c.applied, c.notApplied, c.unknown, c.ended)
}
