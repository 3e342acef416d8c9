package sqllock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// memory is a table in memory, for virtual time.
type memory struct {
	t     testing.TB
	lease time.Duration
	busy  sync.WaitGroup // requests that arrive late

	mu     sync.Mutex
	random *rand.Rand
	begin  time.Time
	rate   float64 // of the clock of the database
	rows   map[string]*memoryRow
	undone map[request]bool
	late   int  // requests that were applied after their error
	keys   bool // rows have no tokens, and no acquire can be undone before it arrives
	cuts   bool // the column of the time has whole seconds
}

// link is the way of one client to the table.
type link struct {
	*memory
	faults  float64       // how likely the fault of a request is
	connect time.Duration // how long a new connection takes
	closed  bool          // the connection: its last request has got no answer
}

type memoryRow struct {
	fence int64
	owner string
	until time.Time // by the clock of the database
}

var errFault = errors.New("connection reset")

func newMemory(t testing.TB, random *rand.Rand, lease time.Duration) *memory {
	return &memory{
		t: t, lease: lease, random: random, begin: time.Now(), rate: 1,
		rows: map[string]*memoryRow{}, undone: map[request]bool{},
	}
}

func (m *memory) nowLocked() time.Time {
	return m.begin.Add(time.Duration(float64(time.Since(m.begin)) * m.rate))
}

// chance reports true with the likelihood of a fault, and a random time of up to a lease, mostly short.
func (m *link) chance() (bool, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.random.Float64() < m.faults {
		return true, time.Duration(m.random.Int64N(int64(m.lease)))
	}
	return false, time.Duration(m.random.IntN(int(m.lease / 200)))
}

// request makes one request: apply is called with the lock. A fault loses the request or its reply, or
// has it arrive late.
func (m *link) request(ctx context.Context, apply func()) error {
	if err := m.dial(ctx); err != nil {
		return err
	}
	defer func() {
		if ctx.Err() != nil {
			m.setClosed(true)
		}
	}()
	locked := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		apply()
	}
	if lost, _ := m.chance(); lost {
		return errFault
	}
	_, way := m.chance() // sometimes up to a lease
	select {
	case <-time.After(way):
		locked()
	case <-ctx.Done():
		if m.faulty() { // the database gets it later
			m.busy.Go(func() {
				time.Sleep(way)
				locked()
			})
		}
		return ctx.Err()
	}
	if lost, _ := m.chance(); lost {
		return errFault
	}
	_, way = m.chance()
	select {
	case <-time.After(way):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial makes a new connection if the last request has got no answer.
func (m *link) dial(ctx context.Context) error {
	if !m.isClosed() {
		return nil
	}
	if m.connect > 0 { // timers without a wait in two goroutines of one bubble crash the race detector
		select {
		case <-time.After(m.connect):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.setClosed(false)
	return nil
}

func (m *link) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

func (m *link) setClosed(closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = closed
}

func (m *link) faulty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults > 0
}

func (m *link) setFaults(f float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
}

func (m *link) read(ctx context.Context, q request) (row, error) {
	var r row
	err := m.request(ctx, func() {
		if one := m.rows[q.name]; one != nil {
			now := m.nowLocked()
			r = row{there: true, fence: one.fence, owner: one.owner, left: one.until.Sub(now)}
			if !m.keys {
				r.next = max(r.fence+1, now.UnixMicro())
			}
		}
	})
	if err != nil {
		return row{}, err
	}
	return r, nil
}

func (m *link) insert(ctx context.Context, name string) error {
	return m.request(ctx, func() {
		if m.rows[name] == nil {
			m.rows[name] = &memoryRow{until: m.nowLocked()}
		}
	})
}

func (m *link) acquire(ctx context.Context, q request) (time.Duration, error) {
	var left time.Duration
	err := m.request(ctx, func() {
		one, now := m.rows[q.name], m.nowLocked()
		if one == nil || one.fence != q.seen || one.owner != "" && one.until.After(now) {
			return
		}
		if m.undone[q] && !m.keys {
			m.t.Error("a request was applied after it was undone")
		}
		if ctx.Err() != nil {
			m.late++
		}
		one.owner, one.fence = q.owner, q.next
		left = m.extend(one, now)
	})
	if err != nil {
		return 0, err // a request that arrives late may yet write left
	}
	return left, nil
}

func (m *link) renew(ctx context.Context, q request) (time.Duration, error) {
	var left time.Duration
	err := m.request(ctx, func() {
		one, now := m.rows[q.name], m.nowLocked()
		if one != nil && one.owner == q.owner && one.fence == q.next && one.until.After(now) {
			left = m.extend(one, now)
		}
	})
	if err != nil {
		return 0, err // a request that arrives late may yet write left
	}
	return left, nil
}

// extend begins a lease, and returns for how long it lasts.
func (m *memory) extend(r *memoryRow, now time.Time) time.Duration {
	if r.until = now.Add(m.lease); m.cuts {
		r.until = r.until.Truncate(time.Second)
	}
	return r.until.Sub(now)
}

func (m *link) release(ctx context.Context, q request) error {
	lost := false
	err := m.request(ctx, func() {
		one := m.rows[q.name]
		if lost = one == nil || one.fence != q.next || m.keys && one.owner != q.owner; !lost {
			one.owner = ""
		}
	})
	if err == nil && lost {
		return recipes.ErrForeignLost
	}
	return err
}

func (m *link) undo(ctx context.Context, q request) error {
	return m.request(ctx, func() {
		one := m.rows[q.name]
		if one != nil && (!m.keys && one.fence == q.seen || one.fence == q.next && one.owner == q.owner) {
			one.owner, one.fence = "", q.next
		}
		m.undone[q] = true
	})
}

func (m *link) leave(ctx context.Context, _ request, _ bool) error { return m.request(ctx, func() {}) }

func (m *link) tokenOf(q request) int64 { return q.next }

func (m *link) why(context.Context, request) error { return errEnded }

// client returns a client and its link.
func (m *memory) client(wrap ...func(table) table) (*Client, *link) {
	cfg, l := defaults(PostgreSQL), &link{memory: m}
	cfg.lease = m.lease
	t := table(l)
	for _, w := range wrap {
		t = w(t)
	}
	return newClient(cfg, func() table { return t }), l
}

// history checks all holds of a simulation.
type history struct {
	t      testing.TB
	mu     sync.Mutex
	holds  []*recipes.Hold
	tokens bool
	last   int64
}

func (h *history) add(hold *recipes.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold.Err() != nil {
		return
	}
	for _, other := range h.holds {
		if other.Err() == nil {
			h.t.Errorf("two holds are valid: %d and %d", other.Token(), hold.Token())
		}
	}
	if h.tokens && hold.Token() <= h.last {
		h.t.Errorf("the token %d is not larger than %d", hold.Token(), h.last)
	}
	h.last = hold.Token()
	h.holds = append(h.holds, hold)
}

func seeds() uint64 {
	n, err := strconv.ParseUint(os.Getenv("ZKTEST_SEEDS"), 10, 64)
	if err != nil {
		return 100
	}
	return n
}

// Requests and replies are lost and late, clients are cut off and closed, contexts end at any moment,
// and the clock of the database is faster or slower. No two holds are valid at a time, tokens grow, and
// in the end nothing is left. A fourth of the seeds are for KeyLocks, half of these with whole seconds.
func TestSimulated(t *testing.T) {
	var holds, lost, late int
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				m := newMemory(t, random, 10*time.Second)
				m.rate = 0.96 + 0.08*random.Float64()
				m.keys = seed%4 == 3
				if m.cuts = seed%8 == 7; m.cuts {
					m.lease = 4 * time.Second // a second is much of it
				}
				h := &history{t: t, tokens: !m.keys}
				simulate(t, m.simulated(seed), h, seed)
				holds, late = holds+len(h.holds), late+m.late
				for _, hold := range h.holds {
					if errors.Is(hold.Err(), recipes.ErrForeignLost) {
						lost++
					}
				}
			})
		})
	}
	t.Logf("%d holds, %d of them lost, %d acquires that arrived late", holds, lost, late)
	if !t.Failed() && seeds() >= 20 {
		require.Greater(t, holds, int(seeds()))
		require.Positive(t, lost, "no hold was lost")
	}
}

// simulated is a database with one lock.
type simulated struct {
	lease  time.Duration
	client func(t *testing.T) simulatedClient
	settle func() // waits until what was late has arrived
}

type simulatedClient struct {
	*Client
	lock      recipes.Locker
	setFaults func(faults float64) // how likely the fault of a request is
}

func (m *memory) simulated(seed uint64) simulated {
	return simulated{m.lease, func(t *testing.T) simulatedClient {
		c, l := m.client()
		l.connect = m.lease / 4 * time.Duration(seed%2)
		lock, err := New(c, "lock")
		require.NoError(t, err)
		return simulatedClient{c, lock, l.setFaults}
	}, m.busy.Wait}
}

func simulate(t *testing.T, s simulated, h *history, seed uint64) {
	const clients, goroutines, rounds = 3, 2, 8
	var all []simulatedClient
	var work sync.WaitGroup
	end := make(chan struct{})
	for i := range clients {
		c := s.client(t)
		all = append(all, c)
		for j := range goroutines {
			random := rand.New(rand.NewPCG(seed, uint64(100+10*i+j)))
			work.Go(func() {
				for range rounds {
					use(random, c.lock, h, s.lease)
				}
			})
		}
	}
	var weather sync.WaitGroup
	for i, c := range all {
		random := rand.New(rand.NewPCG(seed, uint64(200+i)))
		weather.Go(func() { c.change(random, s.lease, end) })
	}
	time.Sleep(time.Duration(seed%30) * s.lease / 5)
	began := time.Now()
	require.NoError(t, all[0].Close()) // its goroutines find it closed
	require.LessOrEqual(t, time.Since(began), s.lease/3)
	work.Wait()
	close(end)
	weather.Wait()
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	s.settle()

	last := s.client(t)
	began = time.Now()
	hold, err := last.lock.Acquire(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, time.Since(began), s.lease+s.lease/10, "a hold that has ended is left")
	h.add(hold)
	require.NoError(t, hold.Release())
	require.NoError(t, last.Close())
	require.Empty(t, last.gates.all)
}

// change changes how many faults a client has, until the end.
func (c simulatedClient) change(random *rand.Rand, lease time.Duration, end <-chan struct{}) {
	defer c.setFaults(0)
	for {
		c.setFaults([]float64{0, 0.05, 0.2, 1}[random.IntN(4)])
		select {
		case <-time.After(time.Duration(random.Int64N(int64(lease)))):
		case <-end:
			return
		}
	}
}

// use acquires the lock once, and releases it or waits until it is lost.
func use(random *rand.Rand, lock recipes.Locker, h *history, lease time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(3*lease))))
	defer cancel()
	acquire := lock.Acquire
	if random.IntN(4) == 0 {
		acquire = lock.TryAcquire
	}
	hold, err := acquire(ctx)
	if err != nil {
		if errors.Is(err, recipes.ErrForeignLost) {
			h.t.Errorf("an acquire has ended with the error of a hold: %v", err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(lease / 5))))
		return
	}
	h.add(hold)
	select {
	case <-time.After(time.Duration(random.Int64N(int64(2 * lease)))):
	case <-hold.Done():
	}
	_ = hold.Release()
}

const testLease = 10 * time.Second

func inMemory(t *testing.T, test func(t *testing.T, m *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newMemory(t, rand.New(rand.NewPCG(1, 1)), testLease)) })
}

func lockOf(t *testing.T, c *Client) *Lock {
	t.Helper()
	lock, err := New(c, "lock")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return lock
}

func mustAcquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(t.Context())
	require.NoError(t, err)
	return hold
}

// An acquire whose reply was lost finds that it has the lock, and renews its lease.
func TestAcquireFindsThatItWasApplied(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		var l *lossy
		c, link := m.client(func(t table) table { l = &lossy{table: t}; return l })
		lock := lockOf(t, c)
		l.after = func() {
			link.setFaults(1)
			time.AfterFunc(testLease/3, func() { link.setFaults(0) })
		}
		hold := mustAcquire(t, lock)
		require.Equal(t, 1, l.acquires)
		require.Equal(t, m.rows["lock"].fence, hold.Token())
		require.False(t, hold.ValidUntil().After(m.rows["lock"].until), "it is valid for longer than its lease")
		require.NoError(t, hold.Release())
	})
}

// A try finds an acquire that arrives after the look for it, too.
func TestTryAcquireFindsThatItWasApplied(t *testing.T) {
	for late, acquires := range map[bool]int{false: 1, true: 2} {
		inMemory(t, func(t *testing.T, m *memory) {
			var l *lossy
			c, _ := m.client(func(t table) table { l = &lossy{table: t, late: late}; return l })
			lock := lockOf(t, c)
			l.after = func() {}
			hold, err := lock.TryAcquire(t.Context())
			require.NoError(t, err)
			require.Equal(t, acquires, l.acquires)
			require.NoError(t, hold.Release())
		})
	}
}

// An acquire finds that it was applied when its lease has almost ended.
func TestAcquireFindsThatItWasAppliedAtTheEndOfItsLease(t *testing.T) {
	for name, acquire := range map[string]func(*Lock, context.Context) (*recipes.Hold, error){
		"Acquire": (*Lock).Acquire, "TryAcquire": (*Lock).TryAcquire,
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, m *memory) {
				var l *lossy
				c, _ := m.client(func(t table) table { l = &lossy{table: t}; return l })
				lock := lockOf(t, c)
				l.after = func() { time.Sleep(testLease - testLease/25) }
				hold, err := acquire(lock, t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, l.acquires)
				require.NoError(t, hold.Release())
			})
		})
	}
}

// An acquire that arrives after the next one was sent is found, too.
func TestAcquireFindsThatItWasAppliedLate(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		var l *lossy
		c, _ := m.client(func(t table) table { l = &lossy{table: t, late: true}; return l })
		lock := lockOf(t, c)
		l.after = func() {}
		hold := mustAcquire(t, lock)
		require.Equal(t, 2, l.acquires)
		require.NoError(t, hold.Release())
	})
}

// A try whose first request still has the row does not say that another holder has the lock.
func TestTryAcquireWithASlowCommit(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		s := &slowCommit{committed: make(chan struct{})}
		c, _ := m.client(func(t table) table { s.table = t; return s })
		_, err := lockOf(t, c).TryAcquire(t.Context())
		require.ErrorContains(t, err, "a request has got no answer")
		require.NotErrorIs(t, err, recipes.ErrNotAcquired)
		<-s.committed
	})
}

// An acquire whose first request has the row was not kept from the lock by another client.
func TestAcquireWithASlowCommit(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		s := &slowCommit{committed: make(chan struct{})}
		c, _ := m.client(func(t table) table { s.table = t; return s })
		ctx, cancel := context.WithTimeout(t.Context(), testLease*4/5)
		defer cancel()
		_, err := lockOf(t, c).Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrNotAcquired)
		require.Greater(t, s.acquires, 1)
		<-s.committed
	})
}

// Transactions have the lock one after the other, by InTx: it is free at each look, and not at each request.
func TestTryAcquireBesideTransactions(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		c, _ := m.client(func(t table) table { return &transactions{table: t} })
		began := time.Now()
		_, err := lockOf(t, c).TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.Less(t, time.Since(began), testLease)
	})
}

// transactions change the row before each acquire.
type transactions struct {
	table
	fence int64
}

func (x *transactions) read(ctx context.Context, q request) (row, error) {
	r, err := x.table.read(ctx, q)
	r.fence += x.fence
	return r, err
}

func (x *transactions) acquire(context.Context, request) (time.Duration, error) {
	x.fence++
	return 0, nil
}

// slowCommit commits the first acquire late. Until then others read the row as it was before, and their
// acquires skip it.
type slowCommit struct {
	table
	acquires  int
	committed chan struct{}
}

func (s *slowCommit) acquire(ctx context.Context, q request) (time.Duration, error) {
	if s.acquires++; s.acquires > 1 {
		select {
		case <-s.committed:
			return s.table.acquire(ctx, q)
		default:
			return 0, nil
		}
	}
	time.AfterFunc(testLease, func() {
		_, _ = s.table.acquire(context.Background(), q)
		close(s.committed)
	})
	<-ctx.Done()
	return 0, ctx.Err()
}

// The driver finds first that the deadline of the caller has passed.
func TestAcquireWhoseDeadlineEndsADriversRequest(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		c, _ := m.client(func(t table) table { return timed{t} })
		late := lateContext{t.Context(), time.Now().Add(time.Second)}
		_, err := lockOf(t, c).Acquire(late)
		require.NoError(t, late.Err())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrNotAcquired, "nothing was seen")
		why := errors.New("why")
		caused, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		late = lateContext{caused, time.Now().Add(time.Second - time.Millisecond)}
		_, err = lockOf(t, c).Acquire(late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, why)
	})
}

// The context of the caller has not ended, only that of a request.
func TestErrorsOfRequestsMatchNoErrorOfAContext(t *testing.T) {
	of := func(t *testing.T, err error) {
		t.Helper()
		require.ErrorContains(t, err, context.DeadlineExceeded.Error())
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
	var mute atomic.Bool
	onDriver(t, muted(&mute, noAnswer), func(t *testing.T, c *Client) {
		lost, released := mustAcquire(t, sessionOf(t, c)), mustAcquire(t, sessionOf(t, c))
		mute.Store(true)
		of(t, released.Release())
		<-lost.Done()
		of(t, lost.Err())
		for _, lock := range []recipes.Locker{lockOf(t, c), sessionOf(t, c)} {
			_, err := lock.Acquire(t.Context())
			of(t, err)
			_, err = lock.TryAcquire(t.Context())
			of(t, err)
		}
	})
}

// lateContext has not ended yet when its deadline has passed.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (l lateContext) Deadline() (time.Time, bool) { return l.deadline, true }

// timed fails each read at the deadline, by a timer of its own.
type timed struct{ table }

func (timed) read(ctx context.Context, _ request) (row, error) {
	deadline, _ := ctx.Deadline()
	time.Sleep(time.Until(deadline))
	return row{}, os.ErrDeadlineExceeded
}

// An acquire that fails without an answer is undone.
func TestAcquireIsUndone(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		var l *lossy
		c, link := m.client(func(t table) table { l = &lossy{table: t}; return l })
		lock := lockOf(t, c)
		l.after = func() { link.setFaults(1) }
		_, err := lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, errFault)
		require.NotEmpty(t, m.rows["lock"].owner)
		link.setFaults(0)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, m.rows["lock"].owner)
	})
}

// PostgreSQL refuses a statement because of another one, and has not applied it.
func TestStatementIsMadeAgainAfterASerializationFailure(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		c, _ := m.client(func(t table) table { return &conflicting{table: t} })
		lock := lockOf(t, c)
		hold, err := lock.TryAcquire(t.Context())
		require.NoError(t, err)
		_, err = lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		time.Sleep(2 * testLease)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Release())
	})
}

// conflicting refuses each other statement.
type conflicting struct {
	table
	n int
}

func (c *conflicting) refuse() error {
	if c.n++; c.n%2 == 1 {
		return fmt.Errorf("refused: %w", state(serialization))
	}
	return nil
}

func (c *conflicting) read(ctx context.Context, q request) (row, error) {
	if err := c.refuse(); err != nil {
		return row{}, err
	}
	return c.table.read(ctx, q)
}

func (c *conflicting) acquire(ctx context.Context, q request) (time.Duration, error) {
	if err := c.refuse(); err != nil {
		return 0, err
	}
	return c.table.acquire(ctx, q)
}

func (c *conflicting) renew(ctx context.Context, q request) (time.Duration, error) {
	if err := c.refuse(); err != nil {
		return 0, err
	}
	return c.table.renew(ctx, q)
}

// lossy loses the reply of an acquire.
type lossy struct {
	table
	after    func() // called after the loss, which happens if it is set
	late     bool   // the acquire arrives together with the next one
	request  request
	acquires int
}

func (l *lossy) acquire(ctx context.Context, q request) (left time.Duration, err error) {
	l.acquires++
	if after := l.after; after != nil {
		l.after, l.request = nil, q
		if !l.late {
			_, _ = l.table.acquire(ctx, q)
		}
		after()
		return 0, errFault
	}
	if l.late {
		l.late = false
		_, _ = l.table.acquire(ctx, l.request)
	}
	return l.table.acquire(ctx, q)
}

// A lease is reckoned from before a request was sent, not from its reply.
func TestAcquireAndRenewalWithSlowReplies(t *testing.T) {
	for replies := range 2 {
		t.Run(fmt.Sprint(replies, " renewals"), func(t *testing.T) {
			inMemory(t, func(t *testing.T, m *memory) {
				s := &slow{replied: make(chan struct{}, 2)}
				c, link := m.client(func(t table) table { s.table = t; return s })
				hold := mustAcquire(t, lockOf(t, c))
				for range 1 + replies {
					<-s.replied
				}
				link.setFaults(1)
				<-hold.Done()
				require.True(t, time.Now().Before(m.rows["lock"].until))
				link.setFaults(0)
			})
		})
	}
}

// slow has slow replies.
type slow struct {
	table
	replied chan struct{}
}

func (s *slow) acquire(ctx context.Context, q request) (time.Duration, error) {
	return s.reply(s.table.acquire(ctx, q))
}

func (s *slow) renew(ctx context.Context, q request) (time.Duration, error) {
	return s.reply(s.table.renew(ctx, q))
}

func (s *slow) reply(left time.Duration, err error) (time.Duration, error) {
	if err == nil {
		time.Sleep(testLease / 8)
		s.replied <- struct{}{}
	}
	return left, err
}

// Goroutines of one client acquire in the order in which they came, and only one asks the database. A
// release wakes it.
func TestOneWaiterOfAClientAsks(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		var count *counted
		c, _ := m.client(func(t table) table { count = &counted{table: t}; return count })
		require.NoError(t, WithPollInterval(time.Hour)(c.config))
		lock := lockOf(t, c)
		hold := mustAcquire(t, lock)
		const waiters = 5
		order := make(chan int, waiters)
		var busy sync.WaitGroup
		for i := range waiters {
			busy.Go(func() {
				hold, err := lock.Acquire(t.Context())
				if err == nil {
					order <- i
					err = hold.Release()
				}
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		const minutes = 10
		time.Sleep(minutes * time.Minute)
		// The first waiter looks when the lease would end.
		require.Less(t, count.reads.Load(), int64(5*minutes*time.Minute/testLease))
		for looked := count.reads.Load(); count.reads.Load() == looked; {
			time.Sleep(testLease / 100)
		}
		released := time.Now()
		require.NoError(t, hold.Release())
		for i := range waiters {
			require.Equal(t, i, <-order)
		}
		require.Less(t, time.Since(released), testLease/3)
		busy.Wait()
	})
}

type counted struct {
	table
	reads atomic.Int64
}

func (c *counted) read(ctx context.Context, q request) (row, error) {
	c.reads.Add(1)
	return c.table.read(ctx, q)
}

// A waiter that asks less often than once in a lease survives an error.
func TestAcquireWithALongPollSurvivesAnError(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		a, _ := m.client()
		f := &failing{}
		b, _ := m.client(func(t table) table { f.table = t; return f })
		require.NoError(t, WithPollInterval(time.Hour)(b.config))
		require.NoError(t, WithTTL(time.Second)(b.config)) // its looks follow the lease of the holder
		first, second := lockOf(t, a), lockOf(t, b)
		hold := mustAcquire(t, first)
		waited := make(chan error, 1)
		go func() {
			hold, err := second.Acquire(t.Context())
			if err == nil {
				err = hold.Release()
			}
			waited <- err
		}()
		time.Sleep(10 * testLease)
		f.next.Store(true)
		for f.next.Load() {
			time.Sleep(testLease)
		}
		require.NoError(t, hold.Release())
		require.NoError(t, <-waited)
	})
}

// A transaction that had the row is rolled back, of which waiters are not told.
func TestAcquireWithALongPollAfterARollback(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		c, _ := m.client(func(t table) table { return rolledBack{t, time.Now().Add(10 * time.Hour)} })
		require.NoError(t, WithPollInterval(time.Hour)(c.config))
		began := time.Now()
		hold := mustAcquire(t, lockOf(t, c))
		require.Less(t, time.Since(began), 10*time.Hour+testLease/2)
		require.NoError(t, hold.Release())
	})
}

// rolledBack has a transaction keep the row until a time.
type rolledBack struct {
	table
	until time.Time
}

func (r rolledBack) acquire(ctx context.Context, q request) (time.Duration, error) {
	if time.Now().Before(r.until) {
		return 0, nil
	}
	return r.table.acquire(ctx, q)
}

// A release whose answer was lost is made again, when another client has the lock. That is no loss.
func TestReleaseWhoseAnswerWasLost(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		b, _ := m.client()
		other := lockOf(t, b)
		var next *recipes.Hold
		a, _ := m.client(func(t table) table { return &lossyRelease{table: t} })
		lock := lockOf(t, a)
		hold := mustAcquire(t, lock)
		won := make(chan struct{})
		go func() {
			defer close(won)
			next, _ = other.Acquire(t.Context())
		}()
		require.NoError(t, hold.Release())
		<-won
		require.NoError(t, next.Release())
	})
}

// A request gets no answer, and a new connection takes longer than a request on one that is open.
func TestRequestsOnNewConnections(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, hold *recipes.Hold){
		"release": func(t *testing.T, hold *recipes.Hold) { require.NoError(t, hold.Release()) },
		"renewal": func(t *testing.T, hold *recipes.Hold) {
			time.Sleep(2 * testLease)
			require.NoError(t, hold.Err())
			require.NoError(t, hold.Release())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, m *memory) {
				c, link := m.client()
				hold := mustAcquire(t, lockOf(t, c))
				time.Sleep(time.Second) // nothing is under way any more
				link.connect = testLease / 4
				link.setClosed(true)
				test(t, hold)
			})
		})
	}
}

// The pool has connections that are dead: requests on them get no answer. Then a new one is made.
func TestRequestsOnDeadConnections(t *testing.T) {
	type pool struct {
		dead    int32
		connect time.Duration
	}
	for lease, pools := range map[time.Duration]struct{ renewals, releases []pool }{
		time.Second: {
			renewals: []pool{{1, time.Second / 4}, {2, time.Second / 9}},
			releases: []pool{{1, time.Second / 4}, {2, time.Second / 9}},
		},
		DefaultTTL: {
			renewals: []pool{{1, DefaultTTL / 4}, {2, DefaultTTL / 9}},
			releases: []pool{{1, DefaultTTL / 4}, {2, time.Second}},
		},
		30 * time.Second: {
			renewals: []pool{{1, 5 * time.Second}, {3, time.Second}},
			releases: []pool{{1, 3 * time.Second}, {2, time.Second}},
		},
		2 * time.Minute: {
			renewals: []pool{{1, 5 * time.Second}, {8, time.Second}},
			releases: []pool{{1, 3 * time.Second}, {2, time.Second}},
		},
	} {
		t.Run(lease.String(), func(t *testing.T) {
			for i := range 20 { // pauses are random
				for _, p := range pools.renewals {
					onDeadConnections(t, lease, p.dead, p.connect, func(t *testing.T, hold *recipes.Hold) {
						time.Sleep(2 * lease)
						require.NoError(t, hold.Err(), "%+v, run %d", p, i)
					})
				}
				for _, p := range pools.releases {
					onDeadConnections(t, lease, p.dead, p.connect, func(t *testing.T, hold *recipes.Hold) {
						require.NoError(t, hold.Release(), "%+v, run %d", p, i)
					})
				}
			}
		})
	}
}

// onDeadConnections runs a test with a hold whose next requests find dead connections.
func onDeadConnections(
	t *testing.T, lease time.Duration, dead int32, connect time.Duration, test func(*testing.T, *recipes.Hold),
) {
	synctest.Test(t, func(t *testing.T) {
		var pool *deadPool
		m := newMemory(t, rand.New(rand.NewPCG(1, 1)), lease)
		c, link := m.client()
		link.connect = connect
		c.leases.open = func() table { pool = &deadPool{link: link}; return pool }
		hold := mustAcquire(t, lockOf(t, c))
		pool.dead.Store(dead)
		test(t, hold)
		require.Zero(t, pool.dead.Load())
		require.NoError(t, c.Close())
	})
}

// The database answers, but the first request of Close is on a dead connection.
func TestCloseOnADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, rand.New(rand.NewPCG(1, 1)), DefaultTTL)
		var pool *deadPool
		c, link := m.client()
		c.leases.open = func() table { pool = &deadPool{link: link}; return pool }
		mustAcquire(t, lockOf(t, c))
		pool.dead.Store(1)
		began := time.Now()
		require.NoError(t, c.Close())
		require.Less(t, time.Since(began), DefaultTTL/3)
		require.Empty(t, m.rows["lock"].owner)
	})
}

// deadPool does not answer some requests. Their connections are closed.
type deadPool struct {
	*link
	dead atomic.Int32
}

// answer returns nil if a request is answered. If not, it waits until the request ends.
func (d *deadPool) answer(ctx context.Context) error {
	if d.dead.Load() == 0 {
		return nil
	}
	d.dead.Add(-1)
	<-ctx.Done()
	d.setClosed(true)
	return ctx.Err()
}

func (d *deadPool) read(ctx context.Context, q request) (row, error) {
	if err := d.answer(ctx); err != nil {
		return row{}, err
	}
	return d.link.read(ctx, q)
}

func (d *deadPool) renew(ctx context.Context, q request) (time.Duration, error) {
	if err := d.answer(ctx); err != nil {
		return 0, err
	}
	return d.link.renew(ctx, q)
}

func (d *deadPool) release(ctx context.Context, q request) error {
	if err := d.answer(ctx); err != nil {
		return err
	}
	return d.link.release(ctx, q)
}

// lossyRelease loses the answer of the first release, for long enough that others acquire.
type lossyRelease struct {
	table
	lost bool
}

func (l *lossyRelease) release(ctx context.Context, q request) error {
	err := l.table.release(ctx, q)
	if !l.lost {
		l.lost = true
		<-ctx.Done()
		return errFault
	}
	return err
}

// failing fails one read.
type failing struct {
	table
	next atomic.Bool
}

func (f *failing) read(ctx context.Context, q request) (row, error) {
	if f.next.CompareAndSwap(true, false) {
		return row{}, errFault
	}
	return f.table.read(ctx, q)
}

// In the wait an acquire survives errors that last for less than a lease, and so does a hold.
func TestAcquireSurvivesAnOutage(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		a, linkA := m.client()
		b, linkB := m.client()
		outage := func(faults float64) { linkA.setFaults(faults); linkB.setFaults(faults) }
		first, second := lockOf(t, a), lockOf(t, b)

		outage(1)
		_, err := first.Acquire(t.Context())
		require.ErrorIs(t, err, errFault, "the first statement fails")
		outage(0)
		hold := mustAcquire(t, first)
		waited := make(chan error, 1)
		go func() {
			hold, err := second.Acquire(t.Context())
			if err == nil {
				err = hold.Release()
			}
			waited <- err
		}()
		time.Sleep(time.Second)
		outage(1)
		time.Sleep(testLease / 2)
		outage(0)
		time.Sleep(testLease / 2)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Release())
		require.NoError(t, <-waited)

		hold = mustAcquire(t, first)
		began := time.Now()
		outage(1)
		<-hold.Done()
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		require.LessOrEqual(t, time.Since(began), testLease-a.margin())
		outage(0)
	})
}

// A waiter gets the two idle connections of a pool, which are dead.
func TestAcquireOnDeadConnections(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 5 * time.Second, testLease, DefaultTTL} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, rand.New(rand.NewPCG(1, 1)), lease)
			a, _ := m.client()
			var pool *deadPool
			b, link := m.client()
			b.leases.open = func() table { pool = &deadPool{link: link}; return pool }
			hold := mustAcquire(t, lockOf(t, a))
			time.AfterFunc(lease/2, func() { pool.dead.Store(2) })
			time.AfterFunc(4*lease, func() { _ = hold.Release() })
			next := mustAcquire(t, lockOf(t, b))
			require.Zero(t, pool.dead.Load())
			require.NoError(t, next.Release())
			require.NoError(t, a.Close())
			require.NoError(t, b.Close())
		})
	}
}

// An operator has taken the lock, and the database does not tell the holder why its renewal has failed.
func TestHoldEndsSoonAfterARefusedRenewal(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		c, _ := m.client(func(t table) table { return speechless{t} })
		hold := mustAcquire(t, lockOf(t, c))
		m.mu.Lock()
		m.rows["lock"].owner = ""
		m.mu.Unlock()
		began := time.Now()
		<-hold.Done()
		require.LessOrEqual(t, time.Since(began), testLease/3+testLease/10)
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
	})
}

// speechless does not answer why.
type speechless struct{ table }

func (speechless) why(ctx context.Context, _ request) error {
	<-ctx.Done()
	return errChanged
}

// The client is closed when an acquire has its answer.
func TestCloseWhenAnAcquireIsAnswered(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		s := &slow{replied: make(chan struct{}, 1)}
		c, _ := m.client(func(t table) table { s.table = t; return s })
		lock := lockOf(t, c)
		time.AfterFunc(testLease/16, func() { _ = c.Close() })
		_, err := lock.Acquire(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		require.NotErrorIs(t, err, recipes.ErrForeignLost)
		require.NoError(t, c.Close())
		require.Empty(t, m.rows["lock"].owner)
	})
}

// An acquire without an answer has just ended, and the database answers nothing.
func TestCloseTakesAThirdOfTheLease(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		c, _ := m.client(func(t table) table { return silent{t} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := lockOf(t, c).Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait() // it is being undone
		began := time.Now()
		require.NoError(t, c.Close())
		require.LessOrEqual(t, time.Since(began), testLease/3)
	})
}

// silent answers no acquire, and nothing after it.
type silent struct{ table }

func (silent) acquire(ctx context.Context, _ request) (time.Duration, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (silent) undo(ctx context.Context, _ request) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s silent) leave(ctx context.Context, q request, _ bool) error { return s.undo(ctx, q) }

func TestAcquiresAreMeasured(t *testing.T) {
	inMemory(t, func(t *testing.T, m *memory) {
		var measured testzk.Metrics
		other, _ := m.client()
		c, _ := m.client()
		c.metrics = &measured
		lock := lockOf(t, c)
		held := mustAcquire(t, lockOf(t, other))
		_, err := lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		time.AfterFunc(3*testLease, func() {
			assert.Contains(t, measured.Lines(testLease), "docent.lock.waiters{foreign lock} 1")
			_ = held.Release()
		})
		require.NoError(t, mustAcquire(t, lock).Release())
		require.NoError(t, c.Close())
		_, err = lock.Acquire(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		require.Subset(t, measured.Lines(testLease), []string{
			"docent.lock.wait{foreign lock acquired} 30s",
			"docent.lock.wait{foreign lock failed} 0s",
			"docent.lock.wait{foreign lock not_acquired} 0s",
			"docent.lock.waiters{foreign lock} 0",
		})
	})
}
