package locktest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

// defect is what is wrong with a service.
type defect string

// The defects, and the test of the suite that finds each.
var defects = map[defect]string{
	"grants to all":                              "exclusion",
	"tokens are drawn before the wait":           "exclusion",
	"a try waits":                                "try",
	"a try fails with another error":             "try",
	"a client acquires what it holds":            "try",
	"a wait fails":                               "wait",
	"AcquireWithin has no limit":                 "methods",
	"Do holds nothing":                           "methods",
	"Do releases nothing":                        "methods",
	"Do hides errors":                            "methods",
	"ignores the context":                        "context",
	"frees the lock when it gives up":            "context",
	"frees the lock when it soon gives up":       "give_up",
	"keeps waiters that give up":                 "give_up",
	"keeps waiters that give up in the middle":   "order",
	"the last waiter is first":                   "order",
	"tokens do not grow":                         "tokens",
	"the lease is not renewed":                   "deadline",
	"the lease is renewed three times":           "deadline",
	"releases the hold of another":               "partition",
	"trusts its lease for too long":              "partition",
	"reckons its lease from a late answer":       "partition",
	"tokens do not grow when a lease ends":       "partition",
	"a waiter that was cut off is first":         "cut_waiter",
	"an acquire hangs while it is cut off":       "cut_calls",
	"a try hangs while it is cut off":            "cut_calls",
	"a release hangs while it is cut off":        "cut_calls",
	"a close hangs while it is cut off":          "cut_calls",
	"does not look whether it is held":           "deletion",
	"a deletion wakes no waiter":                 "deletion",
	"tokens do not grow after a deletion":        "deletion",
	"a release does not look whether it is held": "deletion",
	"a closed client goes on":                    "close",
	"a second close panics":                      "close",
	"a release hangs when its client is closed":  "close",
}

// panics is what a Close says with a defect.
const panics = "closed twice"

// service is another service in memory, which grants leases.
type service struct {
	defect defect

	mu      sync.Mutex
	granted *grant
	deleted bool // the grant before
	queue   []*waiter
	tokens  int64
}

func (s *service) is(defects ...defect) bool { return slices.Contains(defects, s.defect) }

// grant is a lease that the service has granted.
type grant struct {
	to       *serviceClient
	until    time.Time
	token    int64
	renewals int
}

type waiter struct {
	waits  bool  // it has found that the lock is held
	wasCut bool  // its client was cut off meanwhile
	token  int64 // with a defect
}

// serviceClient is a client of the service, and its lock.
type serviceClient struct {
	*service
	cut    atomic.Bool
	closed chan struct{}
	end    func()
	busy   sync.WaitGroup
}

func (s *service) client(t testing.TB) locktest.Client {
	c := &serviceClient{service: s, closed: make(chan struct{})}
	c.end = sync.OnceFunc(func() {
		s.mu.Lock() // take begins no hold after this
		defer s.mu.Unlock()
		close(c.closed)
	})
	closeIt := func() { c.end(); c.busy.Wait() }
	t.Cleanup(closeIt)
	switch s.defect {
	case "a closed client goes on":
		c.closed, closeIt = make(chan struct{}), func() {}
	case "a second close panics":
		closed := false
		closeIt = func() {
			if closed {
				panic(panics)
			}
			closed = true
			c.end()
		}
	case "a close hangs while it is cut off":
		closeIt = func() { c.hang(s.defect); c.end() }
	case "a release hangs when its client is closed":
		closeIt = func() { time.Sleep(timeout / 100); c.end() } // there is time to begin a release
	}
	return locktest.Client{Lock: c, Cut: c.cut.Store, Close: closeIt, Delete: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.granted, s.deleted = nil, true
	}}
}

// waiters returns how many have found that the lock is held.
func (s *service) waiters(testing.TB) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.queue {
		if w.waits {
			n++
		}
	}
	return n
}

// tryLocked grants a lease if the lock is free, and there is nothing before w.
func (s *service) tryLocked(c *serviceClient, w *waiter) *grant {
	free := s.granted == nil || !time.Now().Before(s.granted.until)
	first := len(s.queue) == 0 || s.queue[0] == w
	switch s.defect {
	case "grants to all":
		free, first = true, true
	case "a client acquires what it holds":
		free = free || s.granted.to == c
	case "the last waiter is first", "tokens are drawn before the wait":
		first = len(s.queue) == 0 || s.queue[len(s.queue)-1] == w
	case "a waiter that was cut off is first":
		free = free || w != nil && w.wasCut
	case "a deletion wakes no waiter":
		free = free && !(s.deleted && w != nil && w.waits)
	}
	if !free || !first {
		return nil
	}
	s.granted = &grant{to: c, until: time.Now().Add(timeout), token: s.tokenLocked(w)}
	s.deleted = false
	s.leaveLocked(w)
	return s.granted
}

// tokenLocked returns the token of the next grant.
func (s *service) tokenLocked(w *waiter) int64 {
	switch {
	case w != nil && w.token > 0:
		return w.token
	case s.is("tokens do not grow") && s.tokens > 0,
		s.is("tokens do not grow when a lease ends") && s.granted != nil,
		s.is("tokens do not grow after a deletion") && s.deleted:
	default:
		s.tokens++
	}
	return s.tokens
}

func (s *service) leaveLocked(w *waiter) {
	s.queue = slices.DeleteFunc(s.queue, func(other *waiter) bool { return other == w })
}

func (c *serviceClient) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if c.defect == "ignores the context" {
		ctx = context.WithoutCancel(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.hang("an acquire hangs while it is cut off")
	begun, w := time.Now(), c.enter()
	for {
		if hold, err := c.take(w); hold != nil || err != nil {
			return hold, err
		}
		if c.defect == "a wait fails" {
			return nil, recipes.ErrNotAcquired
		}
		select {
		case <-time.After(timeout / 100): // it polls
		case <-ctx.Done():
			c.giveUp(w, time.Since(begun))
			return nil, errors.Join(recipes.ErrNotAcquired, ctx.Err())
		case <-c.closed:
			c.leave(w)
			return nil, errors.New("closed")
		}
	}
}

// hang waits for the end of the cut, with a defect.
func (c *serviceClient) hang(d defect) {
	for c.defect == d && c.cut.Load() {
		time.Sleep(timeout / 100)
	}
}

func (c *serviceClient) enter() *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &waiter{}
	if c.defect == "tokens are drawn before the wait" {
		w.token = c.tokenLocked(w)
	}
	c.queue = append(c.queue, w)
	return w
}

func (c *serviceClient) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(w)
}

// giveUp ends a wait that has lasted for so long.
func (c *serviceClient) giveUp(w *waiter, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.defect {
	case "keeps waiters that give up":
		return
	case "keeps waiters that give up in the middle":
		if len(c.queue) > 0 && c.queue[len(c.queue)-1] != w {
			return
		}
	case "frees the lock when it gives up":
		c.granted = nil
	case "frees the lock when it soon gives up":
		if waited < 5*time.Millisecond {
			c.granted = nil
		}
	}
	c.leaveLocked(w)
}

func (c *serviceClient) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	c.hang("a try hangs while it is cut off")
	hold, err := c.take(nil)
	switch {
	case hold != nil || err != nil:
		return hold, err
	case c.defect == "a try waits":
		return c.Acquire(ctx)
	case c.defect == "a try fails with another error":
		return nil, errors.New("busy")
	}
	return nil, recipes.ErrNotAcquired
}

func (c *serviceClient) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	if c.defect == "AcquireWithin has no limit" {
		return c.Acquire(ctx)
	}
	return recipes.AcquireWithin(ctx, c, d)
}

func (c *serviceClient) Do(ctx context.Context, fn func(context.Context, *recipes.Hold) error) error {
	switch c.defect {
	case "Do holds nothing":
		hold, err := c.Acquire(ctx)
		if err != nil {
			return err
		}
		return errors.Join(hold.Release(), fn(ctx, hold))
	case "Do releases nothing":
		hold, err := c.Acquire(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, hold)
	case "Do hides errors":
		_ = recipes.Do(ctx, c, fn)
		return nil
	}
	return recipes.Do(ctx, c, fn)
}

// take takes the lock if it is free.
func (c *serviceClient) take(w *waiter) (*recipes.Hold, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		c.leaveLocked(w)
		return nil, errors.New("closed")
	default:
	}
	if c.cut.Load() {
		if w != nil {
			w.wasCut = true
		}
		return nil, nil
	}
	g := c.tryLocked(c, w)
	if g == nil {
		if w != nil {
			w.waits = true
		}
		return nil, nil
	}
	return c.hold(g)
}

// hold makes the hold of a lease, which is renewed until the hold ends.
func (c *serviceClient) hold(g *grant) (*recipes.Hold, error) {
	var until atomic.Pointer[time.Time]
	set := func(t time.Time) { until.Store(&t) }
	set(g.until)
	ended, lost := make(chan struct{}), make(chan struct{})
	c.busy.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-c.closed:
				return
			case <-time.After(timeout / 6):
			}
			switch renewed, held := c.renew(g); {
			case !held:
				close(lost)
				return
			case !renewed.IsZero() && c.cut.Load(): // with a defect: the answer comes after the cut
				for c.cut.Load() {
					time.Sleep(timeout / 100)
				}
				set(time.Now().Add(timeout))
			case !renewed.IsZero():
				set(renewed)
			case c.defect == "trusts its lease for too long":
				set(time.Now().Add(timeout))
			}
		}
	})
	hold, err := recipes.HoldForeign(recipes.ForeignHold{
		Name: "there", Token: g.token, Lost: lost, Closed: c.closed,
		Until: func() time.Time { return *until.Load() },
		Release: func(ctx context.Context) error {
			close(ended)
			return c.release(ctx, g)
		},
	})
	if err != nil {
		return nil, err
	}
	return hold, nil
}

// renew renews a lease. It returns the zero Time if the service cannot be reached.
func (c *serviceClient) renew(g *grant) (until time.Time, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.renewals++
	late := g.renewals == 1 && c.is("reckons its lease from a late answer")
	switch {
	case c.cut.Load() && !late, c.is("the lease is not renewed"),
		g.renewals > 3 && c.is("the lease is renewed three times"):
		return time.Time{}, true
	case c.granted != g && !c.is("does not look whether it is held"):
		return time.Time{}, false
	}
	g.until = time.Now().Add(timeout)
	return g.until, true
}

func (c *serviceClient) release(ctx context.Context, g *grant) error {
	c.hang("a release hangs while it is cut off")
	if c.defect == "a release hangs when its client is closed" && c.closes() {
		select {}
	}
	for c.cut.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(timeout / 100):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.granted == g, c.granted != nil && c.is("releases the hold of another"):
		c.granted = nil
	case !c.is("a release does not look whether it is held",
		"frees the lock when it gives up", "frees the lock when it soon gives up"):
		return recipes.ErrForeignLost
	}
	return nil
}

// closes reports whether the client, which is not closed, is closed soon.
func (c *serviceClient) closes() bool {
	select {
	case <-c.closed:
		return false
	default:
	}
	select {
	case <-c.closed:
		return true
	case <-time.After(timeout / 50):
		return false
	}
}

// run runs the suite on a service, in virtual time.
func run(t *testing.T, d defect) {
	var s *service
	described := locktest.Service{
		Lease: timeout, Tokens: true,
		Client:  func(t testing.TB, _ string) locktest.Client { return s.client(t) },
		Waiters: func(t testing.TB) int { return s.waiters(t) },
		Around: func(t *testing.T, run func(t *testing.T)) {
			synctest.Test(t, func(t *testing.T) {
				s = &service{defect: d}
				run(t)
			})
		},
	}
	if d == "tokens are drawn before the wait" {
		described.Waiters = nil // it has no order
	}
	locktest.Run(t, described)
}

func TestLockOfAnotherService(t *testing.T) { run(t, "") }

const defectVar = "DOCENT_LOCKTEST_DEFECT"

// TestDefect runs the suite with a defect: see TestSuiteFindsDefects.
func TestDefect(t *testing.T) {
	d := os.Getenv(defectVar)
	if d == "" {
		t.Skip("only in a process of its own")
	}
	run(t, defect(d))
}

func TestSuiteFindsDefects(t *testing.T) {
	for d, test := range defects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestDefect$/^"+test+"$", "-test.timeout", "60s")
			cmd.Env = append(os.Environ(), defectVar+"="+string(d), "ZOOKEEPER=") // the service needs no server
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "the suite finds nothing: %s", out)
			require.True(t, strings.Contains(string(out), "--- FAIL: TestDefect/"+test) ||
				strings.Contains(string(out), "deadlock") || strings.Contains(string(out), panics), "%s", out)
		})
	}
}
