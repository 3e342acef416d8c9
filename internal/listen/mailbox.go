package listen

import "sync"

// mailbox is an unbounded queue in order: putting never blocks, so it may be done on anybody's goroutine.
type mailbox[T any] struct {
	mu     sync.Mutex
	items  []T
	signal chan struct{} // has room for one: something was put, or the mailbox was closed
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

// close lets take report the end once what was put before has been taken.
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

// take returns all that is there, in order, and whether more may come. It does not wait: signal does.
func (m *mailbox[T]) take() (items []T, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items, !m.closed
}
