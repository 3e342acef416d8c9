package chaos

import (
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

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

// pace returns the pace of a slow link: late, or with little room.
func (a *activeFault) pace() pace {
	if a.random.IntN(2) == 0 {
		return pace{delay: a.between(20*time.Millisecond, 400*time.Millisecond)}
	}
	return pace{rate: 4_000 + a.random.IntN(100_000)}
}

// slowServers makes the way between a follower and the leader slow, in one direction or both.
func (a *activeFault) slowServers() {
	link, p := a.servers.link(a.follower(), a.leader()), a.pace()
	if link == nil {
		return // it leads by now
	}
	a.came("%v", p)
	a.slow(link, p)
	a.wait(time.Second, 10*time.Second)
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
	a.came("all servers")
	for range 1 + a.random.IntN(5) {
		if link := a.servers.link(a.follower(), a.leader()); link != nil {
			link.reset()
		}
		a.wait(0, 2*time.Second)
	}
}
