package queue

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
)

// alarm warns of a wait that takes long, beside it: whatever comes of the warning, the wait goes on as before. It costs a timer, and from
// the first warning on a goroutine. Whoever waits starts and stops it.
type waitWarner struct {
	lock     *Lock
	ctx      context.Context // of the wait
	interval time.Duration   // 0: there is nobody to be warned
	once     sync.Once       // of start
	began    time.Time
	timer    *time.Timer // nil before start

	running   sync.WaitGroup                     // run
	cancelRun atomic.Pointer[context.CancelFunc] // ends run; nil until it has begun
	stopped   atomic.Bool

	waiters atomic.Pointer[[]*waiter] // our places in line; nil if there are none
	waited  atomic.Bool               // for others
}

func (l *Lock) newWaitWarner(ctx context.Context) *waitWarner {
	warner := &waitWarner{lock: l, ctx: ctx}
	if !l.Standby && l.log.Core().Enabled(zap.WarnLevel) {
		warner.interval = bridge.Of(l.Client).WaitWarning()
	}
	return warner
}

// start begins to count, unless it has before: a place that was lost and taken again is one wait.
func (warner *waitWarner) start() {
	warner.waited.Store(true)
	if warner.interval == 0 {
		return
	}
	warner.once.Do(func() {
		warner.began = time.Now()
		warner.running.Add(1)
		warner.timer = time.AfterFunc(warner.interval, warner.run)
	})
}

// stand notes in which places we wait. Nil has nobody to tell.
func (warner *waitWarner) setWaiters(waiters []*waiter) {
	if warner != nil {
		warner.waiters.Store(&waiters)
	}
}

// stop returns when nothing of the alarm runs any more.
func (warner *waitWarner) stop() {
	if warner.timer == nil || warner.timer.Stop() {
		return
	}
	warner.stopped.Store(true)
	if over := warner.cancelRun.Load(); over != nil {
		(*over)()
	}
	warner.running.Wait()
}

// run warns now, and again each time the wait has doubled.
func (warner *waitWarner) run() {
	defer warner.running.Done()
	ctx, over := context.WithCancel(warner.ctx)
	defer over()
	warner.ctx = ctx
	if warner.cancelRun.Store(&over); warner.stopped.Load() {
		return
	}
	for due := warner.interval; ; {
		if warner.lock.waitWarnings.mayWarn(warner.began.Add(due), warner.interval) {
			warner.warn()
		}
		for due <= time.Since(warner.began) {
			due *= 2
		}
		select {
		case <-time.After(due - time.Since(warner.began)):
		case <-warner.ctx.Done():
			return
		}
	}
}

// quiet keeps the warnings of all who wait for one lock apart.
type rateLimit struct {
	mu     sync.Mutex
	warned time.Time // when the last warning was due
}

// mayWarn allows one warning in each span of limit, however many wait. It goes by the times for which warnings were meant, so that one
// that came late does not cost the same wait its next.
func (r *rateLimit) mayWarn(due time.Time, limit time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned.IsZero() && due.Sub(r.warned) < limit {
		return false
	}
	r.warned = due
	return true
}

func (warner *waitWarner) warn() {
	var first recipes.Participant
	err := retry.Do(warner.ctx, retry.Never(), nil, func(ctx context.Context) (err error) {
		first, err = warner.readFirst(ctx)
		return err
	})
	who := zap.Object("first", first)
	if err != nil {
		who = zap.Error(err)
	}
	if warner.ctx.Err() == nil { // else the wait is over
		warner.lock.log.Warn("still waiting", zap.Duration("waited", time.Since(warner.began).Round(time.Millisecond)), who)
	}
}

// first reads who is first in a line in which we are not first ourselves, or who has the lock.
func (warner *waitWarner) readFirst(ctx context.Context) (first recipes.Participant, err error) {
	if warner.lock.Gate != nil {
		return warner.lock.Gate.Holder(ctx)
	}
	for _, q := range warner.lock.Queues {
		first, err = q.First(ctx, q.rules.Conflicting...)
		if err != nil || !warner.isOwn(first.Node) {
			break
		}
	}
	return first, err
}

func (warner *waitWarner) isOwn(node string) bool {
	waiters := warner.waiters.Load()
	return waiters != nil && slices.ContainsFunc(*waiters, func(w *waiter) bool { return w.path() == node })
}
