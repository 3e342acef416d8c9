package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/recipes"
)

const (
	clients = 4
	rounds  = 15
)

// exclusion has goroutines of several clients acquire the lock again and again.
func (s *suite) exclusion() {
	const perClient = 2
	var m monitor
	ctx, errs := s.bounded(), make(chan error, clients*perClient)
	for i := range clients {
		c := s.client(fmt.Sprintf("client %d", i))
		for range perClient {
			go func() { errs <- m.compete(ctx, c, i, rounds/perClient) }()
		}
	}
	for range clients * perClient {
		if err := <-errs; err != nil {
			s.Error(err)
		}
	}
}

// monitor sees all holds of a lock. A hold is valid as long as Err is nil.
type monitor struct {
	mu     sync.Mutex
	holds  []*recipes.Hold
	client int   // of the last hold
	token  int64 // of the last hold
}

// compete acquires the lock a number of times.
func (m *monitor) compete(ctx context.Context, c Client, number, times int) error {
	const held = time.Millisecond
	for range times {
		hold, err := c.Lock.Acquire(ctx)
		if err != nil {
			return err
		}
		if err := m.enter(hold, number); err != nil {
			return err
		}
		time.Sleep(held)
		m.leave(hold)
		if err := hold.Release(); err != nil {
			return err
		}
	}
	return nil
}

// enter checks that a hold, if it is valid, is the only one, and the last one by its token. Holds of
// one client may have the same token.
func (m *monitor) enter(h *recipes.Hold, client int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.holds {
		if other.Err() == nil && h.Err() == nil {
			return errors.New("two holds are valid at a time")
		}
	}
	m.holds = append(m.holds, h)
	if h.Err() != nil || h.Token() == 0 {
		return nil
	}
	if h.Token() < m.token || h.Token() == m.token && client != m.client {
		return fmt.Errorf("the token %d is not larger than %d of the hold before", h.Token(), m.token)
	}
	m.client, m.token = client, h.Token()
	return nil
}

func (m *monitor) leave(h *recipes.Hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds = slices.DeleteFunc(m.holds, func(other *recipes.Hold) bool { return other == h })
}

func (s *suite) try() {
	a, b := s.client("a"), s.client("b")
	hold, err := a.Lock.TryAcquire(s.bounded())
	if err != nil {
		s.Fatalf("TryAcquire of a free lock: %v", err)
	}
	s.mustNotAcquire(b)
	s.mustNotAcquire(a)
	if err := hold.Err(); err != nil {
		s.Fatalf("the hold has ended: %v", err)
	}
	s.mustRelease(hold)
	s.mustBeFree(b)
}

// mustNotAcquire requires that a try fails because of other holders.
func (s *suite) mustNotAcquire(c Client) {
	s.Helper()
	ctx := s.bounded()
	hold, err := c.Lock.TryAcquire(ctx)
	if !errors.Is(err, recipes.ErrNotAcquired) || ctx.Err() != nil {
		s.Fatalf("TryAcquire of a lock that is held: %v and %v, want recipes.ErrNotAcquired", hold, err)
	}
}

// withMethods is a lock with methods for what package recipes has functions for.
type withMethods interface {
	recipes.Locker
	AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error)
	Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error
}

// functions gives a lock the methods.
type functions struct{ recipes.Locker }

func (f functions) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, f.Locker, d)
}

func (f functions) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, f.Locker, fn)
}

// methods has one client hold the lock by Do, while another one acquires it within a time.
func (s *suite) methods() {
	a, b := s.client("a"), s.client("b")
	of := func(c Client) withMethods {
		if lock, ok := c.Lock.(withMethods); ok {
			return lock
		}
		return functions{c.Lock}
	}
	fail := errors.New("fail")
	err := of(a).Do(s.bounded(), func(ctx context.Context, hold *recipes.Hold) error {
		if err := errors.Join(ctx.Err(), hold.Err()); err != nil {
			s.Errorf("the hold or the context of Do has ended: %v", err)
		}
		bounded := s.bounded()
		for d, want := range map[time.Duration]error{
			0: recipes.ErrNotAcquired, s.Lease / 10: context.DeadlineExceeded,
		} {
			other, err := of(b).AcquireWithin(bounded, d)
			if !errors.Is(err, want) || bounded.Err() != nil {
				s.Errorf("AcquireWithin %v while Do holds the lock: %v and %v, want %v", d, other, err, want)
			}
		}
		return fail
	})
	if !errors.Is(err, fail) {
		s.Errorf("Do: %v, want the error of its function", err)
	}
	hold, err := of(b).AcquireWithin(s.bounded(), s.Lease+patience)
	if err != nil {
		s.Fatalf("AcquireWithin: %v", err)
	}
	s.mustRelease(hold)
	s.mustBeFree(a)
}

func (s *suite) wait() {
	a, b := s.client("a"), s.client("b")
	hold := s.acquire(a)
	waiting := s.queue(b)
	s.mustRelease(hold)
	s.mustRelease(s.won(waiting))
	s.mustBeFree(a)
}

func (s *suite) context() {
	a, b, c := s.client("a"), s.client("b"), s.client("c")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.Lock.Acquire(ended); !errors.Is(err, context.Canceled) {
		s.Fatalf("Acquire with a context that has ended: %v, want context.Canceled", err)
	}
	s.mustBeFree(b)

	hold := s.acquire(a)
	s.mustGiveUp(b)
	s.mustExclude(hold, c)
	s.mustRelease(hold)
	s.mustBeFree(a)

	within, cancel := context.WithCancel(s.bounded())
	hold, err := a.Lock.Acquire(within)
	if err != nil {
		s.Fatalf("Acquire: %v", err)
	}
	cancel()
	if err := hold.Err(); err != nil {
		s.Fatalf("the context of an acquire has ended its hold: %v", err)
	}
	s.mustRelease(hold)
}

// mustGiveUp requires that an acquire of a lock that is held ends with its context. Unless that ends
// before the lock was seen, the error says that others hold it.
func (s *suite) mustGiveUp(c Client) {
	s.Helper()
	end := s.bounded()
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		hold, err := c.Lock.Acquire(ctx)
		cancel()
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			s.Fatalf("Acquire whose context ended in the wait: %v and %v, want context.DeadlineExceeded", hold, err)
		case errors.Is(err, recipes.ErrNotAcquired):
			return
		case end.Err() != nil:
			s.Fatalf("Acquire whose context ended after %v in the wait: %v, want recipes.ErrNotAcquired", wait, err)
		}
	}
}

// giveUp ends acquires at many moments, of a free lock and of one that is held.
func (s *suite) giveUp() {
	a, b, c := s.client("a"), s.client("b"), s.client("c")
	for round := range 4 * rounds {
		var hold *recipes.Hold
		if round%2 == 0 {
			hold = s.acquire(a)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(round)*200*time.Microsecond)
		won, err := b.Lock.Acquire(ctx)
		cancel()
		switch {
		case err == nil && hold != nil:
			s.Fatal("two clients hold the lock")
		case err == nil:
			s.mustRelease(won)
		}
		if hold != nil {
			s.mustNotAcquire(c)
			s.mustRelease(hold)
		}
	}
	s.mustBeFree(a)
}

func (s *suite) release() {
	a, b := s.client("a"), s.client("b")
	hold := s.acquire(a)
	ctx := hold.Context(context.Background())
	if err := ctx.Err(); err != nil {
		s.Fatalf("the context of a hold that is valid has ended: %v", err)
	}
	s.mustRelease(hold)
	s.await(hold.Done(), "Done")
	s.mustHaveEnded(hold, recipes.ErrNotHeld)
	if cause := context.Cause(ctx); !errors.Is(cause, recipes.ErrNotHeld) {
		s.Fatalf("the cause of the context is %v, want recipes.ErrNotHeld", cause)
	}
	next := s.acquire(b)
	if err := hold.Release(); !errors.Is(err, recipes.ErrNotHeld) {
		s.Fatalf("a second Release: %v, want recipes.ErrNotHeld", err)
	}
	s.mustNotAcquire(a) // it has not released the next hold
	s.mustRelease(next)
}

// mustHaveEnded requires that a hold says of itself that it has ended.
func (s *suite) mustHaveEnded(h *recipes.Hold, reason error) {
	s.Helper()
	if err := h.Err(); err == nil || reason != nil && !errors.Is(err, reason) {
		s.Fatalf("the error of a hold that has ended: %v, want %v", err, reason)
	}
	if until := h.ValidUntil(); !until.IsZero() {
		s.Fatalf("a hold that has ended is valid until %v", until)
	}
	select {
	case <-h.Context(context.Background()).Done():
	default:
		s.Fatal("a new context of a hold that has ended has not")
	}
}

func (s *suite) order() {
	if s.Waiters == nil {
		s.Skip("Service.Waiters is nil: no order is promised")
	}
	hold := s.acquire(s.client("holder"))
	var waiting []*attempt
	for i := range clients {
		waiting = append(waiting, s.start(s.client(fmt.Sprintf("waiter %d", i))))
		s.awaitWaiters(i + 1)
	}
	const middle = 1
	waiting[middle].giveUp()
	s.await(waiting[middle].done, "an Acquire whose context has ended")
	waiting = slices.Delete(waiting, middle, middle+1)
	for i, next := range waiting {
		s.mustRelease(hold)
		hold = s.won(next)
		for _, later := range waiting[i+1:] {
			s.mustWait(later)
		}
	}
	s.mustRelease(hold)
}

func (s *suite) awaitWaiters(n int) {
	s.Helper()
	for end := s.bounded(); s.Waiters(s.T) != n; time.Sleep(time.Millisecond) {
		if end.Err() != nil {
			s.Fatalf("%d clients wait, want %d", s.Waiters(s.T), n)
		}
	}
}

func (s *suite) tokens() {
	last := int64(0)
	for i := range clients {
		hold := s.acquire(s.client(fmt.Sprintf("client %d", i)))
		token := hold.Token()
		s.mustFollow(hold, last)
		s.mustRelease(hold)
		if hold.Token() != token {
			s.Fatalf("the token of a hold that has ended is %d, want %d", hold.Token(), token)
		}
		last = token
	}
}

// mustFollow requires that a hold has a larger token than that of the hold before.
func (s *suite) mustFollow(h *recipes.Hold, last int64) {
	s.Helper()
	switch token := h.Token(); {
	case !s.Tokens && token != 0:
		s.Fatalf("the token is %d, want 0: Service.Tokens is false", token)
	case s.Tokens && token <= last:
		s.Fatalf("the token %d is not larger than %d of the hold before", token, last)
	}
}

// deadline waits until the lease has been renewed for two leases.
func (s *suite) deadline() {
	c := s.client("c")
	before := time.Now()
	hold := s.acquire(c)
	first := hold.ValidUntil()
	if first.Before(before) || first.After(time.Now().Add(s.Lease)) {
		s.Fatalf("a new hold is valid until %v from now, want 0 to %v", time.Until(first), s.Lease)
	}
	s.awaitRenewal(hold, first)
	s.awaitRenewal(hold, first.Add(2*s.Lease))
	s.mustRelease(hold)
}

// awaitRenewal waits until a hold is valid for longer.
func (s *suite) awaitRenewal(h *recipes.Hold, than time.Time) {
	s.Helper()
	for !h.ValidUntil().After(than) {
		select {
		case <-h.Done():
			s.Fatalf("the hold was lost before its lease was renewed: %v", h.Err())
		case <-time.After(s.Lease / 100):
		}
	}
}

// partition cuts the holder off. Its hold must have ended when another client has the lock. Before
// that the holder is cut off for so short a time that it may hear late answers.
func (s *suite) partition() {
	a, b, c := s.client("a"), s.client("b"), s.client("c")
	if a.Cut == nil {
		s.Skip("Client.Cut is nil")
	}
	hold := s.acquire(a)
	ctx := hold.Context(context.Background())
	heal := s.cut(a)
	time.Sleep(s.Lease / 2)
	heal()
	time.Sleep(s.Lease / 20)
	heal = s.cut(a)
	next := s.won(s.start(b))
	s.mustHaveEnded(hold, nil)
	s.mustFollow(next, hold.Token())
	s.await(hold.Done(), "Done of the hold that was lost")
	s.await(ctx.Done(), "the context of the hold that was lost")
	if errors.Is(hold.Err(), recipes.ErrNotHeld) {
		s.Fatalf("the hold was lost, and its error is %v", hold.Err())
	}
	heal()
	s.mustHaveBeenLost(hold)
	s.mustBeFreeAfter(next, a, c)
}

// mustHaveBeenLost releases a hold that was lost. That must fail, and say why.
func (s *suite) mustHaveBeenLost(h *recipes.Hold) {
	s.Helper()
	if err := h.Release(); err == nil || errors.Is(err, recipes.ErrNotHeld) {
		s.Fatalf("Release of a hold that was lost: %v, want why", err)
	}
}

// mustBeFreeAfter requires that a hold is valid, whatever the one before it does late, that it
// excludes two clients, and that both acquire the lock when it has ended.
func (s *suite) mustBeFreeAfter(next *recipes.Hold, a, c Client) {
	s.Helper()
	s.mustNotAcquire(a)
	s.mustExclude(next, c)
	s.mustRelease(next)
	s.mustBeFree(c)
	s.mustBeFree(a)
}

// mustExclude requires that a hold excludes a client, until its lease is renewed. What others do late
// has that time to show.
func (s *suite) mustExclude(h *recipes.Hold, c Client) {
	s.Helper()
	s.mustNotAcquire(c)
	s.awaitRenewal(h, h.ValidUntil())
	s.mustNotAcquire(c)
}

// cutWaiter cuts a waiter off until the service has forgotten it. The waiter may fail, but must not
// acquire a lock that is held.
func (s *suite) cutWaiter() {
	a, b, c := s.client("a"), s.client("b"), s.client("c")
	if b.Cut == nil {
		s.Skip("Client.Cut is nil")
	}
	hold := s.acquire(a)
	waiting := s.queue(b)
	heal := s.cut(b)
	time.Sleep(s.Lease)
	heal()
	s.mustExclude(hold, c)
	select {
	case <-waiting.done:
		if waiting.err == nil {
			s.Fatal("a waiter that was cut off acquired a lock that is held")
		}
	default:
	}
	s.mustRelease(hold)
	if s.await(waiting.done, "Acquire"); waiting.err != nil {
		waiting = s.start(b)
	}
	next := s.won(waiting)
	s.mustFollow(next, hold.Token())
	s.mustRelease(next)
	s.mustBeFree(c)
}

// cutCalls cuts clients off for as long as they make calls. Each call must end, by its context or by
// itself.
func (s *suite) cutCalls() {
	a, b, c := s.client("a"), s.client("b"), s.client("c")
	if a.Cut == nil {
		s.Skip("Client.Cut is nil")
	}
	hold := s.acquire(a)
	s.mustNotAcquire(b)
	s.cut(a)
	heal := s.cut(b)
	s.mustEnd("TryAcquire", b.Lock.TryAcquire)
	s.mustEnd("Acquire", b.Lock.Acquire)
	heal()
	s.await(background(func() { _ = hold.Release() }), "a Release of a client that is cut off")
	s.mustBeFree(b)
	if c.Close == nil {
		return
	}
	hold = s.acquire(c)
	s.cut(c)
	s.await(background(c.Close), "the end of a client that is cut off")
	s.mustHaveEnded(hold, nil)
	s.mustBeFree(b)
}

// mustEnd requires that an acquire of a client that is cut off fails when its context ends.
func (s *suite) mustEnd(name string, acquire func(context.Context) (*recipes.Hold, error)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.Lease/20)
	defer cancel()
	var err error
	s.await(background(func() { _, err = acquire(ctx) }), name+" of a client that is cut off")
	if err == nil {
		s.Fatalf("%s of a client that is cut off succeeded", name)
	}
}

// deletion deletes the record of a hold: at first the hold has time to notice that, and then another
// client has the lock as soon as possible.
func (s *suite) deletion() {
	a, b, c := s.client("a"), s.client("b"), s.client("c")
	if a.Delete == nil {
		s.Skip("Client.Delete is nil")
	}
	hold := s.acquire(a)
	waiting := s.queue(b)
	a.Delete()
	s.await(hold.Done(), "the end of a hold whose record was deleted")
	s.mustHaveEnded(hold, nil)
	next := s.won(waiting)
	s.mustFollow(next, hold.Token())
	s.mustHaveBeenLost(hold)
	s.mustBeFreeAfter(next, a, c)

	hold = s.acquire(a)
	a.Delete()
	next = s.acquire(b)
	s.mustHaveBeenLost(hold)
	s.mustNotAcquire(c)
	s.mustRelease(next)
}

// close ends a client that holds, one that waits, and one that does both and releases. A second Close
// does nothing.
func (s *suite) close() {
	a, b, c := s.client("a"), s.client("b"), s.client("c")
	if a.Close == nil {
		s.Skip("Client.Close is nil")
	}
	hold := s.acquire(a)
	waiting := s.start(b)
	s.mustNotAcquire(b)
	b.Close()
	s.await(waiting.done, "an Acquire of a client that was closed")
	if waiting.err == nil {
		s.Fatal("an Acquire of a client that was closed succeeded")
	}
	a.Close()
	s.await(hold.Done(), "the end of a hold whose client was closed")
	s.mustHaveEnded(hold, nil)
	s.mustBeFree(c)
	if _, err := a.Lock.Acquire(s.bounded()); err == nil {
		s.Fatal("a client that was closed acquired the lock")
	}
	a.Close()

	hold = s.acquire(c)
	waiting = s.start(c)
	released := background(func() { _ = hold.Release() })
	s.await(hold.Done(), "the end of a hold that is released")
	s.await(background(c.Close), "the end of a client that acquires and releases")
	s.await(released, "a Release of a client that was closed")
	s.await(waiting.done, "an Acquire of a client that was closed")
	if waiting.err == nil {
		s.await(waiting.hold.Done(), "the end of a hold whose client was closed")
	}
	c.Close()
	s.mustBeFree(s.client("d"))
}
