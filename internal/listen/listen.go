// Package listen notifies listeners in order, each on its own goroutine, so that a slow or blocked
// listener delays no other goroutine.
package listen

import (
	"sync"
	"time"
)

// Listeners is a set of listeners. The zero value is empty. It is safe for concurrent use.
type Listeners[T any] struct {
	mu     sync.Mutex
	all    map[*listener[T]]struct{}
	closed bool
}

// Tell sends v to all listeners without waiting for them.
func (l *Listeners[T]) Tell(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.all {
		one.box.Put(v)
		one.start.Do(func() { go one.run() })
	}
}

// Listen adds fn, unless the listeners are closed. After stop, fn is not called again; stop does
// not wait for a running call. The goroutine of fn starts with the first value that it gets. Before
// that, neither stop nor Close has to be called.
func (l *Listeners[T]) Listen(fn func(T)) (stop func()) { return l.ListenFrom(nil, fn) }

// ListenFrom is Listen. It calls fn with the given values before all others.
func (l *Listeners[T]) ListenFrom(first []T, fn func(T)) (stop func()) {
	one := &listener[T]{
		fn: fn, box: NewMailbox[T](), stop: make(chan struct{}), done: make(chan struct{}),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return func() {}
	}
	if l.all == nil {
		l.all = map[*listener[T]]struct{}{}
	}
	l.all[one] = struct{}{}
	for _, v := range first {
		one.box.Put(v)
		one.start.Do(func() { go one.run() })
	}
	return sync.OnceFunc(func() { l.remove(one) })
}

func (l *Listeners[T]) remove(one *listener[T]) {
	l.mu.Lock()
	delete(l.all, one)
	l.mu.Unlock()
	close(one.stop)
}

// Wait is how long objects wait for their listeners when they are closed.
const Wait = time.Second

// Close waits until the listeners have handled all values, at most for the timeout: a listener may
// itself wait for the goroutine that calls Close. After Close no listener is added.
func (l *Listeners[T]) Close(timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for _, one := range l.close() {
		select {
		case <-one.done:
		case <-one.stop: // stopped: its owner does not wait for it
		case <-timer.C:
			return
		}
	}
}

func (l *Listeners[T]) close() []*listener[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	all := make([]*listener[T], 0, len(l.all))
	for one := range l.all {
		one.box.Close()
		one.start.Do(func() { close(one.done) })
		all = append(all, one)
	}
	return all
}

// listener calls one function with each value, in order, on its own goroutine.
type listener[T any] struct {
	fn    func(T)
	box   *Mailbox[T]
	start sync.Once     // starts run, or closes done if there was nothing to deliver
	stop  chan struct{} // closed by the stop function: nothing more is delivered
	done  chan struct{} // closed by run
}

func (l *listener[T]) run() {
	defer close(l.done)
	for {
		select {
		case <-l.stop:
			return
		case <-l.box.Signal():
		}
		news, open := l.box.Take()
		for _, v := range news {
			if l.stopped() {
				return
			}
			l.fn(v)
		}
		if !open {
			return
		}
	}
}

func (l *listener[T]) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}
