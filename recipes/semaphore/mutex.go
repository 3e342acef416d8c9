package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Mutex is a lock that is not reentrant: a semaphore of one permit. Who acquires it again while holding it waits, whatever the context
// carries, and any goroutine may release it. It does not exclude those who use mutex.Mutex on the same path: the nodes are others.
// Curator: InterProcessSemaphoreMutex.
type Mutex struct{ semaphore *Semaphore }

// NewMutex makes a mutex on path, as New makes a semaphore. It refuses WithSharedLimit and WithSlots, which are not for a mutex.
func NewMutex(c *framework.Client, path string, opts ...Option) (*Mutex, error) {
	s, err := newSemaphore(c, "semaphore-mutex", path, 1, opts)
	if err == nil && (s.limit.shared || s.slots) {
		err = errors.New("WithSharedLimit and WithSlots are not for a mutex")
	}
	if err != nil {
		return nil, fmt.Errorf("semaphore: mutex: %w", err)
	}
	return &Mutex{s}, nil
}

// Acquire waits in line for the lock. It ends like Semaphore.Acquire. Curator: acquire.
func (m *Mutex) Acquire(ctx context.Context) (*recipes.Hold, error) {
	s, err := m.usable(ctx)
	if err != nil {
		return nil, err
	}
	return s.Acquire(ctx)
}

// TryAcquire is Acquire without waiting for others. It ends like Semaphore.TryAcquire. Curator: acquire(0).
func (m *Mutex) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	s, err := m.usable(ctx)
	if err != nil {
		return nil, err
	}
	return s.TryAcquire(ctx)
}

// Participants lists the holder, then those who wait, in their order. It is empty if there is nobody. Curator: getParticipantNodes.
func (m *Mutex) Participants(ctx context.Context) ([]recipes.Participant, error) {
	s, err := m.usable(ctx)
	if err != nil {
		return nil, err
	}
	return s.Participants(ctx)
}

func (m *Mutex) usable(ctx context.Context) (*Semaphore, error) {
	if err := queue.CheckCall(ctx, "semaphore", "Mutex", m != nil && m.semaphore != nil); err != nil {
		return nil, err
	}
	return m.semaphore, nil
}
