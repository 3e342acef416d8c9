package report

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/participants"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/retry"
)

// waitWarner logs a warning when an acquire waits for long. It has no effect on the wait. It
// costs a timer, and a goroutine from the first warning on. The goroutine that waits starts and
// stops it.
type waitWarner struct {
	reporter *Reporter
	ctx      context.Context // of the wait
	interval time.Duration   // until the first warning, then doubled; 0: no warnings
	once     sync.Once       // of the start of the timer
	began    time.Time
	timer    *time.Timer // nil before the first call of Waits

	running   sync.WaitGroup                     // run
	cancelRun atomic.Pointer[context.CancelFunc] // ends run; nil until it has begun
	stopped   atomic.Bool

	own atomic.Pointer[queue.OwnNodes] // nil: there are none
}

func (r *Reporter) newWaitWarner(ctx context.Context) *waitWarner {
	warner := &waitWarner{reporter: r, ctx: ctx}
	if r.warnings && r.lock.Log.Core().Enabled(zap.WarnLevel) {
		warner.interval = bridge.Of(r.lock.Client).WaitWarning()
	}
	return warner
}

// Waits implements queue.Observer. It starts the timer once: all attempts of one acquire are one
// wait.
func (warner *waitWarner) Waits(own queue.OwnNodes) {
	if warner.interval == 0 {
		return
	}
	if nodes := own; len(nodes) > 0 {
		warner.own.Store(&nodes)
	}
	warner.once.Do(func() {
		warner.began = time.Now()
		warner.running.Add(1)
		warner.timer = time.AfterFunc(warner.interval, warner.run)
	})
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
		if warner.reporter.waitWarnings.mayWarn(warner.began.Add(due), warner.interval) {
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
		first, err = warner.reporter.first(ctx, warner.ownNodes())
		return err
	})
	fields := []zap.Field{zap.Duration("waited", time.Since(warner.began).Round(time.Millisecond))}
	if err != nil {
		fields = append(fields, zap.Error(err))
	} else {
		fields = append(fields, zap.Object("first", first))
		if warner.reporter.isOwn(warner.ctx, first) {
			fields = append(fields, zap.String("hint",
				"this node is of the same client: an acquire in a hold needs the context of that hold"))
		}
	}
	if warner.ctx.Err() == nil { // else the wait has ended
		warner.reporter.lock.Log.Warn("still waiting", fields...)
	}
}

// isOwn reports whether the node of a participant belongs to the client's session.
func (r *Reporter) isOwn(ctx context.Context, p recipes.Participant) bool {
	session, err := r.lock.Client.Session(ctx)
	return err == nil && session.ID() == p.Session
}

func (warner *waitWarner) ownNodes() queue.OwnNodes {
	if own := warner.own.Load(); own != nil {
		return *own
	}
	return nil
}

// readFirst reads the first node of a queue in which that is not an own one.
func (r *Reporter) readFirst(ctx context.Context, own queue.OwnNodes) (first recipes.Participant, err error) {
	for _, q := range r.lock.Queues {
		first, err = participants.First(ctx, q, q.Rules().Conflicting...)
		if err != nil || !own.Contain(first.Node) {
			break
		}
	}
	return first, err
}
