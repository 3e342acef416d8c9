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

// waitWarner logs a warning when an acquire waits for long. It has no effect on the wait. It
// costs a timer, and a goroutine from the first warning on. The goroutine that waits starts and
// stops it.
type waitWarner struct {
	lock     *Lock
	ctx      context.Context // of the wait
	interval time.Duration   // until the first warning, then doubled; 0: no warnings
	once     sync.Once       // of start
	began    time.Time
	timer    *time.Timer // nil before start

	running   sync.WaitGroup                     // run
	cancelRun atomic.Pointer[context.CancelFunc] // ends run; nil until it has begun
	stopped   atomic.Bool

	waiters atomic.Pointer[[]*waiter] // with the own nodes; nil: there are none
	waited  atomic.Bool               // start was called
}

func (l *Lock) newWaitWarner(ctx context.Context) *waitWarner {
	warner := &waitWarner{lock: l, ctx: ctx}
	if !l.Standby && l.log.Core().Enabled(zap.WarnLevel) {
		warner.interval = bridge.Of(l.Client).WaitWarning()
	}
	return warner
}

// start starts the timer once: all attempts of one acquire are one wait.
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

// setWaiters stores the waiters of the attempt. The warner may be nil.
func (warner *waitWarner) setWaiters(waiters []*waiter) {
	if warner != nil {
		warner.waiters.Store(&waiters)
	}
}

// stop stops the timer and waits for the goroutine.
func (warner *waitWarner) stop() {
	if warner.timer == nil || warner.timer.Stop() {
		return
	}
	warner.stopped.Store(true)
	if cancel := warner.cancelRun.Load(); cancel != nil {
		(*cancel)()
	}
	warner.running.Wait()
}

// run warns now, and again each time the wait has doubled.
func (warner *waitWarner) run() {
	defer warner.running.Done()
	ctx, cancel := context.WithCancel(warner.ctx)
	defer cancel()
	warner.ctx = ctx
	if warner.cancelRun.Store(&cancel); warner.stopped.Load() {
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

// rateLimit limits the warnings of all waiters of one lock.
type rateLimit struct {
	mu     sync.Mutex
	warned time.Time // when the last warning was due
}

// mayWarn allows one warning in each span of limit. It compares the times at which warnings were
// due, so a late warning does not suppress the next one of the same wait.
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
	blocker := zap.Object("first", first)
	if err != nil {
		blocker = zap.Error(err)
	}
	if warner.ctx.Err() == nil { // else the wait has ended
		waited := time.Since(warner.began).Round(time.Millisecond)
		warner.lock.log.Warn("still waiting", zap.Duration("waited", waited), blocker)
	}
}

// readFirst reads a holder from the gate, or the first node of a queue in which that is not the
// own one.
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
