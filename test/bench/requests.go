package main

import (
	"context"
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/test/bench/report"
	"github.com/docent-zk/docent/zktest"
)

// counting is the in-process server as a place of peers, because it knows what it is asked.
type counting struct{ *zktest.Server }

func (c counting) servers(name string) string {
	if name == "etcd" {
		return ""
	}
	return c.Addr()
}

func (c counting) commits(context.Context, string) (int64, error) { return 0, nil }
func (c counting) kill() error                                    { return errors.New("not for this") }
func (c counting) revive(context.Context) error                   { return errors.New("not for this") }

// countRequests counts what an acquire and release ask, for each kind of lock and peer: uncontended, and of the mutex by several clients.
func countRequests(crew map[string]contender) (all []report.Count, err error) {
	srv, err := zktest.New()
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	m := &measurer{setting: "requests", peers: crew, place: counting{srv}}
	var workloads []workload
	for _, kind := range []string{"mutex", "read", "write", "semaphore", "semaphore-mutex", "multi"} {
		workloads = append(workloads, single(kind))
	}
	for _, w := range append(workloads, contended(report.Contended(2), 2), contended(report.Contended(16), 16)) {
		for _, e := range w.entries {
			c, err := count(m, srv, w, e)
			if err == nil {
				all = append(all, c)
			} else if !errors.Is(err, errUnsupported) && !errors.Is(err, errAbsent) {
				return nil, err
			}
		}
	}
	return all, nil
}

// briefly is long enough to count.
const briefly = 50 * time.Millisecond

func count(m *measurer, srv *zktest.Server, w workload, e entry) (report.Count, error) {
	if err := m.open(w, e); err != nil {
		return report.Count{}, err
	}
	if _, err := m.peers[e.peer].run(e.label, briefly); err != nil { // what is asked only once
		return report.Count{}, err
	}
	srv.ResetCounts()
	r, err := m.peers[e.peer].run(e.label, briefly)
	if err != nil {
		return report.Count{}, err
	}
	each := report.Count{Workload: w.name, Label: e.label, Each: map[string]float64{}}
	for kind, n := range srv.Requests() {
		if kind != zktest.OpPing {
			each.Each[kind.String()] = float64(n) / float64(r.Ops)
		}
	}
	return each, m.peers[e.peer].close(e.label)
}

// exactRequests are those of one acquire, one release, and one hand-over of docent.
func exactRequests(ctx context.Context) (r report.Requests, err error) {
	srv, err := zktest.New()
	if err != nil {
		return r, err
	}
	defer srv.Close()
	var locks []*mutex.Mutex
	for _, name := range []string{"holder", "waiter"} {
		c, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
		if err != nil {
			return r, err
		}
		defer c.Close() // nothing is left to hear of it
		lock, err := mutex.New(c, "/lock")
		if err != nil {
			return r, err
		}
		hold, err := lock.Acquire(ctx) // reads what is read once
		if err == nil {
			err = hold.Release()
		}
		if err != nil {
			return r, err
		}
		locks = append(locks, lock)
	}
	return handOver(ctx, srv, locks[0], locks[1])
}

func handOver(ctx context.Context, srv *zktest.Server, holder, waiter *mutex.Mutex) (r report.Requests, err error) {
	srv.ResetCounts()
	hold, err := holder.Acquire(ctx)
	if err != nil {
		return r, err
	}
	r.Acquire = srv.Requests().Total()
	granted, failed := make(chan int, 1), make(chan error, 1)
	go func() {
		next, err := waiter.Acquire(ctx)
		granted <- srv.Client("waiter").Requests().Total()
		if err == nil {
			err = next.Release()
		}
		failed <- err
	}()
	for before := -1; ; { // until it only waits
		now := srv.Client("waiter").Requests().Total()
		if now > 0 && now == before {
			break
		}
		before = now
		rest(ctx, briefly)
	}
	srv.ResetCounts()
	err = hold.Release()
	r.HandOver, err = <-granted, errors.Join(err, <-failed)
	r.Release = srv.Client("holder").Requests().Total()
	return r, err
}
