package peer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// SessionTimeout is the session timeout that all peers request.
const SessionTimeout = 30 * time.Second

// The numbers of permits and locks are the same for all peers.
const (
	permits = 10 // of a semaphore
	many    = 10 // locks of a multi-lock
)

// These are the limits of hand-offs within a client.
const (
	Streak = 10_000
	Span   = 100 * time.Millisecond
)

type docent struct{}

func (docent) version() string { return "docent on " + runtime.Version() }

// dependency returns the version of a module of this program.
func dependency(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "of unknown version"
}

func (docent) connect(ctx context.Context, servers string) (client, error) {
	c, err := framework.New(servers, framework.WithSessionTimeout(SessionTimeout), framework.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	if err := c.WaitConnected(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return docentClient{c}, nil
}

type docentClient struct{ *framework.Client }

func (c docentClient) close() { _ = c.Close() }

func (c docentClient) children(ctx context.Context, path string) (int, error) {
	stat, err := c.Exists(ctx, path)
	if err != nil {
		return 0, err
	}
	return int(stat.NumChildren), nil
}

// acquirer has the methods of all locks.
type acquirer interface {
	Acquire(ctx context.Context) (*recipes.Hold, error)
}

func (c docentClient) lock(kind, path string) (lock, error) {
	if kind == Counter {
		number, err := counter.NewAtomic(c.Client, path)
		return docentCounter{number}, err
	}
	one, err := c.acquirer(kind, path)
	return &docentLock{acquirer: one}, err
}

func (c docentClient) acquirer(kind, path string) (acquirer, error) {
	switch kind {
	case "mutex":
		return mutex.New(c.Client, path)
	case "handoff":
		return mutex.New(c.Client, path, mutex.WithLocalHandoff(mutex.Handoff{Streak: Streak, Span: Span}))
	case "read", "write":
		rw, err := rwlock.New(c.Client, path)
		if err != nil {
			return nil, err
		}
		return map[string]acquirer{"read": rw.Read(), "write": rw.Write()}[kind], nil
	case "semaphore":
		return semaphore.New(c.Client, path, permits)
	case "semaphore-mutex":
		return semaphore.NewMutex(c.Client, path)
	case "multi":
		return multilock.New(c.Client, parts(path))
	}
	return nil, errUnsupported
}

// docentCounter is a number: to acquire is to add one.
type docentCounter struct{ *counter.Atomic }

func (c docentCounter) acquire(ctx context.Context) error {
	_, err := c.Add(ctx, 1)
	return err
}

func (docentCounter) release() error { return nil }

// parts returns the paths of the locks of a multi-lock.
func parts(path string) (all []string) {
	for i := range many {
		all = append(all, fmt.Sprint(path, "/", i))
	}
	return all
}

type docentLock struct {
	acquirer
	hold *recipes.Hold
}

func (l *docentLock) acquire(ctx context.Context) (err error) {
	l.hold, err = l.Acquire(ctx)
	return err
}

func (l *docentLock) release() error { return l.hold.Release() }

// probe retries while the hold is valid and there is no connection.
func (l *docentLock) probe(ctx context.Context) error {
	for {
		_, err := l.hold.Guard(ctx)
		if err == nil || l.hold.Err() != nil || ctx.Err() != nil {
			return err
		}
	}
}
