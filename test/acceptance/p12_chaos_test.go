package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p12Candidates = 3
	p12Parent     = "/p12"
	p12Path       = p12Parent + "/service/leader"
	p12Chaos      = 10 * time.Minute
	// p12Leaderless is how long there may be no leader once everything is well.
	p12Leaderless = bubbleTimeout + 2*time.Second
)

// For ten minutes, sessions of three candidates expire, connections are dropped and fall silent, requests and answers are lost, candidates'
// nodes and their parents are deleted, servers restart, and come back with nothing, so that transaction ids start over: at no moment are
// there two valid terms, and tokens grow. Each time that all is well again somebody leads within the session timeout and 2 s. A leader
// whose term is lost is told why, and no call of it overlaps with its next. At the end every candidate leads again, and nothing is left.
func TestP12_OneLeaderAtMostInTenMinutesOfChaos(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, virtual)
	for kind, stand := range p12Kinds {
		t.Run(kind, func(t *testing.T) {
			sim.Run(t, 3, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				o := &p12Office{t: t, srv: srv, taken: map[string]bool{}, busy: map[string]bool{}, led: map[string]int{}}
				leave := p12Stand(o, stand, random)
				defer leave()
				for began := time.Now(); time.Since(began) < p12Chaos; {
					for range 1 + random.IntN(3) {
						time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
						o.harm(srv.Client(p12Name(random.IntN(p12Candidates))), random)
					}
					srv.ResetFaults()
					o.await(p12Leaderless, "nobody leads", o.someoneLeads)
				}
				o.forget()
				o.await(time.Minute, "somebody is out", func() bool { return len(o.led) == p12Candidates })
				leave()
				require.NotZero(t, o.lost, "nobody lost anything")
				time.Sleep(2 * bubbleTimeout)
				require.Empty(t, o.nodes())
			})
		})
	}
}

func p12Name(i int) string { return fmt.Sprintf("c%d", i) }

// p12Client gives up operations after a while, as is the default: candidates do not.
func p12Client(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	policy := framework.WithRetry(retry.BoundedExponential(100*time.Millisecond, 2*time.Second, 5))
	return bubbleNew(t, srv, srv.MemAddr(), name, append(opts, policy)...)
}

// p12Stand lets all candidates stand until leave is called.
func p12Stand(o *p12Office, stand p12Standing, random *rand.Rand) (leave func()) {
	ctx, cancel := context.WithCancel(o.t.Context())
	var running sync.WaitGroup
	for i := range p12Candidates {
		name := p12Name(i)
		chance := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		pace := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		c := p12Client(o.t, o.srv, name, framework.WithRandom(chance.Int64N))
		running.Go(func() {
			err := stand(ctx, c, p12Path, func(term context.Context, t *leader.Term) { o.lead(ctx, term, name, t, pace) })
			if !errors.Is(err, context.Canceled) {
				o.t.Errorf("%s is out: %v", name, err)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// p12Office is what one candidate at a time may have.
type p12Office struct {
	t   *testing.T
	srv *zktest.Server

	mu    sync.Mutex
	taken map[string]bool // nodes that were taken away out of the blue: their owners cannot know before they are told
	terms []*leader.Term  // that may be valid
	token int64           // the largest one of a valid term
	busy  map[string]bool // who is in a call of lead
	led   map[string]int  // valid terms, by candidate
	lost  int             // terms
}

// lead is one term of a candidate, with the context that ends with it.
func (o *p12Office) lead(standing, term context.Context, name string, t *leader.Term, pace *rand.Rand) {
	o.enter(name, t)
	defer o.leave(name)
	longest := 2 * time.Second
	if pace.IntN(3) == 0 {
		longest = 20 * time.Second
	}
	select {
	case <-time.After(time.Duration(pace.Int64N(int64(longest)))):
	case <-term.Done():
		if standing.Err() == nil {
			o.lose(name, context.Cause(term))
		}
		time.Sleep(time.Duration(pace.Int64N(int64(time.Second / 2)))) // it does not return at once
	}
}

func (o *p12Office) enter(name string, t *leader.Term) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy[name] {
		o.t.Errorf("lead of %s is called while it runs", name)
	}
	o.busy[name] = true
	if !o.valid(t) {
		return
	}
	if o.someoneLeads() {
		o.t.Errorf("%s leads with token %d while somebody else does with %d", name, t.Token(), o.terms[0].Token())
	}
	if t.Token() <= o.token {
		o.t.Errorf("token %d of %s after %d", t.Token(), name, o.token)
	}
	o.terms, o.token = append(o.terms, t), t.Token()
	o.led[name]++
}

func (o *p12Office) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy[name] = false
}

// lose is told why a term has ended before its time.
func (o *p12Office) lose(name string, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost++; !errors.Is(cause, framework.ErrSessionLost) && !errors.Is(cause, recipes.ErrNodeDeleted) {
		o.t.Errorf("%s is told that it has lost the leadership by %v", name, cause)
	}
}

// valid says whether a term takes itself for valid and nobody has taken it away.
func (o *p12Office) valid(t *leader.Term) bool { return t.Err() == nil && !o.taken[t.Path()] }

// someoneLeads forgets terms that have ended, which are never valid again.
func (o *p12Office) someoneLeads() bool {
	o.terms = slices.DeleteFunc(o.terms, func(t *leader.Term) bool { return !o.valid(t) })
	return len(o.terms) > 0
}

// forget makes everybody's turns count from now.
func (o *p12Office) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.led)
}

func (o *p12Office) await(limit time.Duration, failure string, cond func() bool) {
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

// nodes are those of candidates, and of nobody else.
func (o *p12Office) nodes() (all []string) {
	for _, s := range o.srv.Sessions() {
		all = append(all, s.Ephemerals...)
	}
	return all
}

// take does what nodes of candidates go by.
func (o *p12Office) take(action func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.nodes()
	action()
	after := o.nodes()
	for _, node := range before {
		o.taken[node] = o.taken[node] || !slices.Contains(after, node)
	}
}

// harm does one thing to a candidate, to nodes or to the server.
func (o *p12Office) harm(c *zktest.Client, random *rand.Rand) {
	ops := []zktest.Op{zktest.OpCreate, zktest.OpDelete, zktest.OpGetData, zktest.OpGetChildren2, zktest.OpSync, zktest.AnyOp}
	match := zktest.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	outage := func(longest time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(longest)))) }
	switch random.IntN(9) {
	case 0:
		o.take(func() {
			for _, s := range c.Sessions() {
				_ = s.Expire() // unless it is over
			}
		})
	case 1:
		c.Drop()
	case 2:
		o.srv.On(match, zktest.DropBefore())
	case 3:
		o.srv.On(match, zktest.DropAfter())
	case 4:
		c.Cut()
		outage(2 * bubbleTimeout)
		c.Heal()
	case 5:
		if nodes := o.nodes(); len(nodes) > 0 {
			slices.Sort(nodes)
			o.take(func() { _ = o.srv.Delete(nodes[random.IntN(len(nodes))]) }) // unless it is gone
		}
	case 6:
		o.take(func() { _ = o.srv.Delete(p12Parent) }) // and all below it, unless nobody stands
	case 7:
		o.srv.Stop()
		outage(8 * bubbleTimeout)
		o.start()
	case 8:
		o.srv.Stop()
		outage(8 * bubbleTimeout)
		o.take(func() {
			require.NoError(o.t, o.srv.Wipe())
			o.token = 0
		})
		o.start()
	}
}

func (o *p12Office) start() { require.NoError(o.t, o.srv.Start()) }
