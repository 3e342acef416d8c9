package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
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

// What the besieged contend for. Beside each lock that one holder has at a time there is a node that the holder writes its token to.
const (
	siegeMutex    = "/siege/mutex"
	siegeBusy     = "/siege/busy"
	siegeRW       = "/siege/rw"
	siegePermits  = "/siege/permits"
	siegeElection = "/siege/election"
)

// siegeLines are the nodes below which a hold, or a place in line, is a node.
var siegeLines = []string{siegeMutex, siegeBusy, siegeRW, siegePermits + "/leases", siegePermits + "/locks", siegeElection}

// siegeLocks are all locks.
var siegeLocks = []string{siegeMutex, siegeBusy, siegeRW, siegePermits, siegeElection}

// written is the node that the holders of a lock write to.
func written(lock string) string { return "/written" + strings.ReplaceAll(lock, "/", "-") }

// What a worker is told, and what it reports.
const (
	orderGo     = "go"     // contend
	orderDrain  = "drain"  // take one more turn that was begun, and rest
	orderCancel = "cancel" // give up what was begun, and rest
	kindResting = "resting"
	kindError   = "error" // an error that must not be
)

// acquirer is one way to take a lock.
type acquirer struct {
	kind, lock string
	acquire    func(ctx context.Context) (*recipes.Hold, error)
}

// besieged contends for all locks, rests, and goes on, as it is told.
func besieged(ctx context.Context, w *worker) error {
	crowd, err := acquirers(w.client)
	if err != nil {
		return err
	}
	election, err := leader.New(w.client, siegeElection)
	if err != nil {
		return err
	}
	var round *bout
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case order := <-w.orders:
			if order == orderGo {
				round = startBout(ctx, w, crowd, election)
				continue
			}
			round.finish(order == orderCancel)
			w.report(w.rest())
		}
	}
}

// rest is what a worker reports that has no hold and waits for none.
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

// bout is the time between two rests.
type bout struct {
	w        *worker
	patience context.Context // ends what waits
	giveUp   context.CancelFunc
	leading  context.Context // ends at once when the bout does: an election has no last turn
	stand    context.CancelFunc
	over     chan struct{} // closed when no further turn is to begin, and no turn is to go on
	running  sync.WaitGroup
}

func startBout(ctx context.Context, w *worker, crowd []acquirer, election *leader.Election) *bout {
	b := &bout{w: w, over: make(chan struct{})}
	b.patience, b.giveUp = context.WithCancel(ctx)
	b.leading, b.stand = context.WithCancel(ctx)
	for _, a := range crowd {
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
func (b *bout) finish(giveUp bool) {
	close(b.over)
	b.stand()
	if giveUp {
		b.giveUp()
	}
	b.running.Wait()
	b.giveUp()
}

func (b *bout) ended() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

// contend takes turns. Every second attempt is given up after a while.
func (b *bout) contend(a acquirer) {
	for !b.ended() {
		ctx, cancel := b.patience, context.CancelFunc(func() {})
		if rand.N(2) == 0 {
			ctx, cancel = context.WithTimeout(b.patience, rand.N(300*time.Millisecond))
		}
		hold, err := a.acquire(ctx)
		cancel()
		if err != nil {
			b.check(err, a.lock)
		} else {
			t := b.hold(b.patience, hold, a.kind, a.lock)
			if err := hold.Release(); err != nil {
				t.Release = err.Error()
			}
			b.w.report(t)
		}
		b.pause(rand.N(40 * time.Millisecond))
	}
}

func (b *bout) pause(d time.Duration) {
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

// hold has the lock for a while, which is seldom long, and writes its token down.
func (b *bout) hold(ctx context.Context, h guarded, kind, lock string) turn {
	length := rand.N(10 * time.Millisecond)
	if rand.N(15) == 0 {
		length = rand.N(8 * time.Second)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(b.leading, cancel) // with the bout
	defer stop()

	wrote := make(chan int64, 1)
	go func() { wrote <- write(ctx, h, kind, lock) }()
	t := during(ctx, h, length)
	cancel()
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

// check reports an error that no fault explains.
func (b *bout) check(err error, lock string) {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case errors.Is(err, recipes.ErrNotAcquired), errors.Is(err, framework.ErrNotConnected), framework.IsTransient(err):
	default:
		b.w.report(turn{Kind: kindError, Lock: lock, Lost: err.Error()})
	}
}
