// Package gate holds things back.
package gate

import "sync"

// Gate lets pass while it is open.
type Gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

// New returns an open gate.
func New() *Gate {
	g := &Gate{open: make(chan struct{})}
	close(g.open)
	return g
}

// Set opens or closes the gate.
func (g *Gate) Set(open bool) {
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

// Pass waits until the gate is open. It reports false if done is closed before.
func (g *Gate) Pass(done <-chan struct{}) bool {
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

func (g *Gate) current() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Closed reports whether the gate is closed now.
func (g *Gate) Closed() bool {
	select {
	case <-g.current():
		return false
	default:
		return true
	}
}
