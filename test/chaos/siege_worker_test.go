package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// The locks of a siege. Holders that exclude all others write their tokens to a node, one for each lock.
const (
	siegeMutex    = "/siege/mutex"
	siegeBusy     = "/siege/busy"
	siegeRW       = "/siege/rw"
	siegePermits  = "/siege/permits"
	siegeElection = "/siege/election"
)

// siegeLines are the parents of the nodes of holders and waiters.
var siegeLines = []string{
	siegeMutex, siegeBusy, siegeRW, siegePermits + "/leases", siegePermits + "/locks", siegeElection,
}

// siegeLocks are all locks.
var siegeLocks = []string{siegeMutex, siegeBusy, siegeRW, siegePermits, siegeElection}

// written returns the path of the node that the holders of a lock write to.
func written(lock string) string { return "/written" + strings.ReplaceAll(lock, "/", "-") }

// The orders for a worker, and kinds of its reports.
const (
	orderGo     = "go"     // contend
	orderDrain  = "drain"  // take one more turn that was begun, and rest
	orderCancel = "cancel" // give up what was begun, and rest
	orderShow   = "show"   // tell what is known of the servers
	kindResting = "resting"
	kindError   = "error" // an error that must not be
)

// acquirer is one way to take a lock.
type acquirer struct {
	kind, lock string
	acquire    func(ctx context.Context) (*recipes.Hold, error)
}

// siegeWork contends for all locks, and rests, as its orders say. It follows what it contends for, and
// the subtree, and it keeps nodes.
func siegeWork(ctx context.Context, w *worker) error {
	all, err := acquirers(w.client)
	if err != nil {
		return err
	}
	election, err := leader.New(w.client, siegeElection)
	if err != nil {
		return err
	}
	f, err := follow(ctx, w)
	if err != nil {
		return err
	}
	if err := f.watchLocks(ctx); err != nil {
		return err
	}
	var current *round
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case order := <-w.orders:
			switch order {
			case orderGo:
				current = startRound(ctx, w, all, election)
				current.change(f)
			case orderShow:
				f.show(ctx)
			default:
				current.finish(order == orderCancel)
				w.report(w.rest())
			}
		}
	}
}

// rest returns the report of a worker that has no hold and waits for none.
func (w *worker) rest() turn {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := w.client.Session(ctx)
	if err != nil {
		return turn{Kind: kindResting, Lost: err.Error()}
	}
	return turn{Kind: kindResting, Session: session.ID(), Granted: session.Timeout()}
}

func acquirers(c *framework.Client) ([]acquirer, error) {
	quiet, err1 := mutex.New(c, siegeMutex)
	busy, err2 := mutex.New(c, siegeBusy)
	rw, err3 := rwlock.New(c, siegeRW)
	sem, err4 := semaphore.New(c, siegePermits, permits)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return []acquirer{
		{kindMutex, siegeMutex, quiet.Acquire},
		{kindMutex, siegeBusy, busy.Acquire},
		{kindMutex, siegeBusy, busy.Acquire},
		{kindRead, siegeRW, rw.Read().Acquire},
		{kindWrite, siegeRW, rw.Write().Acquire},
		{kindPermit, siegePermits, sem.Acquire},
		{kindPermit, siegePermits, sem.Acquire},
	}, nil
}

// round is what a worker does between two rests.
type round struct {
	w             *worker
	waiting       context.Context // of acquires
	cancelWaiting context.CancelFunc
	leading       context.Context // of the election, and of holds
	cancelLeading context.CancelFunc
	over          chan struct{} // closed when no further turn is to begin, and no turn is to go on
	running       sync.WaitGroup
}

func startRound(ctx context.Context, w *worker, all []acquirer, election *leader.Election) *round {
	b := &round{w: w, over: make(chan struct{})}
	b.waiting, b.cancelWaiting = context.WithCancel(ctx)
	b.leading, b.cancelLeading = context.WithCancel(ctx)
	for _, a := range all {
		b.running.Go(func() { b.contend(a) })
	}
	b.running.Go(func() {
		err := election.Run(b.leading, func(ctx context.Context, term *leader.Term) error {
			t := b.hold(ctx, term, kindTerm, siegeElection)
			b.w.report(t)
			return nil
		})
		b.check(err, siegeElection)
	})
	return b
}

// finish returns when all have come to rest.
func (b *round) finish(giveUp bool) {
	close(b.over)
	b.cancelLeading()
	if giveUp {
		b.cancelWaiting()
	}
	b.running.Wait()
	b.cancelWaiting()
}

func (b *round) ended() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

// contend takes turns. Every second attempt is given up after a while.
func (b *round) contend(a acquirer) {
	for !b.ended() {
		ctx, cancel := b.waiting, context.CancelFunc(func() {})
		if rand.N(2) == 0 {
			ctx, cancel = context.WithTimeout(b.waiting, rand.N(300*time.Millisecond))
		}
		called := now()
		hold, err := a.acquire(ctx)
		cancel()
		if err != nil {
			b.check(err, a.lock)
		} else {
			t := b.hold(b.waiting, hold, a.kind, a.lock)
			t.Called = called
			if err := hold.Release(); err != nil {
				t.Release = err.Error()
			}
			b.w.report(t)
		}
		b.pause(rand.N(40 * time.Millisecond))
	}
}

func (b *round) pause(d time.Duration) {
	select {
	case <-time.After(d): // the workload
	case <-b.over:
	}
}

// guarded is a hold or a term.
type guarded interface {
	holding
	Guard(ctx context.Context, ops ...framework.Op) ([]framework.Result, error)
}

// hold keeps the lock for a while, which is seldom long, and writes its token.
func (b *round) hold(ctx context.Context, h guarded, kind, lock string) turn {
	length := rand.N(10 * time.Millisecond)
	if rand.N(15) == 0 {
		length = rand.N(8 * time.Second)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(b.leading, cancel) // with the round
	defer stop()

	wrote := make(chan int64, 1)
	go func() { wrote <- write(ctx, h, kind, lock) }()
	t := during(ctx, h, length)
	t.Kind, t.Lock, t.Wrote = kind, lock, <-wrote
	return t
}

// write writes the token, and returns the transaction that did, or 0.
func write(ctx context.Context, h guarded, kind, lock string) int64 {
	if kind == kindRead || kind == kindPermit {
		return 0
	}
	results, err := h.Guard(ctx, framework.SetOp(written(lock), []byte(strconv.FormatInt(h.Token(), 10)), -1))
	if err != nil || len(results) == 0 || results[0].Stat == nil {
		return 0
	}
	return results[0].Stat.Mzxid
}

// change has a worker change the subtree, and what it keeps.
func (b *round) change(f *follower) {
	b.running.Go(func() { f.writer.run(b.waiting, b.over) })
	for _, r := range f.kept {
		b.running.Go(func() { b.check(r.churn(b.waiting, b.over), r.kind) })
	}
}

// check reports an error that no fault explains.
func (b *round) check(err error, lock string) {
	if !isExpected(err) {
		b.w.report(turn{Kind: kindError, Lock: lock, Lost: err.Error()})
	}
}

// isExpected reports whether faults explain an error, or one of expected is the reason.
func isExpected(err error, expected ...error) bool {
	expected = append(expected, context.Canceled, context.DeadlineExceeded, recipes.ErrNotAcquired,
		framework.ErrNotConnected)
	return err == nil || framework.IsTransient(err) ||
		slices.ContainsFunc(expected, func(target error) bool { return errors.Is(err, target) })
}
