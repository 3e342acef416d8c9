package sqllock

import "sync"

// maxNames is how many names are remembered.
const maxNames = 10_000

// names remembers names. It may forget them.
type names struct {
	mu  sync.Mutex
	all map[string]struct{}
}

func (n *names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil || len(n.all) >= maxNames {
		n.all = map[string]struct{}{}
	}
	n.all[name] = struct{}{}
}

func (n *names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.all[name]
	return ok
}
