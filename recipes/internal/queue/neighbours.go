package queue

import (
	"sync"

	"github.com/docent-zk/docent/framework"
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

// stand is where a place is. Two with the same rules of who is in the way are in the same line.
type stand struct {
	line    any
	session int64
	seq     int32
}

// neighbours are all places that have a watch on their nodes. One leaves when its watch fires, as it does when the node goes, or the
// session is over. One lock serves all: nothing waits under it.
var neighbours = struct {
	mu  sync.Mutex
	all map[stand]neighbour
}{all: map[stand]neighbour{}}

// settled reports whether who is ahead of a place leaves nothing, and nobody else does.
func (r Rules) settled() bool { return !r.Replaced && len(r.Pass) == 0 }

// stand is where the place with a given number would be in our line; false if the numbers do not tell who is the next.
func (p *place) stand(seq int32) (stand, bool) {
	known := p.line.rules.settled() && !p.atEnd() && !member{seq: seq}.atEnd()
	return stand{p.line.key, p.session.ID(), seq}, known
}

// settle lets those behind us know of us, and of our watch.
func (p *place) settle() {
	at, ok := p.stand(p.seq)
	if !ok {
		return
	}
	watch := p.watch
	neighbours.mu.Lock()
	known := neighbours.all[at].watch == watch
	neighbours.all[at] = neighbour{p, watch}
	neighbours.mu.Unlock()
	if !known {
		watch.Then(func() { unsettle(at, watch) })
	}
}

func unsettle(at stand, watch *framework.Watch) {
	neighbours.mu.Lock()
	defer neighbours.mu.Unlock()
	if neighbours.all[at].watch == watch {
		delete(neighbours.all, at)
	}
}

// neighbour is the place with a given number, if it is in line in our session, and we know if it goes.
func (p *place) neighbour(seq int32) (n neighbour, ok bool) {
	at, ok := p.stand(seq)
	if !ok {
		return neighbour{}, false
	}
	neighbours.mu.Lock()
	n, ok = neighbours.all[at]
	neighbours.mu.Unlock()
	if !ok || !n.watch.Unbroken() {
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
