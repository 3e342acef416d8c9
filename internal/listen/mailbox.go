package listen

import "sync"

// Mailbox is an unbounded queue. Putting never blocks, so any goroutine may do it.
type Mailbox[T any] struct {
	mu     sync.Mutex
	items  []T
	signal chan struct{} // of capacity 1: something was put, or the mailbox was closed
	closed bool
}

// NewMailbox makes an empty mailbox.
func NewMailbox[T any]() *Mailbox[T] {
	return &Mailbox[T]{signal: make(chan struct{}, 1)}
}

// Put appends v and reports true, unless the mailbox is closed.
func (m *Mailbox[T]) Put(v T) bool {
	m.mu.Lock()
	open := !m.closed
	if open {
		m.items = append(m.items, v)
	}
	m.mu.Unlock()
	m.wake()
	return open
}

// Close closes the mailbox. What was put before can still be taken.
func (m *Mailbox[T]) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.wake()
}

func (m *Mailbox[T]) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// Signal returns a channel that has a value after a Put or Close. It is for one receiver.
func (m *Mailbox[T]) Signal() <-chan struct{} { return m.signal }

// Take returns all values so far, in order, and whether more may come. It does not wait; receive
// from Signal to wait.
func (m *Mailbox[T]) Take() (items []T, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items, !m.closed
}
