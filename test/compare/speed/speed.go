// Package speed measures how fast locks are, and how many requests they cost.
package speed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/service"
	"github.com/docent-zk/docent/test/compare/worker"
)

// Row is how fast a kind of lock is. A number that could not be measured is 0, and has a reason.
type Row struct {
	Kind      string
	Alone     float64       // acquires and releases in a second, by one program
	P50, P99  time.Duration // of one acquire and release by one program
	Contended float64       // acquires and releases in a second, by Programs programs
	Fairness  float64       // the acquires of the least successful of them, in parts of the most successful's
	HandOver  time.Duration // median, from the call of release until the waiter has the lock
	Many      time.Duration // to acquire ManyLocks locks, one after another
	Requests  float64       // of an acquire and release
	Waiting   float64       // requests in a second of Programs-1 waiters
	WakeUp    float64       // requests that follow from a release while so many wait, until one has the lock
	Keeping   float64       // requests in a second to hold ManyLocks locks
	Reasons   []string
	Run       string // when the run began that it is of
}

const (
	Programs  = 16   // that want one lock
	ManyLocks = 1000 // that one program holds
)

// String returns the row for people that wait.
func (r Row) String() string {
	return fmt.Sprintf("%-14s alone %.0f/s, p50 %v, contended %.0f/s, hand-over %v, %d locks %v, requests %.1f, "+
		"waiting %.1f/s %v",
		r.Kind, r.Alone, r.P50, r.Contended, r.HandOver, ManyLocks, r.Many, r.Requests, r.Waiting, r.Reasons)
}

// Runner measures.
type Runner struct {
	Launcher *worker.Launcher
	Long     time.Duration // of each measurement
	Rounds   int           // of a hand-over
	Log      func(format string, args ...any)
}

// limit is for one answer of a program.
const limit = 90 * time.Second

// Measure measures kinds of locks on one service.
func (r Runner) Measure(ctx context.Context, name string, kinds []peer.Kind) (rows []Row, err error) {
	s, err := service.Start(ctx, name, service.Options{})
	if err != nil {
		return nil, err
	}
	counting := s
	if name == peer.PostgreSQL { // which logs what is counted
		if counting, err = service.Start(ctx, name, service.Options{Count: true}); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		defer func() { err = errors.Join(err, counting.Close()) }()
	}
	for _, k := range kinds { // a server in Java compiles its code meanwhile, for all kinds
		m := &measurement{Runner: r, kind: k, service: s}
		_ = m.step(ctx, m.alone) // a failure is told when it is measured
	}
	for _, k := range kinds {
		m := &measurement{Runner: r, kind: k, service: s, counting: counting, row: Row{Kind: k.Name}}
		for what, measure := range m.steps() {
			if err := m.step(ctx, measure); err != nil {
				m.row.Reasons = append(m.row.Reasons, fmt.Sprintf("%s: %v", what, err))
			}
		}
		if ctx.Err() != nil { // the row is not complete
			err = ctx.Err()
			break
		}
		r.Log("%s", m.row)
		rows = append(rows, m.row)
	}
	return rows, errors.Join(err, s.Close())
}

type measurement struct {
	Runner
	kind              peer.Kind
	service, counting service.Service
	row               Row
	started           []*worker.Worker
}

func (m *measurement) steps() func(yield func(string, func(context.Context) error) bool) {
	return func(yield func(string, func(context.Context) error) bool) {
		_ = yield("one program", m.alone) && yield("requests", m.requests) && yield("hand-over", m.handOver) &&
			yield("waiting", m.waiting) && yield("many programs", m.contended) && yield("many locks", m.many)
	}
}

// step makes a measurement, and ends its programs.
func (m *measurement) step(ctx context.Context, measure func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer m.end()
	return measure(ctx)
}

// end ends the programs.
func (m *measurement) end() {
	for _, w := range m.started {
		w.Close()
	}
	m.started = nil
}

// Lease is long, so that heartbeats and renewals come after what is measured.
const Lease = 10 * worker.Lease

// programs starts n programs for one lock.
func (m *measurement) programs(ctx context.Context, s service.Service, lock string, n int) ([]*worker.Worker, error) {
	return m.programsOf(ctx, s, lock, n, Lease)
}

func (m *measurement) programsOf(
	ctx context.Context, s service.Service, lock string, n int, lease time.Duration,
) ([]*worker.Worker, error) {
	all := make([]*worker.Worker, n)
	err := each(n, func(i int) (err error) {
		all[i], err = m.Launcher.Start(ctx, m.kind, s, worker.Options{Direct: true, Lease: lease,
			Lock: strings.ReplaceAll(m.kind.Name, ".", "-") + "-" + lock})
		return err
	})
	for _, w := range all {
		if w != nil {
			m.started = append(m.started, w)
		}
	}
	return all, err
}

// each calls fn for all numbers below n at the same time.
func each(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = fn(i) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// loop has a program acquire and release for a while.
func (m *measurement) loop(
	ctx context.Context, w *worker.Worker, long time.Duration,
) (ops int, h *hist.Histogram, err error) {
	words, err := w.Ask(ctx, fmt.Sprint("loop ", long.Milliseconds()), "looped")
	if err != nil {
		return 0, nil, err
	}
	if ops, err = strconv.Atoi(strings.TrimPrefix(words[1], "ops=")); err != nil {
		return 0, nil, err
	}
	h, err = hist.Parse(strings.TrimPrefix(words[2], "hist="))
	return ops, h, err
}

// rounds is the number of rounds of one program: the median counts.
const rounds = 5

func (m *measurement) alone(ctx context.Context) error {
	all, err := m.programs(ctx, m.service, "alone", 1)
	if err != nil {
		return err
	}
	if _, _, err := m.loop(ctx, all[0], m.Long/2); err != nil { // Java compiles its code meanwhile
		return err
	}
	var rates []float64
	sum := &hist.Histogram{}
	for range rounds {
		began := time.Now()
		ops, h, err := m.loop(ctx, all[0], m.Long/2)
		if err != nil {
			return err
		}
		rates = append(rates, float64(ops)/time.Since(began).Seconds())
		sum.Merge(h)
	}
	m.row.Alone = hist.Median(rates)
	m.row.P50, m.row.P99 = sum.Quantile(0.5), sum.Quantile(0.99)
	return nil
}

func (m *measurement) requests(ctx context.Context) error {
	all, err := m.programs(ctx, m.counting, "count", 1)
	if err != nil {
		return err
	}
	if _, _, err := m.loop(ctx, all[0], m.Long/10); err != nil {
		return err
	}
	before, err := m.counting.Requests(ctx)
	if err != nil {
		return err
	}
	ops, _, err := m.loop(ctx, all[0], m.Long/2)
	if err != nil {
		return err
	}
	after, err := m.counting.Requests(ctx)
	m.row.Requests = float64(after-before) / float64(ops)
	return err
}

// queueing is how long a program needs at most until it waits.
const queueing = 100 * time.Millisecond

func (m *measurement) handOver(ctx context.Context) error {
	all, err := m.programs(ctx, m.service, "hand-over", 2)
	if err != nil {
		return err
	}
	var took []time.Duration
	holder, waiter := all[0], all[1]
	if _, err := holder.Ask(ctx, "acquire", "held"); err != nil {
		return err
	}
	for range m.Rounds {
		if err := waiter.Tell("acquire"); err != nil {
			return err
		}
		time.Sleep(queueing + rand.N(queueing)) // at no particular time for a waiter that polls
		left, err := holder.Ask(ctx, "release", "released")
		if err != nil {
			return err
		}
		got, err := waiter.Hear(ctx, "held")
		if err != nil {
			return err
		}
		from, err := strconv.ParseInt(left[1], 10, 64)
		if err != nil {
			return err
		}
		to, err := strconv.ParseInt(got[2], 10, 64)
		if err != nil {
			return err
		}
		took = append(took, time.Duration(to-from))
		holder, waiter = waiter, holder
	}
	slices.Sort(took)
	m.row.HandOver = took[len(took)/2]
	return nil
}

func (m *measurement) waiting(ctx context.Context) error {
	all, err := m.programs(ctx, m.counting, "waiting", Programs)
	if err != nil {
		return err
	}
	if _, err := all[0].Ask(ctx, "acquire", "held"); err != nil {
		return err
	}
	for _, w := range all[1:] {
		if err := w.Tell("acquire"); err != nil {
			return err
		}
	}
	time.Sleep(m.Long / 2)
	before, began, err := m.count(ctx)
	if err != nil {
		return err
	}
	time.Sleep(m.Long)
	after, ended, err := m.count(ctx)
	if err != nil {
		return err
	}
	m.row.Waiting = float64(after-before) / ended.Sub(began).Seconds()
	if _, err := all[0].Ask(ctx, "release", "released"); err != nil {
		return err
	}
	if err := first(ctx, all[1:]); err != nil {
		return err
	}
	time.Sleep(m.Long / 4) // for the requests of those that do not have it
	woken, now, err := m.count(ctx)
	m.row.WakeUp = max(0, float64(woken-after)-m.row.Waiting*now.Sub(ended).Seconds())
	return err
}

func (m *measurement) count(ctx context.Context) (int64, time.Time, error) {
	n, err := m.counting.Requests(ctx)
	return n, time.Now(), err
}

// first waits until one of several programs has the lock.
func first(ctx context.Context, all []*worker.Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	held := make(chan error, len(all))
	var running sync.WaitGroup
	for _, w := range all {
		running.Go(func() {
			_, err := w.Hear(ctx, "held")
			held <- err
		})
	}
	err := <-held
	cancel()
	running.Wait()
	return err
}

func (m *measurement) contended(ctx context.Context) error {
	all, err := m.programs(ctx, m.service, "contended", Programs)
	if err != nil {
		return err
	}
	ops := make([]int, len(all))
	loop := func(long time.Duration) error {
		return each(len(all), func(i int) (err error) {
			ops[i], _, err = m.loop(ctx, all[i], long)
			return err
		})
	}
	if err := loop(m.Long); err != nil { // Java compiles its code meanwhile
		return err
	}
	began := time.Now()
	if err := loop(2 * m.Long); err != nil {
		return err
	}
	sum := 0
	for _, n := range ops {
		sum += n
	}
	m.row.Contended = float64(sum) / time.Since(began).Seconds()
	m.row.Fairness = float64(slices.Min(ops)) / float64(max(1, slices.Max(ops)))
	return nil
}

func (m *measurement) many(ctx context.Context) error {
	var err error
	if m.row.Many, err = m.acquireMany(ctx, m.service, "many"); err != nil {
		return err
	}
	if _, err = m.acquireMany(ctx, m.counting, "keeping"); err != nil {
		return err
	}
	before, began, err := m.count(ctx)
	if err != nil {
		return err
	}
	time.Sleep(worker.Lease) // each lock is renewed meanwhile, if it is at all
	after, ended, err := m.count(ctx)
	m.row.Keeping = float64(after-before) / ended.Sub(began).Seconds()
	return err
}

// acquireMany has a program acquire many locks, and returns how long it took.
func (m *measurement) acquireMany(ctx context.Context, s service.Service, lock string) (time.Duration, error) {
	m.end() // the program before it, which renews its locks
	all, err := m.programsOf(ctx, s, lock, 1, worker.Lease)
	if err != nil {
		return 0, err
	}
	words, err := all[0].Ask(ctx, fmt.Sprint("many ", ManyLocks), "many")
	if err != nil {
		return 0, err
	}
	nanos, err := strconv.ParseInt(words[1], 10, 64)
	return time.Duration(nanos), err
}
