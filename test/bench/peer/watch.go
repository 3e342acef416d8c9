package peer

import (
	"context"
	"errors"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// watcher is a client of a system that can report that a node was deleted.
type watcher interface {
	create(path string) error
	// watch returns a channel that is closed when the node is deleted.
	watch(path string) (<-chan struct{}, error)
	delete(path string) error
}

// watch is the floor of hand-overs. One client deletes a node, and the next one, which watches it,
// receives the event. All clients do so in turn.
type watch struct {
	job     Job
	clients clients
}

func newWatch(ctx context.Context, s system, job Job) (running, error) {
	all, err := connect(ctx, s, job, job.Clients)
	if err != nil {
		return nil, err
	}
	if _, ok := all[0].(watcher); !ok {
		all.close()
		return nil, errUnsupported
	}
	return &watch{job, all}, nil
}

func (w *watch) close() { w.clients.close() }

func (w *watch) run(_ context.Context, long time.Duration) (Result, error) {
	r := Result{Latencies: &hist.Histogram{}}
	began := time.Now()
	for i := 0; time.Since(began) < long; i++ {
		from, to := w.clients[i%len(w.clients)].(watcher), w.clients[(i+1)%len(w.clients)].(watcher)
		if err := w.once(from, to, r.Latencies); err != nil {
			return r, err
		}
		r.Ops++
	}
	r.Took = time.Since(began)
	return r, nil
}

func (w *watch) once(from, to watcher, latencies *hist.Histogram) error {
	node := w.job.Path + "/node"
	if err := from.create(node); err != nil {
		return err
	}
	event, err := to.watch(node)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(w.job.Hold) * time.Microsecond)
	deleted := make(chan error, 1)
	began := time.Now()
	go func() { deleted <- from.delete(node) }()
	select {
	case <-event:
	case <-time.After(patience):
		return errors.New("no event")
	}
	latencies.Record(time.Since(began))
	return <-deleted
}

// patience is the time limit of everything that must happen.
const patience = time.Minute
