package sqllock

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// gates lets one waiter of each lock ask the database. Further goroutines of the client wait in memory,
// in the order in which they came.
type gates struct {
	open bool // each waiter asks the database

	mu  sync.Mutex
	all map[string]*gate // of locks that are waited for
}

type gate struct {
	turn  chan struct{} // full: a waiter asks the database
	bells map[chan struct{}]struct{}
}

// enter waits for the turn of the caller, which calls leave at the end. The bell is full when the lock
// may be free. enter calls waits before it waits for other goroutines.
func (g *gates) enter(ctx context.Context, name string, waits func()) (bell <-chan struct{}, leave func(), err error) {
	one, own := g.join(name)
	defer func() { // also if code of the program ends the goroutine
		if leave == nil {
			g.quit(name, own)
		}
	}()
	if g.open {
		return own, func() { g.quit(name, own) }, nil
	}
	pass := func() { <-one.turn; g.quit(name, own) }
	select {
	case one.turn <- struct{}{}:
		return own, pass, nil
	default:
		waits()
	}
	select {
	case one.turn <- struct{}{}:
		return own, pass, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

func (g *gates) join(name string) (*gate, chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[name]
	if one == nil {
		one = &gate{turn: make(chan struct{}, 1), bells: map[chan struct{}]struct{}{}}
		if g.all == nil {
			g.all = map[string]*gate{}
		}
		g.all[name] = one
	}
	bell := make(chan struct{}, 1)
	one.bells[bell] = struct{}{}
	return one, bell
}

func (g *gates) quit(name string, bell chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[name]
	delete(one.bells, bell)
	if len(one.bells) == 0 {
		delete(g.all, name)
	}
}

// wake has the waiters of a lock look at once.
func (g *gates) wake(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[name]
	if one == nil {
		return
	}
	for bell := range one.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// jitter returns a random time from half of d to one and a half of it.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }
