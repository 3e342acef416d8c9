package chaos

import (
	"slices"
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// pause stops the process of a worker, which may be nil, and lets it go on after a while.
func (a *activeFault) pause(w *siegeProcess) {
	if w == nil || !w.pausing.TryLock() { // the other fault would let it go on
		return
	}
	defer w.pausing.Unlock()
	if !w.stop() {
		return
	}
	a.came("worker %d", w.number)
	a.wait(300*time.Millisecond, siegeTimeout*3/2)
	w.cont()
}

// killWorker kills one of some workers, and starts it again.
func (a *activeFault) killWorker(of []*siegeProcess, start func(*siegeProcess)) {
	w := of[a.random.IntN(len(of))]
	if !w.killing.TryLock() {
		return
	}
	defer w.killing.Unlock()
	if err := w.kill(); err != nil {
		a.t.Error(err)
		return
	}
	a.came("worker %d", w.number)
	a.wait(0, siegeTimeout*3/2)
	start(w)
}

// startContender starts a worker again, which then contends as the others do.
func (s *siege) startContender(w *siegeProcess) {
	s.startWorker(w)
	_ = w.order(orderGo + s.counterPath) // if it has ended, it does not come to rest
}

// stall keeps back what a worker, which may be nil, and all servers send to each other.
func (a *activeFault) stall(w *siegeProcess) {
	if w == nil {
		return
	}
	for _, relay := range w.relays {
		a.hold(relay)
	}
	a.wait(300*time.Millisecond, siegeTimeout*3/2)
	if keepBack(w.relays) {
		a.came("worker %d", w.number)
	}
	release(w.relays)
}

// slowWorker makes the ways of a worker to all servers slow.
func (a *activeFault) slowWorker() {
	w, p := a.worker(), a.pace()
	for _, relay := range w.relays {
		a.slow(relay, p)
	}
	a.wait(time.Second, 10*time.Second)
	if slices.ContainsFunc(w.relays, (*relay).hasSlowed) {
		a.came("worker %d, %v", w.number, p)
	}
	for _, relay := range w.relays {
		relay.slow(pace{})
	}
}

// cutSome cuts some of the ways between workers and servers: what is sent waits, or no connection is
// made.
func (a *activeFault) cutSome() {
	var changed []*relay
	refused, ended := a.random.IntN(2) == 0, 0
	for _, w := range a.all() {
		for _, relay := range w.relays {
			switch {
			case a.random.IntN(2) == 0:
				continue
			case !refused:
				a.hold(relay)
			case relay.refuse():
				ended++
			}
			changed = append(changed, relay)
		}
	}
	a.wait(300*time.Millisecond, siegeTimeout)
	if ended > 0 || keepBack(changed) {
		a.came("all workers, %d connections ended", ended)
	}
	for _, relay := range changed {
		relay.allow()
		relay.release()
	}
}

// endConnections ends connections of workers, one after another.
func (a *activeFault) endConnections(end func(*relay) bool) {
	n := 0
	for range 1 + a.random.IntN(8) {
		for _, relay := range a.worker().relays {
			if end(relay) {
				n++
			}
		}
		a.wait(0, 500*time.Millisecond)
	}
	if n > 0 {
		a.came("%d connections", n)
	}
}

// session returns the session of the worker's connection, or 0 if it has none.
func (w *siegeProcess) session() int64 {
	for _, relay := range w.relays {
		if session := relay.session(); session != 0 {
			return session
		}
	}
	return 0
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
