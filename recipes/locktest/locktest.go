// Package locktest tests a recipes.Locker, of docent or of another service, for what a program may
// expect of each lock. All locks of docent pass it.
//
// A lock's own package calls Run from a test:
//
//	func TestLock(t *testing.T) {
//		locktest.Run(t, locktest.Service{
//			Client: func(t testing.TB, name string) locktest.Client {
//				return locktest.Client{Lock: newLock(t, name)}
//			},
//			Lease: 3 * time.Second,
//		})
//	}
//
// The tests are named after what they show:
//
//	exclusion      no two holds are valid at a time
//	try            TryAcquire does not wait, and fails with recipes.ErrNotAcquired
//	wait           Acquire waits for the release
//	context        an acquire ends with its context, and leaves nothing behind
//	give up        acquires that end at any moment leave nothing behind
//	release        a hold ends once, and says so everywhere
//	order          waiters acquire in the order in which they came (Service.Waiters)
//	tokens         a later hold has a larger token (Service.Tokens)
//	deadline       ValidUntil is near, and moves
//	partition      a holder that is cut off has ended before the next one begins (Client.Cut)
//	deletion       a hold ends when its record is deleted (Client.Delete)
//	close          the end of a client ends its holds and its waits (Client.Close)
//
// A test whose function is nil is skipped, and the reason names the field. No time that a machine
// takes decides a test, except that the holder of a lock that is not cut off has to renew its lease.
package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/docent-zk/docent/recipes"
)

// Service describes the lock to test. Client and Lease are required.
type Service struct {
	// Client returns a lock of another client, with a connection of its own and the given name. The
	// locks of all clients of one t exclude each other, and no others do. The client ends with t.
	Client func(t testing.TB, name string) Client
	// Lease is the time after which the service has certainly taken the lock from a client that it
	// does not hear from. It is a second at least. The tests wait for it a few times.
	Lease time.Duration
	// Tokens says that the holds have fencing tokens. Otherwise they must be 0.
	Tokens bool
	// Waiters returns how many clients wait for the lock. It says that they acquire the lock in the
	// order in which they came. Nil means that no order is promised.
	Waiters func(t testing.TB) int
	// Around runs each test: it calls run once, perhaps with another t, such as that of a bubble of
	// testing/synctest. Nil means that the test runs as it is.
	Around func(t *testing.T, run func(t *testing.T))
}

// Client is one client of the lock.
type Client struct {
	Lock recipes.Locker // required
	// Cut(true) lets nothing through between the client and the service. Neither of them is told.
	// Cut(false) undoes that.
	Cut func(cut bool)
	// Delete deletes what the service has of the client's hold, as an operator may do.
	Delete func()
	// Close ends the client.
	Close func()
}

// Run tests a lock.
func Run(t *testing.T, s Service) {
	t.Helper()
	if s.Client == nil || s.Lease < time.Second {
		t.Fatalf("locktest: Client is nil (%v), or Lease %v is less than a second", s.Client == nil, s.Lease)
	}
	if s.Around == nil {
		s.Around = func(t *testing.T, run func(t *testing.T)) { run(t) }
	}
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"exclusion", (*suite).exclusion},
		{"try", (*suite).try},
		{"wait", (*suite).wait},
		{"context", (*suite).context},
		{"give up", (*suite).giveUp},
		{"release", (*suite).release},
		{"order", (*suite).order},
		{"tokens", (*suite).tokens},
		{"deadline", (*suite).deadline},
		{"partition", (*suite).partition},
		{"deletion", (*suite).deletion},
		{"close", (*suite).close},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.Around(t, func(t *testing.T) { test.run(&suite{Service: s, T: t}) })
		})
	}
}

// suite is one test of a lock.
type suite struct {
	Service
	*testing.T
}

// patience is how long the tests wait for what has to come, besides leases. It only matters when a
// test fails.
const patience = time.Minute

// bounded returns a context for what must end by itself.
func (s *suite) bounded() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*s.Lease+patience)
	s.Cleanup(cancel)
	return ctx
}

func (s *suite) client(name string) Client {
	s.Helper()
	return s.Service.Client(s.T, name)
}

// acquire acquires the lock for a client.
func (s *suite) acquire(c Client) *recipes.Hold {
	s.Helper()
	hold, err := c.Lock.Acquire(s.bounded())
	if err != nil {
		s.Fatalf("Acquire: %v", err)
	}
	if err := hold.Err(); err != nil {
		s.Fatalf("a new hold has ended: %v", err)
	}
	return hold
}

func (s *suite) mustRelease(h *recipes.Hold) {
	s.Helper()
	if err := h.Release(); err != nil {
		s.Fatalf("Release: %v", err)
	}
}

// mustBeFree requires that a client can acquire the lock: nothing is left of the others. What they
// leave may be cleaned up in the background, or end by itself.
func (s *suite) mustBeFree(c Client) {
	s.Helper()
	s.mustRelease(s.acquire(c))
}

// await waits for a channel.
func (s *suite) await(done <-chan struct{}, what string) {
	s.Helper()
	select {
	case <-done:
	case <-s.bounded().Done():
		s.Fatalf("%s: not within %v", what, 3*s.Lease+patience)
	}
}

// attempt is an acquire in the background.
type attempt struct {
	done chan struct{}
	hold *recipes.Hold
	err  error
}

// start acquires the lock in the background.
func (s *suite) start(ctx context.Context, c Client) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = c.Lock.Acquire(ctx)
	}()
	s.Cleanup(func() { <-a.done })
	return a
}

// won returns the hold of an attempt that must succeed.
func (s *suite) won(a *attempt) *recipes.Hold {
	s.Helper()
	s.await(a.done, "Acquire")
	if a.err != nil {
		s.Fatalf("Acquire: %v", a.err)
	}
	return a.hold
}
