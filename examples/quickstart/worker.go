package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

// thinking is how long a worker works between reading the record and writing it. In this time, a
// broken lock would do harm.
const thinking = 50 * time.Millisecond

// job is what a worker gets from its parent when it starts.
type job struct {
	Worker     int
	Connect    string // of ZooKeeper
	Lock       string // the path of the lock
	Session    time.Duration
	Store      string // its URL
	Increments int
}

// worker increments the record.
type worker struct {
	job
	lock  *mutex.Mutex
	store remoteStore
}

// run increments the record until this worker has done its part.
func (j job) run(ctx context.Context, stderr io.Writer) (err error) {
	// One client serves the whole process. Its session holds the lock. When the process dies, the
	// servers expire the session after its timeout and delete its lock node.
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	// All workers that name the same path share the same lock. The data is only shown to people
	// that list the queue.
	lock, err := mutex.New(client, j.Lock, mutex.WithData(fmt.Appendf(nil, "worker %d", j.Worker)))
	if err != nil {
		return err
	}
	w := &worker{j, lock, newRemoteStore(j.Store)}
	return w.takeTurns(ctx, stderr)
}

func (w *worker) takeTurns(ctx context.Context, stderr io.Writer) error {
	for written := 0; written < w.Increments; {
		n, err := w.turn(ctx)
		switch {
		case err == nil:
			written = n
		case errors.Is(err, recipes.ErrReleasePending):
			// The lock was held to the end of the turn, but it will be free a little later.
			written = n
			fmt.Fprintf(stderr, "worker %d released the lock and got no answer: %v\n", w.Worker, err)
		case ctx.Err() == nil && isLost(err):
			// The machine was too slow, or the servers did not answer for too long. The turn may or
			// may not have reached the store. The next turn begins with a read, which shows it.
			fmt.Fprintf(stderr, "worker %d lost the lock and tries again: %v\n", w.Worker, err)
		case ctx.Err() == nil && errors.Is(err, framework.ErrNotConnected):
			// The worker was waiting for the lock, and no server answered until the client gave up.
			fmt.Fprintf(stderr, "worker %d did not get the lock and tries again: %v\n", w.Worker, err)
		default:
			return err
		}
	}
	return nil
}

// remoteStore is the store, as the workers use it.
type remoteStore = child.Remote[request, answer]

func newRemoteStore(url string) remoteStore { return child.NewRemote[request, answer]("store", url) }

// isLost reports whether the lock was lost before the work was done. That is not a failure: a lock
// between machines must pass on when the servers hear nothing from its holder. The work must be
// done again, from the start, under a new hold.
func isLost(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) ||
		errors.Is(err, recipes.ErrNodeDeleted) ||
		errors.Is(err, fence.ErrStale)
}

// turn waits for the lock and increments the record once. It returns how many writes of this worker
// the store has accepted.
func (w *worker) turn(ctx context.Context) (written int, err error) {
	// Do releases the lock. Look at its error: it also reports that the lock was lost before the end.
	err = w.lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) (err error) {
		// This context ends when the lock is lost.
		written, err = w.increment(ctx, request{Worker: w.Worker, Token: hold.Token(), Until: hold.ValidUntil()})
		return err
	})
	return written, err
}

// increment is the critical section. If two workers ran it at the same time, one update would be
// lost. Each request has the token, because a worker can be paused just before it sends one. Only
// the store can tell then that the request is late.
func (w *worker) increment(ctx context.Context, q request) (written int, err error) {
	// The store must know that this worker has left even if the lock is lost, so this is not under
	// its context.
	defer func() {
		_, leaveErr := w.store.Do(context.WithoutCancel(ctx), stepLeave, q)
		err = errors.Join(err, leaveErr)
	}()
	if _, err := w.store.Do(ctx, stepEnter, q); err != nil {
		return 0, err
	}
	record, err := w.store.Do(ctx, stepRead, q)
	if err != nil || record.Written >= w.Increments {
		return record.Written, err
	}
	if err := sleep(ctx, thinking); err != nil {
		return 0, err
	}
	q.Value = record.Value + 1
	record, err = w.store.Do(ctx, stepWrite, q)
	return record.Written, err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) // the cause of the loss, if the lock was lost
	}
}

// workerMain is the main function of a worker process.
func workerMain(stdin io.Reader, stderr io.Writer) int {
	return child.Main(stdin, stderr, "worker", func(ctx context.Context, j job) error {
		if err := j.run(ctx, stderr); err != nil {
			return fmt.Errorf("worker %d: %w", j.Worker, err)
		}
		return nil
	})
}
