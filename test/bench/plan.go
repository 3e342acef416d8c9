package main

import (
	"slices"
	"time"

	"github.com/docent-zk/docent/test/bench/peer"
	"github.com/docent-zk/docent/test/bench/report"
)

// workload is a job that peers do in turns.
type workload struct {
	name    string
	entries []entry
	alone   bool // one peer is connected at a time
	// Limit of rounds for slow workloads, which have no round to warm up. 0: the usual number of
	// rounds.
	once  int
	storm bool // the server is killed and restarted in each run
	holds bool // locks are held for a while
	idle  bool // nothing is done, and the requests are counted
	far   bool // the network to the server is slow

	inProcess bool // the server is that of zktest, because only the memory of the client counts

	commits int // minimum of transactions for each operation
}

// entry is a peer with its job.
type entry struct {
	peer  string
	label string // in tables, usually the peer's name
	job   peer.Job
}

func alone(peer string, job peer.Job) entry { return entry{peer, peer, job} }

// allPeers returns entries of all peers but the floor, with the same job.
func allPeers(job peer.Job) (all []entry) {
	for _, name := range names[1:] {
		all = append(all, alone(name, job))
	}
	return all
}

// others returns entries of all peers but some and the floor.
func others(job peer.Job, without ...string) []entry {
	return slices.DeleteFunc(allPeers(job), func(e entry) bool { return slices.Contains(without, e.peer) })
}

func loop(kind string, clients, threads int) peer.Job {
	return peer.Job{Name: "loop", Kind: kind, Clients: clients, Threads: threads}
}

// shared returns a loop for one lock.
func shared(kind string, clients, threads int) peer.Job {
	j := loop(kind, clients, threads)
	j.Shared = true
	return j
}

// single returns a workload that compares an uncontended lock of a kind with the floor.
func single(kind string) workload {
	floor := loop("mutex", 1, 1)
	if kind == "multi" {
		floor.Kind = kind
	}
	all := []entry{alone("floor", floor)}
	if kind == "mutex" {
		all = append(all, allPeers(loop(kind, 1, 1))...)
	} else {
		all = append(all, others(loop(kind, 1, 1), "zk.Lock", "etcd")...)
	}
	return workload{name: kind, entries: all, commits: 2}
}

// contended returns a workload with one lock that clients acquire all the time.
func contended(name string, clients int) workload {
	return workload{name: name, entries: allPeers(shared("mutex", clients, 1)), commits: 2}
}

// handover returns a workload with one lock that is held until the next waiter only waits. Its
// floor is a node that is watched.
func handover(name string, clients int) workload {
	all := append([]entry{alone("floor", peer.Job{Name: "watch", Clients: clients})},
		allPeers(shared("mutex", clients, 1))...)
	return workload{name: name, entries: all, commits: 2, holds: true}
}

// counters returns the workload with one number that clients increment all the time.
func counters(clients int) workload {
	job := shared(peer.Counter, clients, 1)
	return workload{name: report.Counters(clients), commits: 1,
		entries: []entry{alone("docent", job), alone("curator", job)}}
}

// holding returns the workload with the given hold time, if its locks are held for a while.
func (w workload) holding(hold time.Duration) workload {
	w.entries = slices.Clone(w.entries)
	for i := range w.entries {
		if w.holds {
			w.entries[i].job.Hold = int(hold.Microseconds())
		}
	}
	return w
}

// waiters returns a workload with many waiters on one client.
func waiters() workload {
	queue := func(n int) peer.Job { return peer.Job{Name: "queue", Kind: "mutex", Threads: n} }
	return workload{name: report.Queue, alone: true, once: 3, commits: 2, entries: []entry{
		{"docent", report.QueueOf("docent", 50), queue(50)},
		{"docent", report.QueueOf("docent", 500), queue(500)},
		{"curator", report.QueueOf("curator", 500), queue(500)},
		{"zk.Lock", report.QueueOf("zk.Lock", 500), queue(500)},
		{"docent", report.QueueOf("docent", 5000), queue(5000)},
	}}
}

// plan returns the workloads for one server with the given setting, the mutex first. Work within
// the client is measured only where the server is fast.
func plan(s report.Setting, n many) []workload {
	distinct := func(job peer.Job) []entry { return append([]entry{alone("floor", job)}, allPeers(job)...) }
	all := []workload{
		single("mutex"), single("read"), single("write"), single("semaphore"), single("semaphore-mutex"),
		single("multi"), {name: report.Distinct, entries: distinct(loop("mutex", 1, 32)), commits: 2},
		fresh(report.NewPaths, peer.FreshPath), fresh(report.NewValues, peer.FreshValue),
		handover(report.Handover(2), 2), handover(report.Handover(16), 16),
		contended(report.Contended(2), 2), contended(report.Contended(16), 16),
	}
	if !s.Fsync && s.Servers == 1 {
		all = append(all, clientsOwn(n)...)
	}
	all = append(all,
		contended(report.Contended(64), 64),
		counters(1), counters(2), counters(16),
		workload{name: report.Readers, entries: others(shared("mixed", 16, 1), "kazoo", "zk.Lock", "etcd"), commits: 2},
	)
	if s.Servers > 1 {
		all = slices.DeleteFunc(all, func(w workload) bool {
			return !slices.Contains([]string{"mutex", report.Distinct, report.Contended(16), report.Handover(2)},
				w.name)
		})
	}
	if s.Servers > 1 && !s.Fsync {
		all = append(all, workload{name: report.Far, far: true, commits: 2,
			entries: append([]entry{alone("floor", loop("mutex", 1, 1))}, others(loop("mutex", 1, 1), "etcd")...)})
	}
	return all
}

// fresh returns a workload with an uncontended mutex whose value, or whose path, is new in each turn.
func fresh(name, what string) workload {
	job := loop("mutex", 1, 1)
	job.Fresh = what
	return workload{name: name, commits: 2, entries: others(job, "kazoo", "etcd")}
}

// clientsOwn returns the workloads that depend more on the client than on the servers.
func clientsOwn(n many) []workload {
	job := func(name string, threads int) peer.Job { return peer.Job{Name: name, Kind: "mutex", Threads: threads} }
	storm := peer.Job{Name: "storm", Kind: "mutex", Clients: 500}
	idle := peer.Job{Name: "idle", Clients: n.sessions}
	held, waiting := job("held", 10_000), job("waiting", 1000)
	return []workload{
		{name: report.Local, entries: others(shared("handoff", 1, 16), "kazoo", "zk.Lock", "etcd")},
		{name: report.Waiting, alone: true, once: 1, commits: 1,
			entries: []entry{alone("docent", waiting), alone("zk.Lock", waiting)}},
		{name: report.Held, alone: true, once: 1, commits: 1, entries: []entry{alone("docent", held)}},
		waiters(),
		{name: report.Storm, alone: true, once: 2, storm: true,
			entries: []entry{alone("docent", storm), alone("zk.Lock", storm)}},
		{name: report.Paths, alone: true, once: 1, inProcess: true,
			entries: []entry{alone("docent", job("paths", n.paths))}},
		{name: report.Idle, alone: true, once: 1, idle: true, entries: []entry{
			alone("docent", idle), alone("zk.Lock", idle)}},
	}
}
