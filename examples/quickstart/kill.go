package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/fence"
)

// killedWorker is the worker that was killed.
type killedWorker struct {
	request // the write that the worker did not send
	at      time.Time
}

// handle passes a step of a worker to the store and reports it. The kill and the late write also
// happen here. The worker waits until handle returns.
func (d *demo) handle(step string, q request) (answer, error) {
	a, err := d.store.apply(step, q)
	if err != nil {
		if !errors.Is(err, fence.ErrStale) {
			d.fail(err)
		}
		return a, err
	}
	switch step {
	case stepEnter:
		if a.Turn == 1 {
			d.waitQueue()
		}
		d.entered(q)
	case stepRead:
		if a.Turn >= d.killTurn() {
			d.killOnce.Do(func() { d.killHolder(q, a.Value) })
		}
	case stepWrite:
		d.report.turn(a.Turn, q)
		d.wrote(q)
	}
	return a, nil
}

// waitQueue waits until all workers are in the queue. On a slow machine the first worker could
// otherwise have many turns before the last one has started.
func (d *demo) waitQueue() {
	for d.ctx.Err() == nil {
		queue, err := d.lock.Participants(d.ctx)
		if err == nil && len(queue) >= d.cfg.workers {
			return
		}
		_ = sleep(d.ctx, thinking)
	}
}

// killTurn returns the first turn in which the holder is killed. It is late enough for each worker
// to have had a turn. It is early enough for at least one other worker to have writes left.
func (d *demo) killTurn() int { return 1 + d.cfg.workers*d.cfg.increments/3 }

// killHolder kills the worker that holds the lock and has just read the record. The worker cannot
// release the lock any more, and no other process can. The servers cannot tell it from a slow
// worker until its session expires.
func (d *demo) killHolder(q request, record int) {
	q.Value = record + 1
	p := d.children[q.Worker-1]
	d.report.Line("worker %d holds the lock (token %d) and has read the record, %d. "+
		"NOW IT IS KILLED (kill -9, process %d).", q.Worker, q.Token, record, p.PID())
	p.Kill()
	d.store.crashed(q.Worker)
	d.killed.Store(&killedWorker{request: q, at: time.Now()})
	if queue := d.queue(); queue != "" {
		d.report.Line("In the queue for the lock, the holder first: %s.", queue)
	}
	d.report.Line("Worker %d is dead, but it still holds the lock. The servers delete its lock node when they have",
		q.Worker)
	d.report.Line("heard nothing from worker %d for the session timeout, %v. This wait is that timeout ...",
		q.Worker, d.agreed)
}

// queue asks the servers for the workers in the queue. It returns "" if they do not answer.
func (d *demo) queue() string {
	ctx, cancel := context.WithTimeout(d.ctx, child.Grace)
	defer cancel()
	queue, err := d.lock.Participants(ctx)
	if err != nil {
		return ""
	}
	names := make([]string, len(queue))
	for i, p := range queue {
		names[i] = string(p.Data)
	}
	return strings.Join(names, ", ")
}

// entered reports the first holder after the killed worker.
func (d *demo) entered(next request) {
	killed := d.killed.Load()
	if killed == nil {
		return
	}
	d.passOnce.Do(func() {
		waited := time.Since(killed.at)
		d.passedOn.Store(int64(waited))
		d.report.Line("... %.1f s after the kill the lock has passed on to worker %d, with a larger token: %d.",
			waited.Seconds(), next.Worker, next.Token)
	})
}

// wrote sends the write of the killed worker, right after the first write of a later holder. In a
// real program, such a write can come from a request that was long on its way, or from a worker
// that was paused. It would overwrite the later write.
func (d *demo) wrote(next request) {
	killed := d.killed.Load()
	if killed == nil {
		return
	}
	d.lateOnce.Do(func() {
		d.report.Line("Too late, the dead worker's write arrives: record %d -> %d, with token %d.",
			killed.Value-1, killed.Value, killed.Token)
		_, err := d.remote.Do(d.ctx, stepWrite, killed.request)
		if !errors.Is(err, fence.ErrStale) {
			d.fail(errors.Join(errors.New("the dead worker's late write was not refused for its token"), err))
			return
		}
		d.refused.Store(true)
		d.report.Line("The store refuses it: token %d is older than %d. "+
			"Without that, worker %d's work would be overwritten.", killed.Token, next.Token, next.Worker)
	})
}
