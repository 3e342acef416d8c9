package condition_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simClients = 3
	simWorkers = 2 // of each client
	simTurns   = 5 // of each worker
	simTimeout = 4 * time.Second
	simFaults  = 8
	// quiet is long enough for everything that the faults have caused.
	quiet = 3*simTimeout + 5*time.Second
)

// reaped makes a server delete empty containers soon.
var reaped = zktest.WithConfig("znode.container.checkIntervalMs", "1000")

// Waiters and signals of several clients, with faults of connections and sessions. The ledger checks
// each transaction: no waiter loses its signal, no signal serves two waiters or one that came later,
// and waiters take signals in the order in which they came. When all is quiet, no waiter that has a
// signal still waits. In the end nothing is left.
func TestSimulatedWaiters(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpGetChildren2, fault.OpGetData, fault.OpDelete, fault.OpMulti,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		w := &world{t: t, srv: srv, random: random, ledger: newLedger(t, srv)}
		connect := srv.MemAddr()
		if random.IntN(2) == 0 {
			connect = sim.Ensemble(srv, random, 2)
		}
		w.run(aim, connect)
	}, reaped)
}

type world struct {
	t       *testing.T
	srv     *zktest.Server
	random  *rand.Rand
	ledger  *ledger
	workers []*worker
}

func (w *world) run(aim *testlock.Aim, connect string) {
	calm := w.worker("calm", w.srv.MemAddr())
	var working sync.WaitGroup
	for i := range simClients {
		first := w.worker(fmt.Sprintf("c%d", i), connect)
		for j := range simWorkers {
			one := *first
			one.id, one.random = fmt.Sprintf("c%d-%d", i, j), rand.New(rand.NewPCG(w.random.Uint64(), 0))
			w.workers = append(w.workers, &one)
			working.Go(one.work)
		}
	}
	faults, model := aim.Faults(w.t, w.srv, w.random, simTimeout), testlock.NewModel(w.t, w.srv)
	for range simFaults {
		time.Sleep(time.Duration(w.random.Int64N(int64(2 * time.Second))))
		link := w.srv.Client(fmt.Sprintf("c%d", w.random.IntN(simClients)))
		switch w.random.IntN(8) {
		case 0:
			model.Expire(link)
		case 1:
			sim.Disturb(w.srv, w.random, simTimeout)
		case 2:
			if w.random.IntN(2) == 0 {
				_ = w.srv.Restart()
			}
		default:
			faults.Strike(link)
		}
	}
	time.Sleep(2 * simTimeout)
	sim.Calm(w.srv)
	w.srv.ResetFaults()
	done := make(chan struct{})
	go func() { defer close(done); working.Wait() }()
	for ended := false; !ended; {
		time.Sleep(quiet)
		w.ledger.checkQuiet()
		calm.act(calm.cond.Broadcast)
		select {
		case <-done:
			ended = true
		default:
		}
	}
	time.Sleep(quiet)
	calm.act(calm.cond.Broadcast) // deletes useless signals
	w.ledger.checkEmpty()
	for _, c := range append(w.workers, calm) {
		require.NoError(w.t, c.client.Close())
	}
	time.Sleep(quiet)
	require.Empty(w.t, w.srv.Tree())
}

// worker waits and signals.
type worker struct {
	t      *testing.T
	id     string
	ledger *ledger
	random *rand.Rand
	client *framework.Client
	mutex  *mutex.Mutex
	cond   *condition.Condition
}

func (w *world) worker(name, connect string) *worker {
	one := &worker{t: w.t, id: name, ledger: w.ledger, random: rand.New(rand.NewPCG(w.random.Uint64(), 0))}
	one.client = testlock.Client(w.t, w.srv.Client(name), connect, one.random, simTimeout)
	var opts []mutex.Option
	if one.random.IntN(2) == 0 {
		opts = append(opts, mutex.WithLocalHandoff(mutex.Handoff{Streak: 3, Span: time.Second}))
	}
	var err error
	one.mutex, err = mutex.New(one.client, "/p/lock", opts...)
	require.NoError(w.t, err)
	one.cond, err = condition.New(one.mutex, ledgerDir)
	require.NoError(w.t, err)
	return one
}

func (w *worker) work() {
	for turn := range simTurns {
		time.Sleep(w.upTo(2 * time.Second))
		switch w.random.IntN(7) {
		case 0:
			w.act(w.cond.Broadcast)
		case 1, 2:
			w.act(w.cond.Signal)
		case 3:
			w.wait(fmt.Sprintf("%s %s %d", w.id, within, turn))
		default:
			w.wait(fmt.Sprintf("%s wait %d", w.id, turn))
		}
	}
}

// within is in the ids of waits that are limited.
const within = "within"

func (w *worker) upTo(most time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(most)))
}

// act signals under the lock.
func (w *worker) act(send func(context.Context, *recipes.Hold) error) {
	for {
		hold, err := w.mutex.Acquire(context.Background())
		if err != nil {
			continue
		}
		time.Sleep(w.upTo(100 * time.Millisecond))
		err = send(context.Background(), hold)
		if err != nil && hold.Err() == nil && !errors.Is(err, framework.ErrSessionLost) {
			w.t.Errorf("%s cannot signal: %v", w.id, err)
		}
		_ = hold.Release()
		if err == nil {
			return
		}
	}
}

// wait waits until there was a signal, its time is over or its context has ended.
func (w *worker) wait(id string) {
	cond, err := condition.New(w.mutex, ledgerDir, condition.WithData([]byte(id)))
	if err != nil {
		w.t.Error(err)
		return
	}
	hold, err := w.mutex.Acquire(context.Background())
	if err != nil {
		return
	}
	time.Sleep(w.upTo(100 * time.Millisecond))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.random.IntN(3) == 0 {
		defer time.AfterFunc(w.upTo(5*time.Second), cancel).Stop()
	}
	w.ledger.expect(hold, id, ctx)
	signaled, next := true, hold
	if strings.Contains(id, within) {
		next, signaled, err = cond.WaitWithin(ctx, hold, w.upTo(5*time.Second))
	} else {
		next, err = cond.Wait(ctx, hold)
	}
	w.ledger.forget(hold)
	switch {
	case err == nil:
		w.ledger.checkLeft(id, ctx, next, signaled)
	case errors.Is(err, framework.ErrSessionLost), errors.Is(err, recipes.ErrNodeDeleted), ctx.Err() != nil:
		if next != hold {
			w.t.Errorf("%s: another hold with the error %v", id, err)
		}
	default:
		w.t.Errorf("%s: %v", id, err)
	}
	if err == nil {
		time.Sleep(w.upTo(100 * time.Millisecond))
	}
	_ = next.Release()
}

const ledgerDir = "/p/condition"

// ledger is the state of a condition by the server's transactions. It knows for each signal the
// waiters that were there, whatever the name of the signal says.
type ledger struct {
	t *testing.T

	mu      sync.Mutex
	waiters []entry  // in the order in which they came
	signals []sent   // in the order in which they came
	taken   []string // the ids of waiters that have left with a signal
	without []string // those of waiters that had none when they left
	waits   map[string]waiting
	log     []string
}

// waiting is a Wait that releases a lock node.
type waiting struct {
	id        string
	ctx, work context.Context // of the Wait; of the hold
}

type entry struct{ node, id string }

type sent struct {
	node  string
	all   bool
	there []string // nodes of waiters
}

func newLedger(t *testing.T, srv *zktest.Server) *ledger {
	l := &ledger{t: t, waits: map[string]waiting{}}
	srv.OnCommit(l.commit)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(l.log, "\n"))
		}
	})
	return l
}

// signaledLocked returns the waiters that have a signal, in the order in which they came: broadcasts
// serve all that were there, and each other signal serves the first that was there and has none.
func (l *ledger) signaledLocked() []string {
	served := map[string]bool{}
	for _, s := range l.signals {
		for _, node := range s.there {
			served[node] = served[node] || s.all
		}
	}
	for _, s := range l.signals {
		for _, w := range l.waiters {
			if !s.all && !served[w.node] && slices.Contains(s.there, w.node) {
				served[w.node] = true
				break
			}
		}
	}
	var all []string
	for _, w := range l.waiters {
		if served[w.node] {
			all = append(all, w.node)
		}
	}
	return all
}

// expect notes that a Wait begins.
func (l *ledger) expect(hold *recipes.Hold, id string, ctx context.Context) {
	work := hold.Context(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits[hold.Path()] = waiting{id, ctx, work}
}

// forget notes that a Wait has ended.
func (l *ledger) forget(hold *recipes.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waits, hold.Path())
}

// commit records a transaction. The server's lock is held.
func (l *ledger) commit(zxid int64, changes []zktest.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tx := transaction{before: l.signaledLocked(), covered: l.coveredLocked()}
	for _, c := range changes {
		if path.Dir(c.Path) == ledgerDir {
			l.log = append(l.log, fmt.Sprintf("%d %d %s %s", zxid, c.Kind, c.Path, c.Data))
			l.changeLocked(&tx, c)
		}
	}
	l.checkLocked(tx)
	for _, c := range changes {
		if w, ok := l.waits[c.Path]; ok && c.Kind == zktest.NodeDeleted && w.ctx.Err() == nil &&
			errors.Is(context.Cause(w.work), recipes.ErrNotHeld) &&
			!slices.ContainsFunc(append(tx.gone, l.waiters...), func(e entry) bool { return e.id == w.id }) {
			l.t.Errorf("%s has released the lock and has no node", w.id)
		}
	}
}

// transaction is what one transaction has done.
type transaction struct {
	before  []string // waiters that had a signal
	covered []string // those that had one of a broadcast
	gone    []entry  // waiters that were deleted
	used    int      // signals that were deleted
	sent    bool
}

func (l *ledger) changeLocked(tx *transaction, c zktest.Change) {
	waiter := strings.Contains(c.Path, "wait-")
	switch {
	case c.Kind == zktest.NodeCreated && waiter:
		l.waiters = append(l.waiters, entry{c.Path, string(c.Data)})
	case c.Kind == zktest.NodeCreated:
		s := sent{node: c.Path, all: strings.Contains(c.Path, "all-")}
		for _, w := range l.waiters {
			s.there = append(s.there, w.node)
		}
		l.signals, tx.sent = append(l.signals, s), true
	case c.Kind == zktest.NodeDeleted && waiter:
		i := slices.IndexFunc(l.waiters, func(w entry) bool { return w.node == c.Path })
		tx.gone, l.waiters = append(tx.gone, l.waiters[i]), slices.Delete(l.waiters, i, i+1)
	case c.Kind == zktest.NodeDeleted:
		l.signals = slices.DeleteFunc(l.signals, func(s sent) bool { return s.node == c.Path })
		tx.used++
	}
}

// coveredLocked returns the waiters that have a signal of a broadcast.
func (l *ledger) coveredLocked() (nodes []string) {
	for _, s := range l.signals {
		if s.all {
			nodes = append(nodes, s.there...)
		}
	}
	return nodes
}

// checkLocked compares the waiters that have a signal before and after a transaction.
func (l *ledger) checkLocked(tx transaction) {
	after := l.signaledLocked()
	isGone := func(node string) bool {
		return slices.ContainsFunc(tx.gone, func(w entry) bool { return w.node == node })
	}
	for _, node := range tx.before {
		if !isGone(node) && !slices.Contains(after, node) {
			l.t.Errorf("%s has lost its signal", node)
		}
	}
	gained := slices.DeleteFunc(slices.Clone(after), func(node string) bool { return slices.Contains(tx.before, node) })
	switch {
	case tx.sent:
	case len(tx.gone) == 0 && len(gained) > 0:
		l.t.Errorf("from nowhere, a signal for %v", gained)
	case len(tx.gone) == 1 && !slices.Contains(tx.before, tx.gone[0].node):
		l.without = append(l.without, tx.gone[0].id)
	case len(tx.gone) == 1 && (tx.used > 0 || slices.Contains(tx.covered, tx.gone[0].node)):
		gone := tx.gone[0]
		if tx.used > 0 && tx.before[0] != gone.node && !strings.Contains(gone.id, within) {
			l.t.Errorf("%v has taken a signal before its turn, the first one is for %v", gone, tx.before)
		}
		if len(gained) > 0 {
			l.t.Errorf("%v has taken no signal, and %v has got it", gone, gained)
		}
		l.taken = append(l.taken, gone.id)
	}
}

// checkLeft checks that a waiter that has a valid hold has taken a signal, or has left without one
// when it had none.
func (l *ledger) checkLeft(id string, ctx context.Context, hold *recipes.Hold, signaled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.without
	if signaled {
		left = l.taken
	}
	if ctx.Err() == nil && hold.Err() == nil && !slices.Contains(left, id) {
		l.t.Errorf("%s goes on and says signaled=%v", id, signaled)
	}
}

// checkQuiet checks that no waiter that has a signal still waits.
func (l *ledger) checkQuiet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if signaled := l.signaledLocked(); len(signaled) > 0 {
		l.t.Errorf("waiters have signals and wait: %v", signaled)
	}
}

// checkEmpty checks that nothing is left.
func (l *ledger) checkEmpty() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiters)+len(l.signals) > 0 {
		l.t.Errorf("left: %v %v", l.waiters, l.signals)
	}
}
