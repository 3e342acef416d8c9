package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// activeFault is a fault of a siege while it lasts.
type activeFault struct {
	*siege
	random *rand.Rand
	name   string
}

// A fault begins, lasts a while, and ends. Several faults may concern the same server or worker at a
// time. A fault that cannot begin because of another one is not counted.
type fault struct {
	name string
	run  func(a *activeFault)
}

var faults = []fault{
	{"leader killed", func(a *activeFault) { a.kill(a.leader()) }},
	{"follower killed", func(a *activeFault) { a.kill(a.follower()) }},
	{"leader frozen", func(a *activeFault) { a.freeze(a.leader()) }},
	{"follower frozen", func(a *activeFault) { a.freeze(a.follower()) }},
	{"leader frozen that is a worker's only server", (*activeFault).freezeOnly},
	{"follower cut off", func(a *activeFault) { a.cut(a.follower()) }},
	{"leader cut off", (*activeFault).cutLeader},
	{"worker paused", (*activeFault).pause},
	{"worker killed", (*activeFault).killWorker},
	{"worker's link stalled", (*activeFault).stall},
	{"worker's connections dropped", (*activeFault).dropConnections},
	{"session there and back", (*activeFault).thereAndBack},
	{"session there and back", (*activeFault).thereAndBack}, // twice: chance seldom meets its moments
	{"silence, then the server cut off", (*activeFault).silence},
	{"silence, then the server cut off", (*activeFault).silence},
}

// wait waits for a random time: a fault, or a part of it, lasts for so long.
func (a *activeFault) wait(from, to time.Duration) {
	time.Sleep(from + time.Duration(a.random.Int64N(int64(to-from)))) // the faults of a siege are at random moments
}

func (a *activeFault) leader() *ensemble.Server {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if leader, err := a.ensemble.Leader(ctx); err == nil {
		return leader
	}
	return a.server()
}

func (a *activeFault) server() *ensemble.Server { return a.ensemble.Servers()[a.random.IntN(3)] }

func (a *activeFault) follower() *ensemble.Server {
	leader := a.leader()
	for {
		if s := a.server(); s != leader {
			return s
		}
	}
}

func (a *activeFault) worker() *siegeProcess {
	all := a.all()
	return all[a.random.IntN(len(all))]
}

// came counts the fault and records it.
func (a *activeFault) came(format string, args ...any) {
	a.total.fault(a.name)
	a.note("%s: "+format, append([]any{a.name}, args...)...)
}

func (a *activeFault) kill(s *ensemble.Server) {
	if !s.Running() || s.Kill() != nil {
		return
	}
	a.came("server %d", s.ID())
	a.wait(0, 4*time.Second)
	if !s.Running() {
		_ = s.Start(testzk.Context(a.t)) // another fault may have started it; repair finds out
	}
}

func (a *activeFault) freeze(s *ensemble.Server) {
	if s.Pause() != nil {
		return
	}
	a.came("server %d", s.ID())
	a.wait(300*time.Millisecond, 6*time.Second)
	_ = s.Resume() // not if it was killed meanwhile
}

// freezeOnly freezes the leader while it is the only server that a worker can reach, for up to two
// thirds of a timeout.
func (a *activeFault) freezeOnly() {
	leader, w := a.leader(), a.worker()
	w.confine(leader)
	a.wait(500*time.Millisecond, time.Second)
	if leader.Pause() == nil {
		a.came("server %d, worker %d", leader.ID(), w.number)
		a.wait(siegeTimeout/6, siegeTimeout*2/3)
		_ = leader.Resume()
		a.wait(500*time.Millisecond, 2*time.Second)
		w.refuse()
		a.wait(0, siegeTimeout)
	}
	w.allow()
}

// cut keeps back what a server and the leader send to each other.
func (a *activeFault) cut(s *ensemble.Server) {
	link := a.servers.link(s, a.leader())
	if link == nil {
		return // it leads by now
	}
	a.came("server %d", s.ID())
	a.hold(link)
	a.wait(300*time.Millisecond, 8*time.Second)
	link.release()
}

func (a *activeFault) cutLeader() {
	leader := a.leader()
	a.came("server %d", leader.ID())
	var links []*relay
	for _, s := range a.ensemble.Servers() {
		if s != leader {
			links = append(links, a.servers.link(s, leader))
		}
	}
	for _, link := range links {
		a.hold(link)
	}
	a.wait(300*time.Millisecond, 6*time.Second)
	for _, link := range links {
		link.release()
	}
}

// hold keeps back one direction or both.
func (a *activeFault) hold(r *relay) {
	switch a.random.IntN(4) {
	case 0:
		r.up.hold()
	case 1:
		r.down.hold()
	default:
		r.hold()
	}
}

func (a *activeFault) pause() {
	w := a.worker()
	a.came("worker %d", w.number)
	w.stop()
	a.wait(300*time.Millisecond, siegeTimeout)
	w.cont()
}

// killWorker kills a worker that keeps nodes, and starts it again.
func (a *activeFault) killWorker() {
	w := a.keepers[a.random.IntN(len(a.keepers))]
	if !w.killing.TryLock() {
		return
	}
	defer w.killing.Unlock()
	a.came("worker %d", w.number)
	w.kill()
	a.wait(0, siegeTimeout*3/2)
	a.startKeeper(w)
}

func (a *activeFault) stall() {
	w := a.worker()
	a.came("worker %d", w.number)
	for _, relay := range w.relays {
		a.hold(relay)
	}
	a.wait(300*time.Millisecond, 8*time.Second)
	for _, relay := range w.relays {
		relay.release()
	}
}

func (a *activeFault) dropConnections() {
	a.came("all workers")
	for range 1 + a.random.IntN(8) {
		w := a.worker()
		w.relays[a.random.IntN(len(w.relays))].drop()
		a.wait(0, 500*time.Millisecond)
	}
}

// thereAndBack lets requests of all workers wait between a server and the leader. Meanwhile it moves
// the sessions to other servers and back again.
func (a *activeFault) thereAndBack() {
	first := a.follower()
	link := a.servers.link(first, a.leader())
	if link == nil {
		return
	}
	confine := func(w *siegeProcess) { w.confine(first) }
	avoid := func(w *siegeProcess) { w.avoid(first) }
	a.move(confine, func(w *siegeProcess) bool { return w.relayTo(first).down.used() })
	a.wait(0, 500*time.Millisecond)
	link.up.hold()
	a.wait(50*time.Millisecond, 500*time.Millisecond)
	there := a.move(avoid, (*siegeProcess).answered)
	a.wait(0, time.Second)
	back := a.move(confine, func(w *siegeProcess) bool { return w.relayTo(first).up.used() })
	if there > 0 && back > 0 {
		a.came("server %d, %d and %d workers", first.ID(), there, back)
	}
	a.deliver(link)
	a.wait(0, time.Second)
	a.move((*siegeProcess).allow, (*siegeProcess).answered)
}

// deliver lets a link go on while the leader has much to do.
func (a *activeFault) deliver(link *relay) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if stopLoad, err := load(ctx, a.fresh); err == nil {
		defer stopLoad()
	}
	link.release()
	a.wait(50*time.Millisecond, 200*time.Millisecond)
}

// move changes which servers workers can reach, and waits until done is true of all workers. It waits
// for some seconds at most, because other faults may prevent that. It returns of how many workers done
// is true.
func (a *activeFault) move(change func(w *siegeProcess), done func(w *siegeProcess) bool) (n int) {
	for _, w := range a.workers {
		change(w)
	}
	for range 300 {
		n = 0
		for _, w := range a.workers {
			if done(w) {
				n++
			}
		}
		if n == len(a.workers) {
			return n
		}
		time.Sleep(10 * time.Millisecond) // a poll
	}
	return n
}

// silence pauses a worker, or stalls its link, and then cuts its server off for about the session
// timeout.
func (a *activeFault) silence() {
	server, w := a.follower(), a.worker()
	link := a.servers.link(server, a.leader())
	if link == nil {
		return
	}
	w.confine(server)
	a.wait(siegeTimeout/6, siegeTimeout/3)
	how := a.random.IntN(3)
	relays := []*way{w.relayTo(server).up, w.relayTo(server).down}
	if how == 0 {
		w.stop()
	} else {
		relays[how-1].hold()
	}
	a.wait(siegeTimeout/4, siegeTimeout/2)
	if how == 0 {
		w.cont()
	} else {
		relays[how-1].release()
	}
	a.wait(0, 250*time.Millisecond)
	a.came("server %d, worker %d", server.ID(), w.number)
	link.hold()
	a.wait(siegeTimeout/2, siegeTimeout*5/4)
	link.release()
	w.allow()
}

func (w *siegeProcess) relayTo(s *ensemble.Server) *relay { return w.relays[s.ID()-1] }

// answered reports whether a server has answered the worker on an open connection.
func (w *siegeProcess) answered() bool {
	return slices.ContainsFunc(w.relays, func(relay *relay) bool { return relay.down.used() })
}

// confine leaves a worker no server but one.
func (w *siegeProcess) confine(to *ensemble.Server) {
	w.relayTo(to).allow()
	for _, relay := range w.relays {
		if relay != w.relayTo(to) {
			relay.refuse()
		}
	}
}

// avoid leaves a worker all servers but one.
func (w *siegeProcess) avoid(from *ensemble.Server) {
	w.allow()
	w.relayTo(from).refuse()
}

func (w *siegeProcess) refuse() {
	for _, relay := range w.relays {
		relay.refuse()
	}
}

func (w *siegeProcess) allow() {
	for _, relay := range w.relays {
		relay.allow()
	}
}
