package chaos

import (
	"context"
	"math/rand/v2"
	"time"

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
	{"rolling restart", (*activeFault).restartAll},
	{"server with older data", func(a *activeFault) { a.loseData(false) }},
	{"server without data", func(a *activeFault) { a.loseData(true) }},
	{"leader's disk stalled", func(a *activeFault) { a.stallDisk(a.leader()) }},
	{"follower's disk stalled", func(a *activeFault) { a.stallDisk(a.follower()) }},
	{"follower cut off", func(a *activeFault) { a.cut(a.follower()) }},
	{"leader cut off", (*activeFault).cutLeader},
	{"slow link between servers", (*activeFault).slowServers},
	{"links between servers reset", (*activeFault).resetServers},
	{"worker paused", (*activeFault).pause},
	{"worker paused", (*activeFault).pause}, // twice: a pause matters if the worker has a hold
	{"worker that keeps nodes killed", func(a *activeFault) { a.killWorker(a.keepers, a.startKeeper) }},
	{"worker that contends killed", func(a *activeFault) { a.killWorker(a.workers, a.startContender) }},
	{"worker's link stalled", (*activeFault).stall},
	{"worker's link stalled", (*activeFault).stall},
	{"worker's link slow", (*activeFault).slowWorker},
	{"workers cut off from some servers", (*activeFault).cutSome},
	{"workers' connections dropped", func(a *activeFault) { a.endConnections((*relay).drop) }},
	{"workers' connections reset", func(a *activeFault) { a.endConnections((*relay).reset) }},
	{"session expired, and its end not told", (*activeFault).expire},
	{"session there and back", (*activeFault).thereAndBack},
	{"session there and back", (*activeFault).thereAndBack}, // chance seldom meets its moments
	{"silence, then the server cut off", (*activeFault).silence},
	{"silence, then the server cut off", (*activeFault).silence},
}

// between returns a random time.
func (a *activeFault) between(from, to time.Duration) time.Duration {
	return from + time.Duration(a.random.Int64N(int64(to-from)))
}

// wait waits for a random time: a fault, or a part of it, lasts for so long. It returns at once when
// the round is given up.
func (a *activeFault) wait(from, to time.Duration) {
	select {
	case <-time.After(a.between(from, to)): // the faults of a siege are at random moments
	case <-a.cancelled:
	}
}

func (a *activeFault) leader() *ensemble.Server {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if leader, err := a.ensemble.Leader(ctx); err == nil {
		return leader
	}
	return a.server()
}

func (a *activeFault) server() *ensemble.Server {
	all := a.ensemble.Servers()
	return all[a.random.IntN(len(all))]
}

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

// waitServing waits until all servers that run serve, for some seconds at most: other faults may
// prevent that.
func (a *activeFault) waitServing() {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	_ = a.ensemble.WaitReady(ctx)
}
