package main

import (
	"context"
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/test/bench/report"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// counting is the in-process server as a place of peers, because it counts its requests.
type counting struct{ *zktest.Server }

func (c counting) servers(name string) string {
	if name == "etcd" {
		return ""
	}
	return c.Addr()
}

func (c counting) commits(context.Context, string) (int64, error) { return 0, nil }
func (c counting) received(context.Context) (int64, error)        { return int64(c.Requests().Total()), nil }
func (c counting) kill() error                                    { return errors.New("not supported") }
func (c counting) revive(context.Context) error                   { return errors.New("not supported") }

// countRequests counts the requests of acquire and release, for each kind of lock and peer. It does
// so uncontended, and for a mutex with several clients.
func countRequests(peerGroup map[string]contender) (all []report.Count, err error) {
	srv, err := zktest.New()
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	m := &measurer{setting: "requests", peers: peerGroup, place: counting{srv}}
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
	// The first run has requests that are sent only once.
	if _, err := m.peers[e.peer].run(e.label, briefly); err != nil {
		return report.Count{}, err
	}
	srv.ResetCounts()
	r, err := m.peers[e.peer].run(e.label, briefly)
	if err != nil {
		return report.Count{}, err
	}
	each := report.Count{Workload: w.name, Label: e.label, Each: map[string]float64{}}
	for kind, n := range srv.Requests() {
		if kind != fault.OpPing {
			each.Each[kind.String()] = float64(n) / float64(r.Ops)
		}
	}
	return each, m.peers[e.peer].close(e.label)
}

// exactRequests returns those of one acquire, one release, and one hand-over of docent.
func exactRequests(ctx context.Context) (r report.Requests, err error) {
	srv, err := zktest.New()
	if err != nil {
		return r, err
	}
	defer srv.Close()
	holder, leave, err := used(ctx, srv, "holder")
	if err != nil {
		return r, err
	}
	defer leave()
	waiter, leave, err := used(ctx, srv, "waiter")
	if err != nil {
		return r, err
	}
	defer leave()
	for range tries {
		acquire, release, err := alternate(ctx, srv, holder)
		if err != nil {
			return r, err
		}
		if r.Acquire == 0 || acquire+release < r.Acquire+r.Release {
			r.Acquire, r.Release = acquire, release
		}
	}
	for n := range tries {
		requests, err := handOver(ctx, srv, holder, waiter)
		if err != nil {
			return r, err
		}
		if n == 0 || requests < r.HandOver {
			r.HandOver = requests
		}
	}
	r.RoundTrips, err = roundTrips(ctx)
	return r, err
}

// roundTrips returns the time of an uncontended acquire at a follower that is far away, in round trips.
func roundTrips(ctx context.Context) (trips float64, err error) {
	srv, err := zktest.New()
	if err != nil {
		return 0, err
	}
	defer srv.Close()
	l, err := newLink(srv.Follower(0).Addr(), report.Trip)
	if err != nil {
		return 0, err
	}
	defer l.close()
	c, err := framework.New(l.addr())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	lock, err := mutex.New(c, "/lock")
	if err != nil {
		return 0, err
	}
	for range 1 + tries { // the first one creates the directory
		began := time.Now()
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return 0, err
		}
		took := float64(time.Since(began)) / float64(report.Trip)
		if err := hold.Release(); err != nil {
			return 0, err
		}
		if trips == 0 || took < trips {
			trips = took
		}
	}
	return trips, nil
}

// used returns a lock with a client of its own, after the requests that a client sends only once.
func used(ctx context.Context, srv *zktest.Server, name string) (lock *mutex.Mutex, leave func(), err error) {
	c, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
	if err != nil {
		return nil, nil, err
	}
	leave = func() { _ = c.Close() } // the error does not matter
	lock, err = mutex.New(c, "/lock")
	if err == nil {
		_, _, err = alternate(ctx, srv, lock)
	}
	if err != nil {
		leave()
	}
	return lock, leave, err
}

// tries is more than one, because a hold that lasts for a while is watched, and a busy machine
// stands still for a while.
const tries = 5

// alternate acquires and releases.
func alternate(ctx context.Context, srv *zktest.Server, lock *mutex.Mutex) (acquire, release int, err error) {
	srv.ResetCounts()
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return 0, 0, err
	}
	acquire = srv.Requests().Total()
	err = hold.Release()
	return acquire, srv.Requests().Total() - acquire, err
}

// handOver counts the requests of the waiter from the call of release until it has the lock.
func handOver(ctx context.Context, srv *zktest.Server, holder, waiter *mutex.Mutex) (int, error) {
	hold, err := holder.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	asked := func() int { return srv.Client("waiter").Requests().Total() }
	idle := asked()
	granted, failed := make(chan int, 1), make(chan error, 1)
	go func() {
		next, err := waiter.Acquire(ctx)
		granted <- asked()
		if err == nil {
			err = next.Release()
		}
		failed <- err
	}()
	before := settled(ctx, idle, asked)
	err = hold.Release()
	return <-granted - before, errors.Join(err, <-failed)
}

// settled waits until a number has changed, and then stays the same for a while.
func settled(ctx context.Context, first int, number func() int) int {
	for last, same := first, 0; ; {
		rest(ctx, briefly)
		now := number()
		if same++; now != last || now == first {
			last, same = now, 0
		}
		if same >= tries || ctx.Err() != nil {
			return now
		}
	}
}
