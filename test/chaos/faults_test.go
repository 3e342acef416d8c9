package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// activeFault is a fault of a siege while it lasts.
type activeFault struct {
	*siege
	random *rand.Rand
	fault
}

// A fault begins, lasts a while, and ends. Several faults may concern the same server or worker at a
// time. A fault that has no effect, because of another one or by chance, is not counted.
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
	{diskOfLeader, func(a *activeFault) { a.stallDisk(a.leader()) }},
	{diskOfFollower, func(a *activeFault) { a.stallDisk(a.follower()) }},
	{"follower cut off", (*activeFault).cut},
	{"leader cut off", (*activeFault).cutLeader},
	{"leader partitioned", (*activeFault).partitionLeader},
	{"some servers partitioned", (*activeFault).partitionSome},
	{"leader and a follower partitioned", (*activeFault).partitionTwo},
	{"slow link between servers", (*activeFault).slowServers},
	{"links between servers reset", (*activeFault).resetServers},
	{"worker paused", func(a *activeFault) { a.pause(a.worker()) }},
	{"worker paused", func(a *activeFault) { a.pause(a.worker()) }}, // a pause matters if the worker has a hold
	{"elected worker paused", func(a *activeFault) { a.pause(a.elected()) }},
	{"elected worker cut off", func(a *activeFault) { a.stall(a.elected()) }},
	{"worker that keeps nodes killed", func(a *activeFault) { a.killWorker(a.keepers, a.startKeeper) }},
	{"worker that contends killed", func(a *activeFault) { a.killWorker(a.workers, a.startContender) }},
	{"worker's link stalled", func(a *activeFault) { a.stall(a.worker()) }},
	{"worker's link stalled", func(a *activeFault) { a.stall(a.worker()) }},
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

// The faults that need servers that wait for their disks.
const (
	diskOfLeader   = "leader's disk stalled"
	diskOfFollower = "follower's disk stalled"
)

// How many faults a round has, and how many come at a time. With more at a time there would seldom be a
// quorum, and locks would seldom be granted.
const (
	leastFaults  = 8
	mostFaults   = 20
	leastAtATime = 3
	mostAtATime  = 5
)

// makeFaults makes faults at random, a few at a time, and more until one has had an effect.
func (s *siege) makeFaults() {
	came := s.faultsCame()
	next := make(chan *activeFault, mostFaults)
	for range leastFaults + s.random.IntN(mostFaults-leastFaults+1) {
		next <- s.draw()
	}
	close(next)
	var running sync.WaitGroup
	for range leastAtATime + s.random.IntN(mostAtATime-leastAtATime+1) {
		running.Go(func() {
			for a := range next {
				a.make()
			}
		})
	}
	running.Wait()
	for range faults {
		if s.faultsCame() > came || s.isCancelled() {
			return
		}
		s.draw().make()
	}
	require.Greater(s.t, s.faultsCame(), came, "no fault has an effect")
}

func (s *siege) faultsCame() (n int) {
	s.total.set(func() { n = s.total.faultCountLocked() })
	return n
}

// draw returns a fault that is to be made. All come once before any of them comes again.
func (s *siege) draw() *activeFault {
	if len(s.deck) == 0 {
		s.deck = s.random.Perm(len(faults))
	}
	next := faults[s.deck[0]]
	s.deck = s.deck[1:]
	return &activeFault{siege: s, random: another(s.random), fault: next}
}

// make makes the fault after a while, and returns when it is over.
func (a *activeFault) make() {
	a.wait(0, time.Second)
	if a.isCancelled() {
		return
	}
	if a.disks != nil || a.name != diskOfLeader && a.name != diskOfFollower {
		a.total.set(func() { a.total.tried[a.name]++ })
	}
	a.record.note("begin %s", a.name)
	a.run(a)
	a.record.note("end %s", a.name)
}

// isCancelled reports whether the round is given up.
func (s *siege) isCancelled() bool {
	select {
	case <-s.cancelled:
		return true
	default:
		return false
	}
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

// leader returns the leader, or nil if other faults prevent that there is one.
func (a *activeFault) leader() *ensemble.Server {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	leader, _ := a.ensemble.Leader(ctx)
	return leader
}

func (a *activeFault) server() *ensemble.Server {
	all := a.ensemble.Servers()
	return all[a.random.IntN(len(all))]
}

// roles returns the leader and a follower, or nil if there is no leader.
func (a *activeFault) roles() (leader, follower *ensemble.Server) {
	if leader = a.leader(); leader == nil {
		return nil, nil
	}
	for follower = a.server(); follower == leader; {
		follower = a.server()
	}
	return leader, follower
}

func (a *activeFault) follower() *ensemble.Server {
	_, follower := a.roles()
	return follower
}

func (a *activeFault) worker() *siegeProcess {
	all := a.all()
	return all[a.random.IntN(len(all))]
}

// elected returns the worker that has won an election or has a latch for a while, or nil if there is
// none.
func (a *activeFault) elected() *siegeProcess {
	path := []string{siegeElection, siegeLatch}[a.random.IntN(2)]
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	before := int64(0)
	for ctx.Err() == nil {
		first := a.first(ctx, path)
		if first.Holds && first.Token == before { // most terms are shorter
			return a.owner(first.Session)
		}
		before = first.Token
		pause(ctx, 300*time.Millisecond)
	}
	return nil
}

// first returns the first candidate of an election, or the zero value if none is known.
func (a *activeFault) first(ctx context.Context, path string) recipes.Participant {
	for first, err := range leader.Observe(ctx, a.fresh, path) {
		if err == nil {
			return first
		}
	}
	return recipes.Participant{}
}

// owner returns the worker with a session, or nil if there is none.
func (a *activeFault) owner(session int64) *siegeProcess {
	i := slices.IndexFunc(a.workers, func(w *siegeProcess) bool { return w.session() == session })
	if i < 0 {
		return nil
	}
	return a.workers[i]
}

// came counts the fault and records it.
func (a *activeFault) came(format string, args ...any) {
	a.total.fault(a.name)
	a.note("%s: "+format, append([]any{a.name}, args...)...)
}

// waitServing waits until all servers that run serve, for some seconds at most: other faults may
// prevent that.
func (a *activeFault) waitServing() {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	_ = a.ensemble.WaitReady(ctx)
}
