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
	mu  sync.Mutex
	all map[string]*gate // of locks that are waited for
}

type gate struct {
	users int
	turn  chan struct{} // full: a waiter asks the database
	bell  chan struct{} // full: the lock may be free
}

// enter waits for the turn of the caller, which calls leave at the end.
func (g *gates) enter(ctx context.Context, name string) (bell <-chan struct{}, leave func(), err error) {
	one := g.join(name)
	select {
	case one.turn <- struct{}{}:
		return one.bell, func() { <-one.turn; g.quit(name, one) }, nil
	case <-ctx.Done():
		g.quit(name, one)
		return nil, nil, ctx.Err()
	}
}

func (g *gates) join(name string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[name]
	if one == nil {
		one = &gate{turn: make(chan struct{}, 1), bell: make(chan struct{}, 1)}
		if g.all == nil {
			g.all = map[string]*gate{}
		}
		g.all[name] = one
	}
	one.users++
	return one
}

func (g *gates) quit(name string, one *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(g.all, name)
	}
}

// wake has the waiter of a lock look at once.
func (g *gates) wake(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.all[name]; one != nil {
		select {
		case one.bell <- struct{}{}:
		default:
		}
	}
}

// jitter returns a random time from half of d to one and a half of it.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }
