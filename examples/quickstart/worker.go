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

// thinking is how long a worker works between reading the record and writing it: the time in which a broken lock would do harm.
const thinking = 50 * time.Millisecond

// job is what a worker is told when it starts.
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

// run is the life of a worker.
func (j job) run(ctx context.Context, stderr io.Writer) (err error) {
	// One client for the whole process. Its session is what holds the lock: when the process dies, the servers hear nothing from it
	// any more, end the session after its timeout, and take its place in line away.
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	// Everybody who names the same path shares the same lock. The data is only for people who look at the line.
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
			// The turn was ours to the end; only the lock will be free a little later.
			written = n
			fmt.Fprintf(stderr, "worker %d gave the lock back and got no answer: %v\n", w.Worker, err)
		case ctx.Err() == nil && isLost(err):
			// The machine was too slow, or the servers were away for too long. The turn may or may not have reached the
			// store; the next one begins with reading, and so finds out.
			fmt.Fprintf(stderr, "worker %d lost the lock and tries again: %v\n", w.Worker, err)
		default:
			return err
		}
	}
	return nil
}

// remoteStore is the store as the workers see it.
type remoteStore = child.Remote[visit, answer]

func newRemoteStore(url string) remoteStore { return child.NewRemote[visit, answer]("store", url) }

// isLost reports whether the lock passed on before the work was done. That is not a failure: it is what a lock between machines has to
// do when it hears nothing from its holder. The work has to be done again, from the start, under a new hold.
func isLost(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, recipes.ErrNodeDeleted) || errors.Is(err, fence.ErrStale)
}

// turn waits for the lock and increments the record once. It returns how many writes the store has from this worker.
func (w *worker) turn(ctx context.Context) (written int, err error) {
	hold, err := w.lock.Acquire(ctx) // ctx bounds the wait, not the hold
	if err != nil {
		return 0, err
	}
	// Release always, and look at what it says: it tells if we may not have been alone until the end.
	defer func() { err = errors.Join(err, hold.Release()) }()

	// From here on work under the hold's own context: it ends when the lock is lost, so that we stop when we have to.
	ctx = hold.Context(ctx)
	return w.increment(ctx, visit{Worker: w.Worker, Token: hold.Token(), Until: hold.ValidUntil()})
}

// increment is the critical section: if two workers did this at the same time, one update would be lost. The token goes with every
// request, because no worker can know for sure that it was not paused just before sending one. The store can.
func (w *worker) increment(ctx context.Context, v visit) (written int, err error) {
	// The store is told that we are gone even if the lock is lost, hence without its context.
	defer func() {
		_, leaveErr := w.store.Do(context.WithoutCancel(ctx), stepLeave, v)
		err = errors.Join(err, leaveErr)
	}()
	if _, err := w.store.Do(ctx, stepEnter, v); err != nil {
		return 0, err
	}
	record, err := w.store.Do(ctx, stepRead, v)
	if err != nil || record.Written >= w.Increments {
		return record.Written, err
	}
	if err := sleep(ctx, thinking); err != nil {
		return 0, err
	}
	v.Value = record.Value + 1
	record, err = w.store.Do(ctx, stepWrite, v)
	return record.Written, err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) // the reason of the hold's end, if that is what it was
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
