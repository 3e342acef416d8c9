package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// prober is a lock that can ask the servers whether it is held.
type prober interface {
	// probe waits for the connection, and for the answer. It returns an error if the lock is lost.
	probe(ctx context.Context) error
}

// storm is many clients, each with a lock, that lose their connections at the same time. The server
// is killed before each run, and started again. The latencies are from the beginning of the run
// until a client knows that it still holds its lock. The figure served is the time of the first
// successful dial.
type storm struct {
	job     Job
	clients clients
	locks   []lock
}

// dials are the dials of this process since the beginning of the last run.
var dials struct {
	since   atomic.Int64       // the beginning of the run
	tenths  [1000]atomic.Int64 // number of dials in each tenth of a second
	success atomic.Int64       // time of the first successful dial, 0 if there was none
}

// dial is the dialer of the systems in this job.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	began := time.Unix(0, dials.since.Load())
	dials.tenths[min(max(time.Since(began).Milliseconds()/100, 0), int64(len(dials.tenths)-1))].Add(1)
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		dials.success.CompareAndSwap(0, int64(time.Since(began)))
	}
	return conn, err
}

func newStorm(ctx context.Context, s system, job Job) (_ running, err error) {
	all, err := connect(ctx, s, job, job.Clients)
	if err != nil {
		return nil, err
	}
	m := &storm{job: job, clients: all}
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	for i, c := range all {
		one, err := c.lock(job.Kind, fmt.Sprint(job.Path, "/", i))
		if err != nil {
			return nil, err
		}
		if _, ok := one.(prober); !ok {
			return nil, errUnsupported
		}
		m.locks = append(m.locks, one)
	}
	return m, inParallel(m.locks, func(l lock) error { return l.acquire(ctx) })
}

func (m *storm) close() { m.clients.close() }

func (m *storm) run(ctx context.Context, _ time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range dials.tenths {
		dials.tenths[i].Store(0)
	}
	dials.success.Store(0)
	began := time.Now()
	dials.since.Store(began.UnixNano())
	r := Result{Latencies: &hist.Histogram{}, Figures: map[string]float64{}}
	errs := make([]error, len(m.locks))
	var mu sync.Mutex // protects r
	var running sync.WaitGroup
	for i, one := range m.locks {
		running.Go(func() {
			errs[i] = one.(prober).probe(ctx)
			mu.Lock()
			defer mu.Unlock()
			if errs[i] == nil {
				r.Latencies.Record(time.Since(began))
				r.Ops++
			}
		})
	}
	running.Wait()
	r.Took = time.Since(began)
	r.Figures["lost"] = float64(len(m.locks)) - float64(r.Ops)
	r.Figures["served"] = time.Duration(dials.success.Load()).Seconds()
	for i := range dials.tenths {
		n := float64(dials.tenths[i].Load())
		r.Figures["dials"] += n
		r.Figures["busiest"] = max(r.Figures["busiest"], n)
	}
	if r.Ops == 0 {
		return r, errors.Join(errs...)
	}
	return r, nil
}
