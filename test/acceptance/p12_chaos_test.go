package acceptance_test

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
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p12Candidates = 3
	p12Parent     = "/p12"
	p12Path       = p12Parent + "/service/leader"
	p12Chaos      = 10 * time.Minute
	// p12Leaderless is the longest time without a leader once there are no faults.
	p12Leaderless = bubbleTimeout + 2*time.Second
)

// For ten minutes three candidates lose sessions, connections, requests and answers. Their nodes
// and the parents are deleted. Servers restart, also without data, so that transaction ids start
// over. There are never two valid terms, and tokens grow. Whenever the faults end, a candidate
// leads within the session timeout and 2 s. A leader that loses its term is told why, and its calls
// do not overlap. At the end every candidate leads again, and no node is left.
func TestP12_OneLeaderAtMostInTenMinutesOfChaos(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, virtual)
	for kind, candidate := range p12Kinds {
		t.Run(kind, func(t *testing.T) {
			aim := testlock.NewAim(t, fault.OpCreate, fault.OpDelete, fault.OpGetData, fault.OpGetChildren2,
				fault.OpMulti, fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
			sim.Run(t, 3, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				o := &p12Terms{t: t, srv: srv, busy: map[string]bool{}, led: map[string]int{}}
				o.model = testlock.NewModel(t, srv)
				faults := aim.Faults(t, srv, random, bubbleTimeout)
				leave := p12Start(o, candidate, random)
				defer leave()
				for began := time.Now(); time.Since(began) < p12Chaos; {
					for range 1 + random.IntN(3) {
						time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
						o.harm(srv.Client(p12Name(random.IntN(p12Candidates))), faults, random)
					}
					srv.ResetFaults()
					o.await(p12Leaderless, "no candidate leads", func() bool { return o.model.Valids() > 0 })
				}
				o.forget()
				o.await(time.Minute, "a candidate does not lead", func() bool { return len(o.led) == p12Candidates })
				leave()
				require.NotZero(t, o.lost, "no term was lost")
				time.Sleep(2 * bubbleTimeout)
				require.Empty(t, o.model.Nodes(""))
			})
		})
	}
}

func p12Name(i int) string { return fmt.Sprintf("c%d", i) }

// p12Client returns a client whose operations give up after a while, as they do by default.
// Candidates do not give up.
func p12Client(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	policy := framework.WithRetry(retry.BoundedExponential(100*time.Millisecond, 2*time.Second, 5))
	return bubbleNew(t, srv, srv.MemAddr(), name, append(opts, policy)...)
}

// p12Start runs all candidates until leave is called.
func p12Start(o *p12Terms, candidate p12Candidate, random *rand.Rand) (leave func()) {
	ctx, cancel := context.WithCancel(o.t.Context())
	var running sync.WaitGroup
	for i := range p12Candidates {
		name := p12Name(i)
		chance := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		pace := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		c := p12Client(o.t, o.srv, name, framework.WithRandom(chance.Int64N))
		running.Go(func() {
			err := candidate(ctx, c, p12Path, func(term context.Context, t *leader.Term) {
				o.lead(ctx, term, name, t, pace)
			})
			if !errors.Is(err, context.Canceled) {
				o.t.Errorf("%s has ended: %v", name, err)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// p12Terms checks that one candidate at a time leads.
type p12Terms struct {
	t     *testing.T
	srv   *zktest.Server
	model *testlock.Model

	mu   sync.Mutex
	busy map[string]bool // candidates in a call of lead
	led  map[string]int  // number of valid terms, by candidate
	lost int             // number of lost terms
}

// lead is one term of a candidate, with the context that ends with the term.
func (o *p12Terms) lead(ctx, term context.Context, name string, t *leader.Term, pace *rand.Rand) {
	o.enter(name, t)
	defer o.leave(name)
	longest := 2 * time.Second
	if pace.IntN(3) == 0 {
		longest = 20 * time.Second
	}
	select {
	case <-time.After(time.Duration(pace.Int64N(int64(longest)))):
	case <-term.Done():
		if ctx.Err() == nil {
			o.lose(name, context.Cause(term))
		}
		time.Sleep(time.Duration(pace.Int64N(int64(time.Second / 2)))) // the call does not return at once
	}
}

func (o *p12Terms) enter(name string, t *leader.Term) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy[name] {
		o.t.Errorf("lead of %s is called while it runs", name)
	}
	o.busy[name] = true
	if o.model.Begin(testlock.Use{Nodes: []string{t.Path()}, Token: t.Token(), Err: t.Err}) {
		o.led[name]++
	}
}

func (o *p12Terms) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy[name] = false
}

// lose notes a term that was lost, and checks the cause.
func (o *p12Terms) lose(name string, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost++; !errors.Is(cause, framework.ErrSessionLost) && !errors.Is(cause, recipes.ErrNodeDeleted) {
		o.t.Errorf("%s lost the leadership with the cause %v", name, cause)
	}
}

// forget makes all counts of terms start at 0.
func (o *p12Terms) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.led)
}

func (o *p12Terms) await(limit time.Duration, failure string, cond func() bool) {
	o.t.Helper()
	met := func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return cond()
	}
	for end := time.Now().Add(limit); !met(); time.Sleep(10 * time.Millisecond) {
		require.True(o.t, time.Now().Before(end), "%s within %v\n%s", failure, limit, o.srv.Tree())
	}
}

// harm applies one random fault to a candidate, to nodes or to the server, and waits for the end of
// the fault.
func (o *p12Terms) harm(c *zktest.Client, faults *testlock.Faults, random *rand.Rand) {
	outage := func(longest time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(longest)))) }
	switch random.IntN(11) {
	case 0:
		o.model.Expire(c)
	case 1:
		o.model.DeleteNode(random, p12Path)
	case 2:
		o.model.ChangeNode(random, p12Path)
	case 3:
		o.model.Take(func() { _ = o.srv.Delete(p12Parent) }) // and all nodes below it; fails if there are none
	case 4:
		o.srv.Stop()
		outage(8 * bubbleTimeout)
		o.start()
	case 5:
		o.srv.Stop()
		outage(8 * bubbleTimeout)
		o.model.Take(func() { require.NoError(o.t, o.srv.Wipe()) })
		o.model.Forget()
		o.start()
	default:
		time.Sleep(faults.Strike(c))
	}
}

func (o *p12Terms) start() { require.NoError(o.t, o.srv.Start()) }
