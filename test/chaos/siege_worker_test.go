package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// The orders for a worker, and kinds of its reports.
const (
	orderGo     = "go "    // and the path of the counter of the round: contend
	orderDrain  = "drain"  // take one more turn that was begun, and rest
	orderCancel = "cancel" // give up what was begun, and rest
	orderShow   = "show"   // tell what is known of the servers
	kindResting = "resting"
	kindError   = "error"  // an error that must not be
	kindKilled  = "killed" // the process was killed: what follows is of another one
)

// siegeWork contends for all locks, and rests, as its orders say. It follows what it contends for, and
// the subtree, and it keeps nodes.
func siegeWork(ctx context.Context, w *worker) error {
	all, err := acquirers(w.client)
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
			path, begin := strings.CutPrefix(order, orderGo)
			switch {
			case begin:
				current = startRound(ctx, w, all, path)
				current.change(f)
			case order == orderShow:
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

func startRound(ctx context.Context, w *worker, all []acquirer, counter string) *round {
	b := &round{w: w, over: make(chan struct{})}
	b.waiting, b.cancelWaiting = context.WithCancel(ctx)
	b.leading, b.cancelLeading = context.WithCancel(ctx)
	for _, a := range all {
		b.start(func(c *contender) { c.contend(a) })
	}
	b.start(func(c *contender) { c.check(c.standElection(), siegeElection) })
	b.start(func(c *contender) { c.check(c.standLatch(), siegeLatch) })
	b.start(func(c *contender) { c.check(c.add(counter), counter) })
	return b
}

// contender is a goroutine of a round, with random choices of its own.
type contender struct {
	*round
	random *rand.Rand
}

// start starts a goroutine of the round.
func (b *round) start(work func(*contender)) {
	c := &contender{b, another(b.w.random)}
	b.running.Go(func() { work(c) })
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
func (c *contender) contend(a acquirer) {
	for !c.ended() {
		ctx, cancel := c.waiting, context.CancelFunc(func() {})
		if c.random.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(c.waiting, below(c.random, 300*time.Millisecond))
		}
		called := now()
		hold, err := a.acquire(ctx)
		cancel()
		if err != nil {
			c.check(err, a.locks[0])
		} else {
			c.use(a, hold, called)
		}
		c.pause(below(c.random, a.pause))
	}
}

// use keeps a hold for a while, releases it, and reports it for each lock. Some writers become readers.
func (c *contender) use(a acquirer, hold *recipes.Hold, called int64) {
	if a.below != nil && c.random.IntN(3) == 0 {
		c.downgrade(a, hold, called)
		return
	}
	c.release(hold, c.hold(c.waiting, hold, a.kind, a.locks...), called)
}

// downgrade keeps a write hold, acquires the read side under it, and keeps that without it.
func (c *contender) downgrade(a acquirer, writing *recipes.Hold, called int64) {
	pair := int64(os.Getpid())<<24 + c.w.pairs.Add(1)
	wrote := c.hold(c.waiting, writing, a.kind, a.locks...)
	asked := now()
	reading, err := a.below(writing.Context(c.waiting))
	wrote[0].By = pair
	if err == nil && writing.Err() == nil {
		wrote[0].To = asked // it was valid until then, and longer
	}
	c.release(writing, wrote, called)
	if err != nil {
		if !errors.Is(err, framework.ErrSessionLost) { // that of the write hold
			c.check(err, siegeRW)
		}
		return
	}
	read := c.hold(c.waiting, reading, kindDowngraded, siegeRW)
	read[0].By = pair
	c.release(reading, read, asked)
}

// checkRelease reports an error of a release that says something else than that the hold was lost
// before, or that its node is yet to be deleted.
func (b *round) checkRelease(err error, lock string) {
	if err != nil && !b.isEnd(err) && !errors.Is(err, recipes.ErrReleasePending) {
		b.w.report(turn{Kind: kindError, Lock: lock, Release: err.Error(), Lost: "a release"})
	}
}

// isEnd reports whether err is a reason for which a hold may end: that its session was lost, or that
// its node was deleted, which another check finds. A latch resigns by itself when the round gives up
// what was begun.
func (b *round) isEnd(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, recipes.ErrNodeDeleted) ||
		errors.Is(err, recipes.ErrNotHeld) && b.waiting.Err() != nil
}

// release releases a hold, and reports what it was.
func (b *round) release(hold *recipes.Hold, turns []turn, called int64) {
	err := hold.Release()
	b.checkRelease(err, turns[0].Lock)
	for _, t := range turns {
		t.Called = called
		if err != nil {
			t.Release = err.Error()
		}
		b.w.report(t)
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
	Context(parent context.Context) context.Context
	Guard(ctx context.Context, ops ...framework.Op) ([]framework.Result, error)
}

// hold keeps locks for a while, which is seldom long, and writes their tokens. Some holds last longer
// than a session that is cut off, and half of all last until a suspended connection is back. It
// returns a turn of each lock.
func (c *contender) hold(ctx context.Context, h guarded, kind string, locks ...string) (turns []turn) {
	length := below(c.random, 10*time.Millisecond)
	switch c.random.IntN(60) {
	case 0:
		length = below(c.random, 3*siegeTimeout)
	case 1, 2, 3:
		length = below(c.random, 8*time.Second)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.leading, cancel) // with the round
	defer stop()

	tokens := []int64{h.Token()}
	if several, is := h.(*recipes.Hold); is && len(locks) > 1 {
		tokens = several.Tokens()
	}
	wrote := make(chan int64, 1)
	go func() { wrote <- write(ctx, h, kind, locks, tokens) }()
	held := h.Context(ctx)
	t := during(ctx, h, length)
	if c.random.IntN(2) == 0 {
		t = c.outlast(ctx, h, t)
	}
	t.Kind, t.Wrote = kind, <-wrote
	if t.Lost != "" {
		c.checkLoss(h, held, locks[0])
	}
	for i, lock := range locks {
		t.Lock, t.Token = lock, tokens[i]
		turns = append(turns, t)
	}
	return turns
}

// outlast goes on with a hold while the connection is suspended. The hold is lost then, or the same
// session has a connection again.
func (b *round) outlast(ctx context.Context, h guarded, t turn) turn {
	for t.Lost == "" && ctx.Err() == nil && b.w.client.State() == framework.Suspended {
		more := during(ctx, h, 100*time.Millisecond)
		t.To, t.Lost = max(t.To, more.To), more.Lost
	}
	return t
}

// checkLoss reports a hold that was lost for another reason than its session, or of which Done or the
// context does not end.
func (b *round) checkLoss(h guarded, held context.Context, lock string) {
	wrong := turn{Kind: kindError, Lock: lock, Token: h.Token()}
	if err := h.Err(); !b.isEnd(err) {
		wrong.Lost = "no fault explains that a hold was lost: " + text(err)
		b.w.report(wrong)
	}
	bound := time.After(testzk.Patience)
	for _, done := range []<-chan struct{}{h.Done(), held.Done()} {
		select {
		case <-done:
		case <-bound:
			wrong.Lost = "a hold was lost, and Done or its context does not end"
			b.w.report(wrong)
			return
		}
	}
}

// write writes the token of each lock, and returns the transaction that did, or 0.
func write(ctx context.Context, h guarded, kind string, locks []string, tokens []int64) int64 {
	if !writesToken(kind) {
		return 0
	}
	var ops []framework.Op
	for i, lock := range locks {
		ops = append(ops, framework.SetOp(tokenPath(lock), []byte(strconv.FormatInt(tokens[i], 10)), -1))
	}
	results, err := h.Guard(ctx, ops...)
	if err != nil || len(results) == 0 || results[0].Stat == nil {
		return 0
	}
	return results[0].Stat.Mzxid
}

// writesToken reports whether the holders of a kind of holds write their tokens.
func writesToken(kind string) bool {
	return kind != kindRead && kind != kindDowngraded && kind != kindPermit
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
