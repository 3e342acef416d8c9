package chaos

import (
	"slices"
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// cut keeps back what a follower and the leader send to each other.
func (a *activeFault) cut() {
	leader, follower := a.roles()
	if leader == nil {
		return
	}
	link := a.servers.link(follower, leader)
	a.hold(link)
	a.wait(300*time.Millisecond, 8*time.Second)
	if link.keepsBack() {
		a.came("server %d", follower.ID())
	}
	link.release()
}

func (a *activeFault) cutLeader() {
	leader := a.leader()
	if leader == nil {
		return
	}
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
	if keepBack(links) {
		a.came("server %d", leader.ID())
	}
	release(links)
}

// keepBack reports whether something is kept back by relays.
func keepBack(relays []*relay) bool { return slices.ContainsFunc(relays, (*relay).keepsBack) }

func release(relays []*relay) {
	for _, relay := range relays {
		relay.release()
	}
}

// partition keeps back all that some servers and others send to each other, also for elections.
func (a *activeFault) partition(some, others []*ensemble.Server) {
	var quorum, elections []*relay
	for _, s := range some {
		for _, other := range others {
			pair := a.servers.pair(s, other)
			quorum, elections = append(quorum, pair.quorum...), append(elections, pair.elections...)
		}
	}
	for _, relay := range slices.Concat(quorum, elections) {
		relay.hold()
	}
	a.wait(time.Second, 14*time.Second)
	if keepBack(quorum) {
		cut := keepBack(elections)
		a.came("servers %v from %v, an election is cut: %t", numbers(some), numbers(others), cut)
		if cut {
			a.total.set(func() { a.total.elections++ })
		}
	}
	release(quorum)
	release(elections)
}

func numbers(of []*ensemble.Server) (all []int) {
	for _, s := range of {
		all = append(all, s.ID())
	}
	return all
}

// partitionLeader cuts off the leader from all other servers.
func (a *activeFault) partitionLeader() {
	leader := a.leader()
	if leader == nil {
		return
	}
	others := slices.DeleteFunc(a.ensemble.Servers(), func(s *ensemble.Server) bool { return s == leader })
	a.partition([]*ensemble.Server{leader}, others)
}

// partitionSome cuts off some servers, less than half of them, from the others.
func (a *activeFault) partitionSome() {
	all := a.ensemble.Servers()
	a.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	some := 1 + a.random.IntN((len(all)-1)/2)
	a.partition(all[:some], all[some:])
}

// partitionTwo cuts off the leader and a follower from each other, and from no other server.
func (a *activeFault) partitionTwo() {
	if leader, follower := a.roles(); leader != nil {
		a.partition([]*ensemble.Server{leader}, []*ensemble.Server{follower})
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

// pace returns the pace of a slow link: late, or with little room.
func (a *activeFault) pace() pace {
	if a.random.IntN(2) == 0 {
		return pace{delay: a.between(20*time.Millisecond, 400*time.Millisecond)}
	}
	return pace{rate: 4_000 + a.random.IntN(100_000)}
}

// slowServers makes the way between a follower and the leader slow, in one direction or both.
func (a *activeFault) slowServers() {
	leader, follower := a.roles()
	if leader == nil {
		return
	}
	link, p := a.servers.link(follower, leader), a.pace()
	a.slow(link, p)
	a.wait(time.Second, 10*time.Second)
	if link.hasSlowed() {
		a.came("server %d, %v", follower.ID(), p)
	}
	link.slow(pace{})
}

func (a *activeFault) slow(r *relay, p pace) {
	switch a.random.IntN(4) {
	case 0:
		r.up.slow(p)
	case 1:
		r.down.slow(p)
	default:
		r.slow(p)
	}
}

// resetServers resets the connections of followers to the leader, again and again.
func (a *activeFault) resetServers() {
	n := 0
	for range 1 + a.random.IntN(5) {
		if leader, follower := a.roles(); leader != nil && a.servers.link(follower, leader).reset() {
			n++
		}
		a.wait(0, 2*time.Second)
	}
	if n > 0 {
		a.came("%d connections", n)
	}
}
