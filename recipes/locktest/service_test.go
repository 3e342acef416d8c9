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
	"grants to all":                    "exclusion",
	"a try waits":                      "try",
	"a try fails with another error":   "try",
	"a wait fails":                     "wait",
	"ignores the context":              "context",
	"keeps waiters that give up":       "give_up",
	"releases the hold of another":     "partition",
	"the last waiter is first":         "order",
	"tokens do not grow":               "tokens",
	"the lease is not renewed":         "deadline",
	"trusts its lease for too long":    "partition",
	"does not look whether it is held": "deletion",
	"a closed client goes on":          "close",
}

// service is another service in memory, which grants leases.
type service struct {
	defect defect

	mu      sync.Mutex
	granted *grant
	queue   []*waiter
	tokens  int64
}

// grant is a lease that the service has granted.
type grant struct {
	to    *serviceClient
	until time.Time
}

type waiter struct {
	c       *serviceClient
	granted chan struct{}
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
	c.end = sync.OnceFunc(func() { close(c.closed) })
	closeIt := func() { c.end(); c.busy.Wait() }
	t.Cleanup(closeIt)
	if s.defect == "a closed client goes on" {
		c.closed, closeIt = make(chan struct{}), func() {}
	}
	return locktest.Client{Lock: c, Cut: c.cut.Store, Close: closeIt, Delete: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.granted = nil
	}}
}

func (s *service) waiters(testing.TB) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// tryLocked grants a lease if the lock is free, and there is nothing before w.
func (s *service) tryLocked(c *serviceClient, w *waiter) *grant {
	first := len(s.queue) == 0 || s.queue[0] == w
	if s.defect == "the last waiter is first" {
		first = len(s.queue) == 0 || s.queue[len(s.queue)-1] == w
	}
	free := s.granted == nil || !time.Now().Before(s.granted.until)
	if (!free || !first) && s.defect != "grants to all" {
		return nil
	}
	s.granted = &grant{c, time.Now().Add(timeout)}
	if s.tokens++; s.defect == "tokens do not grow" {
		s.tokens = 1
	}
	s.leaveLocked(w)
	return s.granted
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
	w := &waiter{c, make(chan struct{})}
	c.mu.Lock()
	c.queue = append(c.queue, w)
	c.mu.Unlock()
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
			if c.defect != "keeps waiters that give up" {
				c.leave(w)
			}
			return nil, errors.Join(recipes.ErrNotAcquired, ctx.Err())
		case <-c.closed:
			c.leave(w)
			return nil, errors.New("closed")
		}
	}
}

func (c *serviceClient) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(w)
}

func (c *serviceClient) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
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
		return nil, nil
	}
	g := c.tryLocked(c, w)
	if g == nil {
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
			case !renewed.IsZero():
				set(renewed)
			case c.defect == "trusts its lease for too long":
				set(time.Now().Add(timeout))
			}
		}
	})
	hold, err := recipes.HoldForeign(recipes.ForeignHold{
		Name: "there", Token: c.tokens, Lost: lost, Closed: c.closed,
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
	switch {
	case c.cut.Load(), c.defect == "the lease is not renewed":
		return time.Time{}, true
	case c.granted != g && c.defect != "does not look whether it is held":
		return time.Time{}, false
	}
	g.until = time.Now().Add(timeout)
	return g.until, true
}

func (c *serviceClient) release(ctx context.Context, g *grant) error {
	for c.cut.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(timeout / 100):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.granted == g || c.granted != nil && c.defect == "releases the hold of another" {
		c.granted = nil
	}
	return nil
}

// run runs the suite on a service, in virtual time.
func run(t *testing.T, d defect) {
	var s *service
	locktest.Run(t, locktest.Service{
		Lease: timeout, Tokens: true,
		Client:  func(t testing.TB, _ string) locktest.Client { return s.client(t) },
		Waiters: func(t testing.TB) int { return s.waiters(t) },
		Around: func(t *testing.T, run func(t *testing.T)) {
			synctest.Test(t, func(t *testing.T) {
				s = &service{defect: d}
				run(t)
			})
		},
	})
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
			cmd.Env = append(os.Environ(), defectVar+"="+string(d))
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "the suite finds nothing: %s", out)
			require.True(t, strings.Contains(string(out), "--- FAIL: TestDefect/"+test) ||
				strings.Contains(string(out), "deadlock"), "%s", out)
		})
	}
}
