// Package gate lets goroutines wait while a gate is closed.
package gate

import (
	"sync"
	"sync/atomic"
)

// Gate lets callers of Pass through while it is open.
type Gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
	shut atomic.Bool   // the opposite, for checks without waiting; written under mu
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
	if open != g.shut.Load() {
		return
	}
	g.shut.Store(!open)
	if open {
		close(g.open)
	} else {
		g.open = make(chan struct{})
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
		if open == g.current() { // otherwise it was closed again meanwhile
			return true
		}
	}
}

func (g *Gate) current() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Opened returns a channel that is closed while the gate is open.
func (g *Gate) Opened() <-chan struct{} { return g.current() }

// Closed reports whether the gate is closed now.
func (g *Gate) Closed() bool { return g.shut.Load() }
