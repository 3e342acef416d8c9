package persistent

import "sync"

// places has the Node of each fixed path of each client, from Start until its goroutine ends. In
// one session two Nodes at one path could not tell their nodes apart.
var places struct {
	mu    sync.Mutex
	nodes map[any]*Node // by the key of client and path
}

// takePlace makes n the Node of its path. before is the last one, which is closed but may still
// look for late nodes. It fails if that one is not closed.
func (n *Node) takePlace() (before *Node, err error) {
	if n.cfg.sequential {
		return nil, nil
	}
	places.mu.Lock()
	defer places.mu.Unlock()
	before = places.nodes[n.key]
	if before != nil {
		if before.running.Err() == nil {
			return nil, ErrOccupied
		}
		before.yield()
	}
	if places.nodes == nil {
		places.nodes = map[any]*Node{}
	}
	places.nodes[n.key] = n
	return before, nil
}

// leavePlace undoes takePlace, unless another Node has taken the place.
func (n *Node) leavePlace() {
	places.mu.Lock()
	defer places.mu.Unlock()
	if places.nodes[n.key] == n {
		delete(places.nodes, n.key)
	}
}
