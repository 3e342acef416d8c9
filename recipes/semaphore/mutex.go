package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
)

// Mutex is a lock that is not reentrant: a semaphore of one permit. A second acquire waits while
// the first hold lasts, whatever the context carries. Any goroutine may release the hold. It does
// not exclude a mutex.Mutex on the same path, which uses other nodes. Curator:
// InterProcessSemaphoreMutex.
type Mutex struct{ semaphore *Semaphore }

// NewMutex returns a mutex on path. It fails like New, and for WithSharedLimit and WithSlots, which
// a mutex does not have.
func NewMutex(c *framework.Client, path string, opts ...Option) (*Mutex, error) {
	s, err := newSemaphore(c, "semaphore-mutex", path, 1, opts)
	if err == nil && (s.limit.shared || s.slots) {
		err = errors.New("WithSharedLimit and WithSlots are not for a mutex")
	}
	if err != nil {
		return nil, fmt.Errorf("new semaphore mutex: %w", err)
	}
	return &Mutex{s}, nil
}

// Acquire waits in the queue for the lock. It fails like Semaphore.Acquire. Curator: acquire.
func (m *Mutex) Acquire(ctx context.Context) (*recipes.Hold, error) {
	s, err := m.check(ctx)
	if err != nil {
		return nil, err
	}
	return s.Acquire(ctx)
}

// TryAcquire is Acquire that does not wait for other clients. It fails like Semaphore.TryAcquire.
// Curator: acquire(0).
func (m *Mutex) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	s, err := m.check(ctx)
	if err != nil {
		return nil, err
	}
	return s.TryAcquire(ctx)
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, m, fn)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin. Curator: acquire(time, unit).
func (m *Mutex) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, m, d)
}

// Path returns the path given to NewMutex, and "" for the zero value.
func (m *Mutex) Path() string {
	if m.semaphore == nil {
		return ""
	}
	return m.semaphore.Path()
}

// Participants returns the holder, then the waiters in order: see Semaphore.Participants. Curator:
// getParticipantNodes.
func (m *Mutex) Participants(ctx context.Context) ([]recipes.Participant, error) {
	s, err := m.check(ctx)
	if err != nil {
		return nil, err
	}
	return s.Participants(ctx)
}

func (m *Mutex) check(ctx context.Context) (*Semaphore, error) {
	if err := check.Call(ctx, "semaphore", "Mutex", m.semaphore != nil); err != nil {
		return nil, err
	}
	return m.semaphore, nil
}
