package main

import (
	"slices"
	"time"

	"github.com/docent-zk/docent/test/bench/peer"
	"github.com/docent-zk/docent/test/bench/report"
)

// workload is what peers do in turns.
type workload struct {
	name    string
	entries []entry
	alone   bool // one peer is connected at a time
	once    int  // how many rounds there are at most, none to warm up, for what takes long; 0: as many as of all
	storm   bool // the server is killed, and started again, in each run
	holds   bool // locks are held for a while
	commits int  // how many transactions there are at least, for each operation
}

// entry is one who takes part.
type entry struct {
	peer  string
	label string // in tables, the peer's name as a rule
	job   peer.Job
}

func alone(peer string, job peer.Job) entry { return entry{peer, peer, job} }

// everybody is all peers with the same job, but for the floor.
func everybody(job peer.Job) (all []entry) {
	for _, name := range names[1:] {
		all = append(all, alone(name, job))
	}
	return all
}

// others are all but some, and the floor.
func others(job peer.Job, without ...string) []entry {
	return slices.DeleteFunc(everybody(job), func(e entry) bool { return slices.Contains(without, e.peer) })
}

func loop(kind string, clients, threads int) peer.Job {
	return peer.Job{Name: "loop", Kind: kind, Clients: clients, Threads: threads}
}

// shared is a loop for one lock.
func shared(kind string, clients, threads int) peer.Job {
	j := loop(kind, clients, threads)
	j.Shared = true
	return j
}

// single are those that compare an uncontended lock of a kind with the floor.
func single(kind string) workload {
	floor := loop("mutex", 1, 1)
	if kind == "multi" {
		floor.Kind = kind
	}
	all := []entry{alone("floor", floor)}
	if kind == "mutex" {
		all = append(all, everybody(loop(kind, 1, 1))...)
	} else {
		all = append(all, others(loop(kind, 1, 1), "zk.Lock", "etcd")...)
	}
	return workload{name: kind, entries: all, commits: 2}
}

// contended is one lock that clients want all the time.
func contended(name string, clients int) workload {
	return workload{name: name, entries: everybody(shared("mutex", clients, 1)), commits: 2}
}

// handover is one lock that is held until the next in line does nothing any more but wait. Its floor is a node that is watched.
func handover(name string, clients int) workload {
	all := append([]entry{alone("floor", peer.Job{Name: "watch", Clients: clients})}, everybody(shared("mutex", clients, 1))...)
	return workload{name: name, entries: all, commits: 2, holds: true}
}

// holding is the workload with locks held for so long, if it is one with locks that are.
func (w workload) holding(hold time.Duration) workload {
	w.entries = slices.Clone(w.entries)
	for i := range w.entries {
		if w.holds {
			w.entries[i].job.Hold = int(hold.Microseconds())
		}
	}
	return w
}

// line is many waiters on one client.
func line() workload {
	queue := func(n int) peer.Job { return peer.Job{Name: "queue", Kind: "mutex", Threads: n} }
	return workload{name: report.Queue, alone: true, once: 3, commits: 2, entries: []entry{
		{"docent", report.QueueOf("docent", 50), queue(50)},
		{"docent", report.QueueOf("docent", 500), queue(500)},
		{"curator", report.QueueOf("curator", 500), queue(500)},
		{"zk.Lock", report.QueueOf("zk.Lock", 500), queue(500)},
		{"docent", report.QueueOf("docent", 5000), queue(5000)},
	}}
}

// plan is what is measured on one server with the given setting, the mutex first. What a client only does for itself is measured where the server is fast.
func plan(s report.Setting) []workload {
	distinct := func(job peer.Job) []entry { return append([]entry{alone("floor", job)}, everybody(job)...) }
	all := []workload{
		single("mutex"), single("read"), single("write"), single("semaphore"), single("semaphore-mutex"), single("multi"),
		{name: report.Distinct, entries: distinct(loop("mutex", 1, 32)), commits: 2},
		handover(report.Handover(2), 2), handover(report.Handover(16), 16),
		contended(report.Contended(2), 2), contended(report.Contended(16), 16),
	}
	if !s.Fsync && s.Servers == 1 {
		all = append(all, clientsOwn()...)
	}
	all = append(all,
		contended(report.Contended(64), 64),
		workload{name: report.Readers, entries: others(shared("mixed", 16, 1), "kazoo", "zk.Lock", "etcd"), commits: 2},
	)
	if s.Servers > 1 {
		return slices.DeleteFunc(all, func(w workload) bool {
			return !slices.Contains([]string{"mutex", report.Distinct, report.Contended(16), report.Handover(2)}, w.name)
		})
	}
	return all
}

// clientsOwn is what shows the client more than the servers.
func clientsOwn() []workload {
	job := func(name string, threads int) peer.Job { return peer.Job{Name: name, Kind: "mutex", Threads: threads} }
	storm := peer.Job{Name: "storm", Kind: "mutex", Clients: 500}
	held, waiting := job("held", 10_000), job("waiting", 1000)
	return []workload{
		{name: report.Local, entries: others(shared("handoff", 1, 16), "kazoo", "zk.Lock", "etcd")},
		{name: report.Waiting, alone: true, once: 1, commits: 1, entries: []entry{alone("docent", waiting), alone("zk.Lock", waiting)}},
		{name: report.Held, alone: true, once: 1, commits: 1, entries: []entry{alone("docent", held)}},
		line(),
		{name: report.Storm, alone: true, once: 2, storm: true, entries: []entry{alone("docent", storm), alone("zk.Lock", storm)}},
	}
}
