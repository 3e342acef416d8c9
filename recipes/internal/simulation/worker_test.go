package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
)

// Paths of the locks. limitPath and dataPath are no locks.
const (
	plainPath    = "/plain"
	handoffPath  = "/handoff"
	thirdPath    = "/third"
	nestedPath   = "/nested"
	rwPath       = "/rw"
	sharedPath   = "/shared"
	slotsPath    = "/slots"
	fixedPath    = "/fixed"
	electionPath = "/election"
	latchPath    = "/latch"

	limitPath  = "/limit"
	dataPath   = "/data"
	fixedLimit = 3
)

// multiPaths has the paths of the mutexes that multi-locks combine.
var multiPaths = []string{plainPath, handoffPath, thirdPath}

// lock is acquired by workers.
type lock interface {
	Acquire(context.Context) (*recipes.Hold, error)
	TryAcquire(context.Context) (*recipes.Hold, error)
}

// several is a lock of n permits.
type several struct {
	*semaphore.Semaphore
	n int
}

func (s several) Acquire(ctx context.Context) (*recipes.Hold, error) { return s.AcquireN(ctx, s.n) }

func (s several) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.TryAcquireN(ctx, s.n)
}

// locks has the lock values of one client.
type locks struct {
	client               *framework.Client
	plain, handoff       *mutex.Mutex
	rw                   *rwlock.RWLock
	shared, slots, fixed *semaphore.Semaphore
}

// member is a client with its locks. Some scenarios close and replace it.
type member struct {
	t       *testing.T
	srv     *zktest.Server
	name    string
	servers string
	random  *rand.Rand
	options []framework.Option

	mu    sync.Mutex
	locks *locks
}

func (m *member) current() *locks {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locks
}

// open makes a client with random options.
func (m *member) open() {
	opts := append([]framework.Option{
		framework.WithDialer(m.srv.Client(m.name).DialContext),
		framework.WithSessionTimeout(sessionTimeout),
		framework.WithRandom(fork(m.random).Int64N),
	}, m.options...)
	if m.random.IntN(2) == 0 {
		opts = append(opts, framework.WithRetry(retry.Forever(100*time.Millisecond)))
	}
	var plain, handoff []mutex.Option
	if m.random.IntN(3) == 0 {
		plain = append(plain, mutex.WithKazooNames())
	}
	choice := m.random.IntN(3)
	if choice > 0 {
		limits := mutex.Handoff{Streak: 1 + m.random.IntN(5), Span: upTo(m.random, sessionTimeout)}
		if choice > 1 {
			limits.Idle = upTo(m.random, sessionTimeout)
		}
		handoff = append(handoff, mutex.WithLocalHandoff(limits))
	}
	c := must(framework.New(m.servers, opts...))
	limit := semaphore.WithSharedLimit(limitPath)
	l := &locks{
		client:  c,
		plain:   must(mutex.New(c, plainPath, plain...)),
		handoff: must(mutex.New(c, handoffPath, handoff...)),
		rw:      must(rwlock.New(c, rwPath)),
		shared:  must(semaphore.New(c, sharedPath, fixedLimit, limit)),
		slots:   must(semaphore.New(c, slotsPath, fixedLimit, limit, semaphore.WithSlots())),
		fixed:   must(semaphore.New(c, fixedPath, fixedLimit)),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks = l
}

func (m *member) close() { require.NoError(m.t, m.current().client.Close()) }

// worker is a goroutine that acquires the locks of a member.
type worker struct {
	*member
	id      string
	random  *rand.Rand
	checker *checker
}

// run calls random actions of the menu and pauses between them.
func (w *worker) run(menu []action, turns int) {
	for range turns {
		time.Sleep(upTo(w.random, 200*time.Millisecond))
		if err := menu[w.random.IntN(len(menu))](w, w.current()); err != nil {
			w.checkError(err)
			time.Sleep(upTo(w.random, 50*time.Millisecond))
		}
	}
}

// action uses a lock once and returns the error of its acquire.
type action func(w *worker, l *locks) error

var (
	takePlain   action = func(w *worker, l *locks) error { return w.mutex(l.plain, plainPath) }
	takeHandoff action = func(w *worker, l *locks) error { return w.mutex(l.handoff, handoffPath) }
	takeShared  action = func(w *worker, l *locks) error { return w.permits(l.shared, sharedPath) }
	takeSlots   action = func(w *worker, l *locks) error { return w.permits(l.slots, slotsPath) }
	takeFixed   action = func(w *worker, l *locks) error { return w.permits(l.fixed, fixedPath) }

	everything = []action{
		takePlain, takePlain, takeHandoff, takeHandoff, (*worker).multi, (*worker).multi, (*worker).nested,
		(*worker).readWrite, (*worker).readWrite, takeShared, takeShared, takeSlots, takeFixed, (*worker).meddle,
	}
	onlyPermits = []action{takeShared, takeShared, takeSlots, takeSlots, takeFixed, takeFixed, (*worker).meddle}
)

// expected has the errors that faults of the servers and the network may cause.
var expected = []error{
	recipes.ErrNotAcquired, context.Canceled, context.DeadlineExceeded, rwlock.ErrUpgrade,
	framework.ErrNotConnected, framework.ErrClosed,
	framework.ErrSessionLost, framework.ErrSuspended, recipes.ErrNodeDeleted,
}

func (w *worker) checkError(err error) {
	if !oneOf(err, expected...) && !framework.IsTransient(err) && !passing(err) {
		w.t.Errorf("%s: %v", w.id, err)
	}
}

// acquire acquires l. Some calls do not wait, others are bounded or canceled.
func (w *worker) acquire(l lock) (*recipes.Hold, error) {
	ctx, cancel := w.patience()
	defer cancel()
	if w.random.IntN(4) == 0 {
		return l.TryAcquire(ctx)
	}
	return l.Acquire(ctx)
}

func (w *worker) patience() (context.Context, context.CancelFunc) {
	switch w.random.IntN(5) {
	case 0:
		return context.WithTimeout(context.Background(), upTo(w.random, 3*time.Second))
	case 1:
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(upTo(w.random, 2*time.Second), cancel)
		return ctx, cancel
	}
	return context.WithCancel(context.Background())
}

// begin checks a hold of one lock.
func (w *worker) begin(h *recipes.Hold, k kind, lock string, partner *record) *record {
	return w.checker.begin(&record{
		valid: h, kind: k, owner: w.id, lock: lock, nodes: h.Paths(), token: h.Token(),
		partner: partner, slots: semaphore.Slots(h),
	})
}

func (w *worker) stay(h *recipes.Hold, most time.Duration) {
	select {
	case <-time.After(upTo(w.random, most)):
	case <-h.Done():
	}
}

// release releases a hold, sometimes twice at the same time.
func (w *worker) release(h *recipes.Hold) {
	first := h.Release
	if w.random.IntN(8) == 0 {
		other := make(chan error, 1)
		go func() { other <- h.Release() }()
		err := h.Release()
		second := <-other
		if errors.Is(err, recipes.ErrNotHeld) == errors.Is(second, recipes.ErrNotHeld) {
			w.t.Errorf("%s: two releases at once: %v, %v", w.id, err, second)
		}
		first = func() error { return nil }
	}
	err := first()
	if err != nil && !oneOf(err, recipes.ErrReleasePending, recipes.ErrNodeDeleted,
		framework.ErrSessionLost, framework.ErrClosed, framework.ErrSuspended) {
		w.t.Errorf("%s: release: %v", w.id, err)
	}
	if h.Err() == nil {
		w.t.Errorf("%s: the hold is valid after its release", w.id)
	}
	if again := h.Release(); !errors.Is(again, recipes.ErrNotHeld) {
		w.t.Errorf("%s: second release: %v after %v", w.id, again, err)
	}
}

// guard sometimes writes the token of a lock under a Guard of its hold.
func (w *worker) guard(h *recipes.Hold, token int64, lock string) {
	if w.random.IntN(3) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), upTo(w.random, 3*time.Second))
	defer cancel()
	_, _ = h.Guard(ctx, framework.SetOp(dataPath+lock, []byte(strconv.FormatInt(token, 10)), -1))
}

// mutex holds a mutex, sometimes more than once. It releases the reentrant holds in any order.
func (w *worker) mutex(l *mutex.Mutex, path string) error {
	h, err := w.acquire(l)
	if err != nil {
		return err
	}
	w.begin(h, exclusive, path, nil)
	w.guard(h, h.Token(), path)
	work := h.Context(context.Background())
	all := []*recipes.Hold{h}
	for w.random.IntN(3) == 0 {
		w.stay(h, 100*time.Millisecond)
		inner, err := l.Acquire(work)
		if err != nil {
			break
		}
		if inner.Token() != h.Token() {
			w.t.Errorf("%s: a reentrant hold has token %d, not %d", w.id, inner.Token(), h.Token())
		}
		all = append(all, inner)
	}
	w.stay(h, 500*time.Millisecond)
	w.guard(h, h.Token(), path)
	for _, i := range w.random.Perm(len(all)) {
		w.stay(all[i], 50*time.Millisecond)
		w.release(all[i])
	}
	if work.Err() == nil {
		w.t.Errorf("%s: the context does not end with the release", w.id)
	}
	return nil
}

// multi holds several mutexes with one multi-lock.
func (w *worker) multi(l *locks) error {
	var paths []string
	for _, i := range w.random.Perm(len(multiPaths))[:1+w.random.IntN(len(multiPaths))] {
		paths = append(paths, multiPaths[i])
	}
	h, err := w.acquire(must(multilock.New(l.client, paths)))
	if err != nil {
		return err
	}
	for i, p := range paths {
		w.checker.begin(&record{
			valid: h, kind: exclusive, owner: w.id, lock: p, nodes: h.Paths()[i : i+1], token: h.Tokens()[i],
		})
		w.guard(h, h.Tokens()[i], p)
	}
	w.stay(h, 500*time.Millisecond)
	w.release(h)
	return nil
}

// nested holds a mutex and a permit. No worker acquires them in the opposite order.
func (w *worker) nested(l *locks) error {
	h, err := w.acquire(must(multilock.Combine(must(mutex.New(l.client, nestedPath)), l.fixed)))
	if err != nil {
		return err
	}
	w.checker.begin(&record{
		valid: h, kind: exclusive, owner: w.id, lock: nestedPath, nodes: h.Paths()[:1], token: h.Tokens()[0],
	})
	w.stay(h, 500*time.Millisecond)
	w.release(h)
	return nil
}

// readWrite reads, or writes and sometimes downgrades.
func (w *worker) readWrite(l *locks) error {
	if w.random.IntN(2) == 0 {
		return w.read(l)
	}
	h, err := w.acquire(l.rw.Write())
	if err != nil {
		return err
	}
	r := w.begin(h, writing, rwPath, nil)
	w.guard(h, h.Token(), rwPath)
	w.stay(h, 300*time.Millisecond)
	if w.random.IntN(2) > 0 {
		w.release(h)
		return nil
	}
	down, err := l.rw.Read().Acquire(h.Context(context.Background()))
	w.release(h)
	if err != nil {
		return err
	}
	w.begin(down, downgraded, rwPath, r)
	w.stay(down, 500*time.Millisecond)
	if w.random.IntN(2) == 0 {
		err = w.upgrade(l, down, r)
	}
	w.release(down)
	return err
}

func (w *worker) read(l *locks) error {
	h, err := w.acquire(l.rw.Read())
	if err != nil {
		return err
	}
	r := w.begin(h, reading, rwPath, nil)
	w.stay(h, 500*time.Millisecond)
	for w.random.IntN(2) == 0 && err == nil {
		err = w.upgrade(l, h, r)
	}
	w.release(h)
	return err
}

// upgrade writes under a read hold.
func (w *worker) upgrade(l *locks, h *recipes.Hold, partner *record) error {
	ctx, cancel := w.patience()
	defer cancel()
	up, err := l.rw.TryUpgrade(h.Context(ctx))
	if err != nil {
		return err
	}
	w.begin(up, upgraded, rwPath, partner)
	w.stay(up, 300*time.Millisecond)
	w.release(up)
	return nil
}

func (w *worker) permits(s *semaphore.Semaphore, path string) error {
	n := 1 + w.random.IntN(2)
	h, err := w.acquire(several{s, n})
	if err != nil {
		return err
	}
	if len(h.Paths()) != n {
		w.t.Errorf("%s: %d permits, not %d", w.id, len(h.Paths()), n)
	}
	w.begin(h, permits, path, nil)
	w.stay(h, 700*time.Millisecond)
	w.release(h)
	return nil
}

// meddle changes the limit or revokes a hold of a mutex.
func (w *worker) meddle(l *locks) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if w.random.IntN(2) == 0 {
		_ = l.shared.SetLimit(ctx, 2+w.random.IntN(3))
		return nil
	}
	for _, m := range []*mutex.Mutex{l.plain, l.handoff} {
		if all, err := m.Participants(ctx); err == nil && len(all) > 0 {
			_ = recipes.Revoke(ctx, l.client, all[w.random.IntN(len(all))])
			break
		}
	}
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fork returns another generator, seeded by r.
func fork(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d)) + 1) }

func oneOf(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
