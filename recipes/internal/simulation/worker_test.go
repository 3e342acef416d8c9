package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/recipes/striped"
)

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

// worker is a goroutine that uses the recipes with the client of a member.
type worker struct {
	*member
	id     string
	random *rand.Rand
}

// action uses a recipe once and returns the error of its first call.
type action struct {
	name string
	do   func(w *worker, l *locks) error
}

// run does random actions of the menu and pauses between them.
func (w *worker) run(menu []action, turns int) {
	for range turns {
		time.Sleep(upTo(w.random, 200*time.Millisecond))
		if err := w.act(menu[w.random.IntN(len(menu))]); err != nil {
			time.Sleep(upTo(w.random, 50*time.Millisecond))
		}
	}
}

// act does one action. While it runs, it is in the list of running actions.
func (w *worker) act(a action) error {
	defer w.running(w.id + " " + a.name)()
	err := a.do(w, w.current())
	if err != nil {
		w.checkError(a.name, err)
	}
	return err
}

// later does an action that may last until the end of the run.
func (w *worker) later(name string, do func(w *worker, l *locks) error) {
	own := *w
	own.random = fork(w.random)
	w.late.Go(func() { _ = own.act(action{name, do}) })
}

// expected has the errors that faults of the servers and the network may cause.
var expected = []error{
	recipes.ErrNotAcquired, context.Canceled, context.DeadlineExceeded, rwlock.ErrUpgrade,
	framework.ErrNotConnected, framework.ErrClosed,
	framework.ErrSessionLost, framework.ErrSuspended, recipes.ErrNodeDeleted,
}

func (w *worker) checkError(doing string, err error) {
	if !oneOf(err, expected...) && !framework.IsTransient(err) && !passing(err) && !w.expiring(err) {
		w.errorf("%s: %s: %v", w.id, doing, err)
	}
}

// expiring reports whether err says that the node in a barrier was deleted, and the test expires
// sessions. A server that lags shows the client that the node is not there before it ends the session.
func (w *worker) expiring(err error) bool {
	return errors.Is(err, barrier.ErrNodeDeleted) &&
		slices.ContainsFunc(w.faults, func(h harm) bool { return h.name == "expiry" })
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
		return context.WithTimeout(w.all, upTo(w.random, 3*time.Second))
	case 1:
		ctx, cancel := context.WithCancel(w.all)
		time.AfterFunc(upTo(w.random, 2*time.Second), cancel)
		return ctx, cancel
	}
	return context.WithCancel(w.all)
}

// begin checks a hold of one lock.
func (w *worker) begin(h *recipes.Hold, k kind, lock string, partner *record) *record {
	return w.checker.begin(&record{
		valid: h, kind: k, owner: w.id, lock: lock, nodes: h.Paths(), token: h.Token(),
		partner: partner, slots: semaphore.Slots(h),
	})
}

// stay waits for a time, or until the hold has ended. Some holds last long enough to lose the session.
func (w *worker) stay(h *recipes.Hold, most time.Duration) {
	if w.random.IntN(6) == 0 {
		most = 3 * sessionTimeout
	}
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
			w.errorf("%s: two releases at once: %v, %v", w.id, err, second)
		}
		first = func() error { return nil }
	}
	err := first()
	if err != nil && !oneOf(err, recipes.ErrReleasePending, recipes.ErrNodeDeleted,
		framework.ErrSessionLost, framework.ErrClosed, framework.ErrSuspended) {
		w.errorf("%s: release: %v", w.id, err)
	}
	if h.Err() == nil {
		w.errorf("%s: the hold is valid after its release", w.id)
	}
	if again := h.Release(); !errors.Is(again, recipes.ErrNotHeld) {
		w.errorf("%s: second release: %v after %v", w.id, again, err)
	}
}

// guard sometimes writes the token and the node of a lock under a Guard of its hold.
func (w *worker) guard(h *recipes.Hold, token int64, lock, node string) {
	if w.random.IntN(3) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(w.all, upTo(w.random, 3*time.Second))
	defer cancel()
	data := fmt.Sprint(token, " ", node)
	_, _ = h.Guard(ctx, framework.SetOp(dataPath+lock, []byte(data), -1))
}

// mutex holds a mutex, sometimes more than once. It releases the reentrant holds in any order.
func (w *worker) mutex(l *mutex.Mutex, at string) error {
	h, err := w.acquire(l)
	if err != nil {
		return err
	}
	w.begin(h, exclusive, at, nil)
	w.guard(h, h.Token(), at, h.Path())
	work := h.Context(w.all)
	all := []*recipes.Hold{h}
	for w.random.IntN(3) == 0 {
		w.stay(h, 100*time.Millisecond)
		inner, err := l.Acquire(work)
		if err != nil {
			break
		}
		if inner.Token() != h.Token() {
			w.errorf("%s: a reentrant hold has token %d, not %d", w.id, inner.Token(), h.Token())
		}
		all = append(all, inner)
	}
	w.stay(h, 500*time.Millisecond)
	w.guard(h, h.Token(), at, h.Path())
	for _, i := range w.random.Perm(len(all)) {
		w.stay(all[i], 50*time.Millisecond)
		w.release(all[i])
	}
	if work.Err() == nil {
		w.errorf("%s: the context does not end with the release", w.id)
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
		w.guard(h, h.Tokens()[i], p, h.Paths()[i])
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
	w.guard(h, h.Token(), rwPath, h.Path())
	w.stay(h, 300*time.Millisecond)
	if w.random.IntN(2) > 0 {
		w.release(h)
		return nil
	}
	down, err := l.rw.Read().Acquire(h.Context(w.all))
	w.release(h)
	if err != nil {
		return err
	}
	if down.Token() != r.token {
		w.errorf("%s: a downgrade has token %d, not %d", w.id, down.Token(), r.token)
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

func (w *worker) permits(s *semaphore.Semaphore, at string) error {
	n := 1 + w.random.IntN(2)
	h, err := w.acquire(several{s, n})
	if err != nil {
		return err
	}
	if len(h.Paths()) != n {
		w.errorf("%s: %d permits, not %d", w.id, len(h.Paths()), n)
	}
	w.begin(h, permits, at, nil)
	w.stay(h, 700*time.Millisecond)
	w.release(h)
	return nil
}

// hold holds a semaphore mutex. Sometimes it tries to acquire it under that hold, too: the mutex is not
// reentrant.
func (w *worker) hold(l *locks) error {
	h, err := w.acquire(l.single)
	if err != nil {
		return err
	}
	w.begin(h, exclusive, singlePath, nil)
	w.guard(h, h.Token(), singlePath, h.Path())
	if w.random.IntN(3) == 0 {
		again, err := l.single.TryAcquire(h.Context(w.all))
		if err == nil {
			w.begin(again, exclusive, singlePath, nil) // it is right if h was lost
			w.release(again)
		} else {
			w.checkError("acquire again", err)
		}
	}
	w.stay(h, 500*time.Millisecond)
	w.release(h)
	return nil
}

// changeLimit changes the limit that the semaphores share.
func (w *worker) changeLimit(l *locks) error {
	ctx, cancel := context.WithTimeout(w.all, 2*time.Second)
	defer cancel()
	_ = l.shared.SetLimit(ctx, 2+w.random.IntN(3))
	return nil
}

// revoke asks a holder or a waiter of a mutex to release it.
func (w *worker) revoke(l *locks, m *mutex.Mutex) error {
	ctx, cancel := context.WithTimeout(w.all, 2*time.Second)
	defer cancel()
	if all, err := m.Participants(ctx); err == nil && len(all) > 0 {
		_ = recipes.Revoke(ctx, l.client, all[w.random.IntN(len(all))])
	}
	return nil
}

// someKeys holds the locks of one key or of several.
func (w *worker) someKeys(l *locks) error {
	var keys []string
	for range 1 + w.random.IntN(3) {
		keys = append(keys, strconv.Itoa(w.random.IntN(5)))
	}
	h, err := w.acquire(l.stripes.ForAll(keys...))
	if err != nil {
		return err
	}
	for _, p := range h.Paths() {
		w.checker.begin(&record{
			valid: h, kind: exclusive, owner: w.id, lock: path.Dir(p), nodes: []string{p}, token: h.Token(),
		})
	}
	held := h.Paths()
	for _, key := range keys {
		dir := fmt.Sprintf("%s/%d/%d", stripesPath, stripes, striped.Index(key, stripes))
		if !slices.ContainsFunc(held, func(p string) bool { return path.Dir(p) == dir }) {
			w.errorf("%s: no node in %s is held for key %s: %v", w.id, dir, key, held)
		}
	}
	w.stay(h, 500*time.Millisecond)
	w.release(h)
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
