package listen

import "sync"

// mailbox is an unbounded queue. Putting never blocks, so any goroutine may do it.
type mailbox[T any] struct {
	mu     sync.Mutex
	items  []T
	signal chan struct{} // of capacity 1: something was put, or the mailbox was closed
	closed bool
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{signal: make(chan struct{}, 1)}
}

// put appends v, unless the mailbox is closed.
func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	if !m.closed {
		m.items = append(m.items, v)
	}
	m.mu.Unlock()
	m.wake()
}

// close closes the mailbox. What was put before can still be taken.
func (m *mailbox[T]) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox[T]) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// take returns all values so far, in order, and whether more may come. It does not wait; receive
// from signal to wait.
func (m *mailbox[T]) take() (items []T, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items, !m.closed
}
