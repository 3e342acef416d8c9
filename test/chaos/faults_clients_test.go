package chaos

import (
	"slices"
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

func (a *activeFault) pause() {
	w := a.worker()
	a.came("worker %d", w.number)
	w.stop()
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
	a.came("worker %d", w.number)
	w.kill()
	a.wait(0, siegeTimeout*3/2)
	start(w)
}

// startContender starts a worker again, which then contends as the others do.
func (s *siege) startContender(w *siegeProcess) {
	s.startWorker(w)
	_ = w.order(orderGo + s.counterPath) // if it has ended, it does not come to rest
}

func (a *activeFault) stall() {
	w := a.worker()
	a.came("worker %d", w.number)
	for _, relay := range w.relays {
		a.hold(relay)
	}
	a.wait(300*time.Millisecond, siegeTimeout*3/2)
	for _, relay := range w.relays {
		relay.release()
	}
}

// slowWorker makes the ways of a worker to all servers slow.
func (a *activeFault) slowWorker() {
	w, p := a.worker(), a.pace()
	a.came("worker %d, %v", w.number, p)
	for _, relay := range w.relays {
		a.slow(relay, p)
	}
	a.wait(time.Second, 10*time.Second)
	for _, relay := range w.relays {
		relay.slow(pace{})
	}
}

// cutSome cuts some of the ways between workers and servers: what is sent waits, or no connection is
// made.
func (a *activeFault) cutSome() {
	a.came("all workers")
	var changed []*relay
	refused := a.random.IntN(2) == 0
	for _, w := range a.all() {
		for _, relay := range w.relays {
			switch {
			case a.random.IntN(2) == 0:
				continue
			case refused:
				relay.refuse()
			default:
				a.hold(relay)
			}
			changed = append(changed, relay)
		}
	}
	a.wait(300*time.Millisecond, siegeTimeout)
	for _, relay := range changed {
		relay.allow()
		relay.release()
	}
}

// endConnections ends connections of workers, one after another.
func (a *activeFault) endConnections(end func(*relay)) {
	a.came("all workers")
	for range 1 + a.random.IntN(8) {
		w := a.worker()
		end(w.relays[a.random.IntN(len(w.relays))])
		a.wait(0, 500*time.Millisecond)
	}
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
