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
type alarm struct {
	lock  *Lock
	ctx   context.Context // of the wait
	limit time.Duration   // 0: there is nobody to be warned
	once  sync.Once       // of start
	begun time.Time
	timer *time.Timer // nil before start

	running sync.WaitGroup                     // run
	over    atomic.Pointer[context.CancelFunc] // ends run; nil until it has begun
	stopped atomic.Bool

	own    atomic.Pointer[[]*place] // our places in line; nil if there are none
	waited atomic.Bool              // for others
}

func (l *Lock) newAlarm(ctx context.Context) *alarm {
	a := &alarm{lock: l, ctx: ctx}
	if !l.Standby && l.log.Core().Enabled(zap.WarnLevel) {
		a.limit = bridge.Of(l.Client).WaitWarning()
	}
	return a
}

// start begins to count, unless it has before: a place that was lost and taken again is one wait.
func (a *alarm) start() {
	a.waited.Store(true)
	if a.limit == 0 {
		return
	}
	a.once.Do(func() {
		a.begun = time.Now()
		a.running.Add(1)
		a.timer = time.AfterFunc(a.limit, a.run)
	})
}

// stand notes in which places we wait. Nil has nobody to tell.
func (a *alarm) stand(places []*place) {
	if a != nil {
		a.own.Store(&places)
	}
}

// stop returns when nothing of the alarm runs any more.
func (a *alarm) stop() {
	if a.timer == nil || a.timer.Stop() {
		return
	}
	a.stopped.Store(true)
	if over := a.over.Load(); over != nil {
		(*over)()
	}
	a.running.Wait()
}

// run warns now, and again each time the wait has doubled.
func (a *alarm) run() {
	defer a.running.Done()
	ctx, over := context.WithCancel(a.ctx)
	defer over()
	a.ctx = ctx
	if a.over.Store(&over); a.stopped.Load() {
		return
	}
	for due := a.limit; ; {
		if a.lock.quiet.mayWarn(a.begun.Add(due), a.limit) {
			a.warn()
		}
		for due <= time.Since(a.begun) {
			due *= 2
		}
		select {
		case <-time.After(due - time.Since(a.begun)):
		case <-a.ctx.Done():
			return
		}
	}
}

// quiet keeps the warnings of all who wait for one lock apart.
type quiet struct {
	mu     sync.Mutex
	warned time.Time // when the last warning was due
}

// mayWarn allows one warning in each span of limit, however many wait. It goes by the times for which warnings were meant, so that one
// that came late does not cost the same wait its next.
func (q *quiet) mayWarn(due time.Time, limit time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.warned.IsZero() && due.Sub(q.warned) < limit {
		return false
	}
	q.warned = due
	return true
}

func (a *alarm) warn() {
	var first recipes.Participant
	err := retry.Do(a.ctx, retry.Never(), nil, func(ctx context.Context) (err error) {
		first, err = a.first(ctx)
		return err
	})
	who := zap.Object("first", first)
	if err != nil {
		who = zap.Error(err)
	}
	if a.ctx.Err() == nil { // else the wait is over
		a.lock.log.Warn("still waiting", zap.Duration("waited", time.Since(a.begun).Round(time.Millisecond)), who)
	}
}

// first reads who is first in a line in which we are not first ourselves, or who has the lock.
func (a *alarm) first(ctx context.Context) (first recipes.Participant, err error) {
	if a.lock.Admission != nil {
		return a.lock.Admission.Holder(ctx)
	}
	for _, line := range a.lock.Lines {
		first, err = line.First(ctx, line.rules.Block...)
		if err != nil || !a.isOwn(first.Node) {
			break
		}
	}
	return first, err
}

func (a *alarm) isOwn(node string) bool {
	places := a.own.Load()
	return places != nil && slices.ContainsFunc(*places, func(p *place) bool { return p.path() == node })
}
