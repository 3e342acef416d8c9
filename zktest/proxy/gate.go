package proxy

import "sync"

// gate lets frames pass while it is open.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if !open {
			g.open = make(chan struct{})
		}
	default:
		if open {
			close(g.open)
		}
	}
}

// pass waits until the gate is open. It reports false if done is closed before.
func (g *gate) pass(done <-chan struct{}) bool {
	for {
		open := g.current()
		select {
		case <-done:
			return false
		case <-open:
		}
		if open == g.current() { // else it was closed again in the meantime
			return true
		}
	}
}

func (g *gate) current() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *gate) closed() bool {
	select {
	case <-g.current():
		return false
	default:
		return true
	}
}
