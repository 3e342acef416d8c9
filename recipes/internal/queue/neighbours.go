package queue

import (
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// Those of one session who stand in one line one behind the other know of each other. It saves the one behind to look who is ahead, and
// to be told: it need not read the line, which may be long, nor the node ahead, which that one watches already. Why it can rely on that:
//
//   - Who is ahead only becomes fewer, and nobody comes between two nodes. So once a place has been at the front, all who have ever been
//     ahead of it are gone, whatever has become of itself; and when it goes, nobody is ahead of who was next behind it. If it goes before,
//     the line has to be read.
//   - It was the next: a list says so, or its number is the one before, for the servers number the nodes of one parent, each with another
//     number. That it is the same parent, and not one that was deleted and made again, shows in its watch being unbroken when ours
//     is there: so its node is there too, and has been since before.
//   - It is gone: its own watch says so, in the order in which the servers tell of all that happens. If ours had gone before, our watch
//     would have fired before. After a reconnect they tell in no order, and the line has to be read.
//
// Where a node may leave another at its place, or one that does not stand in the way may put one there that does, none of that holds.

// neighbour is a place whose node is there as long as the watch has not fired.
type neighbour struct {
	*place
	watch *framework.Watch // its own; nil: there is no neighbour
}

// neighbours are all places that have a watch on their nodes, by line and session, and number. One leaves when its watch fires, as it
// does when the node goes, or the session is over. Two lines with the same rules of who is in the way are the same. One lock serves all:
// nothing waits under it.
var neighbours = struct {
	mu  sync.Mutex
	all map[listKey]map[int32]neighbour
}{all: map[listKey]map[int32]neighbour{}}

// settled reports whether who is ahead of a place leaves nothing, and nobody else does.
func (r Rules) settled() bool { return !r.Replaced && len(r.Pass) == 0 }

// tells reports whether numbers tell who is the next in our line, and that one's does.
func (p *place) tells(seq int32) bool {
	return p.line.rules.settled() && !p.atEnd() && !member{seq: seq}.atEnd()
}

func (l *Line) in(s *framework.Session) listKey { return listKey{l.key, s.ID()} }

// accompanied reports whether a place of the session is known to be in the line.
func (l *Line) accompanied(s *framework.Session) bool {
	neighbours.mu.Lock()
	defer neighbours.mu.Unlock()
	return len(neighbours.all[l.in(s)]) > 0
}

// settle lets those behind us know of us, and of our watch.
func (p *place) settle() {
	if !p.tells(p.seq) {
		return
	}
	at, watch := p.line.in(p.session), p.watch
	neighbours.mu.Lock()
	known := neighbours.all[at][p.seq].watch == watch
	if neighbours.all[at] == nil {
		neighbours.all[at] = map[int32]neighbour{}
	}
	neighbours.all[at][p.seq] = neighbour{p, watch}
	neighbours.mu.Unlock()
	if !known {
		bridge.OfWatch(watch).Then(func() { unsettle(at, p.seq, watch) })
	}
}

func unsettle(at listKey, seq int32, watch *framework.Watch) {
	neighbours.mu.Lock()
	defer neighbours.mu.Unlock()
	all := neighbours.all[at]
	if all[seq].watch == watch {
		delete(all, seq)
	}
	if len(all) == 0 {
		delete(neighbours.all, at)
	}
}

// neighbour is the place with a given number, if it is in line in our session, and we know if it goes.
func (p *place) neighbour(seq int32) (n neighbour, ok bool) {
	if !p.tells(seq) {
		return neighbour{}, false
	}
	neighbours.mu.Lock()
	n, ok = neighbours.all[p.line.in(p.session)][seq]
	neighbours.mu.Unlock()
	if !ok || !bridge.OfWatch(n.watch).Unbroken() {
		return neighbour{}, false
	}
	return n, true
}

// follow is the view of who has just come, and has a neighbour ahead.
func (p *place) follow() (view, bool) {
	n, ok := p.neighbour(p.seq - 1)
	if !ok {
		return view{}, false
	}
	return view{last: n.member, near: n}, true
}

// meet notes in a view that the last of those ahead is a neighbour.
func (p *place) meet(v *view) {
	if v.clear() || v.second.name != "" && v.second.seq == v.last.seq {
		return // with somebody else beside it, who must go too
	}
	if n, ok := p.neighbour(v.last.seq); ok && n.name == v.last.name {
		v.near = n
	}
}
