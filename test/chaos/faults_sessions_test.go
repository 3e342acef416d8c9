package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// thereAndBack lets requests of all workers wait between a server and the leader. Meanwhile it moves
// the sessions to other servers and back again.
func (a *activeFault) thereAndBack() {
	leader, first := a.roles()
	if leader == nil {
		return
	}
	link := a.servers.link(first, leader)
	confine := func(w *siegeProcess) { w.confine(first) }
	avoid := func(w *siegeProcess) { w.avoid(first) }
	a.move(confine, func(w *siegeProcess) bool { return w.relayTo(first).down.used() })
	a.wait(0, 500*time.Millisecond)
	link.up.hold()
	a.wait(50*time.Millisecond, 500*time.Millisecond)
	there := a.move(avoid, (*siegeProcess).answered)
	a.wait(0, time.Second)
	back := a.move(confine, func(w *siegeProcess) bool { return w.relayTo(first).up.used() })
	if there > 0 && back > 0 && link.up.keepsBack() {
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
	w := a.worker()
	leader, server := a.roles()
	if leader == nil || !w.pausing.TryLock() {
		return
	}
	defer w.pausing.Unlock()
	link := a.servers.link(server, leader)
	w.confine(server)
	a.wait(siegeTimeout/6, siegeTimeout/3)
	how, there := a.random.IntN(3), w.relayTo(server).session() != 0
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
	link.hold()
	a.wait(siegeTimeout/2, siegeTimeout*5/4)
	if there && link.keepsBack() {
		a.came("server %d, worker %d", server.ID(), w.number)
	}
	link.release()
	w.allow()
}

// expire cuts a worker off until its session has expired. After that its requests arrive, and the
// answers, which tell so, do not.
func (a *activeFault) expire() {
	w := a.worker()
	session := w.session()
	for _, relay := range w.relays {
		relay.hold()
	}
	a.wait(siegeTimeout, siegeTimeout*3/2)
	if session != 0 && a.isExpired(session) {
		a.came("worker %d, session %#x", w.number, session)
	}
	for _, relay := range w.relays {
		relay.up.release()
	}
	for range 1 + a.random.IntN(4) {
		a.wait(200*time.Millisecond, 2*time.Second)
		for _, relay := range w.relays {
			relay.drop()
		}
	}
	for _, relay := range w.relays {
		relay.release()
	}
}

// isExpired reports whether the leader is known to have expired a session.
func (a *activeFault) isExpired(session int64) bool {
	leader := a.leader()
	if leader == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	all, err := leader.Command(ctx, "dump")
	return err == nil && strings.HasPrefix(all, "SessionTracker dump") &&
		!strings.Contains(all, fmt.Sprintf("%#x", session))
}
