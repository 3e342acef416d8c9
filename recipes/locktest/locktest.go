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
//	exclusion      no two holds are valid at a time, of several clients and of one
//	try            TryAcquire does not wait, and fails with recipes.ErrNotAcquired
//	wait           Acquire waits for the release
//	methods        AcquireWithin ends in time, and Do holds the lock while its function runs
//	context        an acquire ends with its context, and changes nothing
//	give up        acquires that end at any moment change nothing
//	release        a hold ends once, and says so everywhere
//	order          waiters acquire in the order in which they came (Service.Waiters)
//	tokens         a later hold has a larger token (Service.Tokens)
//	deadline       ValidUntil is near, and moves as long as the lock is held
//	partition      a holder that is cut off has ended before the next one begins (Client.Cut)
//	cut waiter     a waiter that was cut off still waits for the holder (Client.Cut)
//	cut calls      what is called of a client that is cut off ends (Client.Cut)
//	deletion       a hold whose record is deleted ends, and the next one begins (Client.Delete)
//	close          the end of a client ends its holds and its waits (Client.Close)
//
// The test of methods is for those of the lock that has both, and else for the functions of package
// recipes. The other tests compare tokens, too, where one hold follows another.
//
// A test whose function is nil is skipped, and the reason names the field. No time that a machine
// takes decides a test, except that the holder of a lock that is not cut off has to renew its lease.
package locktest

import (
	"context"
	"sync"
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
	// does not hear from. It is a second at least. All tests together take about eight leases.
	Lease time.Duration
	// Tokens says that the holds have fencing tokens. Otherwise they must be 0. A later hold must have
	// a larger one, or the same one if its client kept the lock for another of its goroutines.
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
	// Cut(false) undoes that. The tests call them in turn.
	Cut func(cut bool)
	// Delete deletes what the service has of the client's hold, as an operator may do. Other clients
	// may wait for the lock.
	Delete func()
	// Close ends the client. It must return, also while the client is cut off, and while other calls
	// of the client are under way. Further calls do nothing. The tests call it in any goroutine.
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
		{"methods", (*suite).methods},
		{"context", (*suite).context},
		{"give up", (*suite).giveUp},
		{"release", (*suite).release},
		{"order", (*suite).order},
		{"tokens", (*suite).tokens},
		{"deadline", (*suite).deadline},
		{"partition", (*suite).partition},
		{"cut waiter", (*suite).cutWaiter},
		{"cut calls", (*suite).cutCalls},
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
	giveUp context.CancelFunc
	done   chan struct{}
	hold   *recipes.Hold
	err    error
}

// start acquires the lock in the background. The attempt ends with the test.
func (s *suite) start(c Client) *attempt {
	ctx, cancel := context.WithCancel(s.bounded())
	a := &attempt{giveUp: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = c.Lock.Acquire(ctx)
	}()
	s.Cleanup(func() { cancel(); <-a.done })
	return a
}

// queue starts an attempt of a lock that is held. It returns when the attempt waits, as far as that
// can be known.
func (s *suite) queue(c Client) *attempt {
	s.Helper()
	a := s.start(c)
	if s.Waiters != nil {
		s.awaitWaiters(1)
	}
	s.mustNotAcquire(c) // so long the wait lasts at least
	s.mustWait(a)
	return a
}

// mustWait requires that an attempt has not returned.
func (s *suite) mustWait(a *attempt) {
	s.Helper()
	select {
	case <-a.done:
		s.Fatalf("Acquire of a lock that is held returned: %v", a.err)
	default:
	}
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

// background calls fn in the background. The channel is closed when it has returned.
func background(fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	return done
}

// cut cuts a client off. What it returns undoes that, and so does the end of the test.
func (s *suite) cut(c Client) (heal func()) {
	c.Cut(true)
	heal = sync.OnceFunc(func() { c.Cut(false) })
	s.Cleanup(heal)
	return heal
}
