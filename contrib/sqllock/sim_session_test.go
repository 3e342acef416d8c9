package sqllock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
)

// advisory is a PostgreSQL in memory that has one session lock, for virtual time.
type advisory struct {
	lease time.Duration
	late  sync.WaitGroup // sessions that end later than their connections

	mu     sync.Mutex
	random *rand.Rand
	holder *advisoryConn // nil: the lock is free
	freed  chan struct{} // closed when the lock becomes free
	token  int64
}

func newAdvisory(random *rand.Rand, lease time.Duration) *advisory {
	return &advisory{lease: lease, random: random, freed: make(chan struct{})}
}

// take has a session take the lock if it is free. Otherwise freed is closed when that may succeed.
func (a *advisory) take(c *advisoryConn) (taken bool, freed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holder == nil {
		a.holder = c
	}
	return a.holder == c, a.freed
}

// free reports whether a session had the lock.
func (a *advisory) free(c *advisoryConn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holder != c {
		return false
	}
	a.holder = nil
	close(a.freed)
	a.freed = make(chan struct{})
	return true
}

func (a *advisory) has(c *advisoryConn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.holder == c
}

func (a *advisory) upTo(most time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return 1 + time.Duration(a.random.Int64N(int64(most)))
}

// advisoryLink connects one client.
type advisoryLink struct {
	*advisory
	faults float64 // how likely the fault of a request is
}

func (l *advisoryLink) setFaults(faults float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = faults
}

// way returns a random time: short, or up to a lease if that is a fault.
func (l *advisoryLink) way() time.Duration {
	if l.fault() != noFault {
		return l.upTo(l.lease)
	}
	return l.upTo(l.lease / 200)
}

func (l *advisoryLink) Driver() driver.Driver { return nil }

func (l *advisoryLink) Connect(ctx context.Context) (driver.Conn, error) {
	if l.fault() != noFault {
		return nil, errFault
	}
	select {
	case <-time.After(l.way()):
		return &advisoryConn{link: l}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The faults of a request.
const (
	noFault = iota
	refused // the answer is an error, and the session goes on
	reset   // the request is applied, and the connection ends
	silence // the request may be applied, and gets no answer
	faults
)

func (l *advisoryLink) fault() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.random.Float64() >= l.faults {
		return noFault
	}
	return refused + l.random.IntN(faults-refused)
}

// advisoryConn is a connection and its session.
type advisoryConn struct {
	link   *advisoryLink
	closed bool
}

func (c *advisoryConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *advisoryConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }

// Close takes a while, before the session has ended and after it.
func (c *advisoryConn) Close() error {
	if c.closed {
		return nil
	}
	time.Sleep(c.link.upTo(c.link.lease / 20))
	c.link.free(c)
	time.Sleep(c.link.upTo(c.link.lease / 20))
	return nil
}

// cut closes the connection. Its session ends later, and takes the lock before if it can and waits for it.
func (c *advisoryConn) cut(waits bool) {
	c.closed = true
	c.link.late.Go(func() {
		time.Sleep(c.link.upTo(c.link.lease / 2))
		if waits {
			c.link.take(c)
		}
		time.Sleep(c.link.upTo(c.link.lease / 2))
		c.link.free(c)
	})
}

// request makes one request.
func (c *advisoryConn) request(ctx context.Context, waits bool, apply func(ctx context.Context) error) error {
	select {
	case <-time.After(c.link.way()):
	case <-ctx.Done():
		c.cut(waits)
		return ctx.Err()
	}
	switch c.link.fault() {
	case refused:
		return errFault
	case reset:
		_ = apply(ctx)
		c.cut(waits)
		return errFault
	case silence:
		<-ctx.Done()
		c.cut(waits)
		return ctx.Err()
	}
	err := apply(ctx)
	if ctx.Err() != nil {
		c.cut(waits)
		return ctx.Err()
	}
	return err
}

func (c *advisoryConn) ExecContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	err := c.request(ctx, false, func(context.Context) error {
		if strings.HasPrefix(text, "INSERT") {
			c.link.mu.Lock()
			c.link.token++
			c.link.mu.Unlock()
		}
		return nil
	})
	return driver.RowsAffected(1), err
}

func (c *advisoryConn) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	var found driver.Value
	waits := strings.Contains(text, "pg_advisory_lock(")
	err := c.request(ctx, waits, func(ctx context.Context) (err error) {
		switch {
		case waits:
			found, err = true, c.wait(ctx)
		case strings.Contains(text, "pg_try_advisory_lock"):
			found, _ = c.link.take(c)
		case strings.Contains(text, "pg_advisory_unlock"):
			found = c.link.free(c)
		case strings.Contains(text, "pg_locks"):
			found = c.link.has(c)
		case isAboutRecovery(text):
			found = true
		default:
			c.link.mu.Lock()
			found = c.link.token
			c.link.mu.Unlock()
		}
		return err
	})
	return &oneRow{row: []driver.Value{found}}, err
}

// wait waits for the lock until lock_timeout.
func (c *advisoryConn) wait(ctx context.Context) error {
	end := time.After(c.link.lease / 3)
	for {
		taken, freed := c.link.take(c)
		if taken {
			return nil
		}
		select {
		case <-freed:
		case <-end:
			return state(lockTimeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *advisory) simulated() simulated {
	return simulated{a.lease, func(t *testing.T) simulatedClient {
		l := &advisoryLink{advisory: a}
		db := sql.OpenDB(l)
		c, err := NewClient(db, PostgreSQL, WithTTL(a.lease), WithSessionTokens())
		require.NoError(t, err)
		t.Cleanup(func() {
			require.Zero(t, db.Stats().InUse, "a connection is left")
			require.NoError(t, db.Close())
		})
		return simulatedClient{c, sessionOf(t, c), l.setFaults}
	}, a.late.Wait}
}

// Statements on connections with session locks are refused, get no answer, or end the connection, whose
// session ends later. No two holds are valid at a time, tokens grow, and in the end nothing is left.
func TestSimulatedSessions(t *testing.T) {
	var holds, lost int
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdvisory(rand.New(rand.NewPCG(seed, 1)), testLease)
				h := &history{t: t, tokens: true}
				simulate(t, a.simulated(), h, seed)
				holds += len(h.holds)
				for _, hold := range h.holds {
					if errors.Is(hold.Err(), recipes.ErrForeignLost) {
						lost++
					}
				}
			})
		})
	}
	t.Logf("%d holds, %d of them lost", holds, lost)
	if !t.Failed() && seeds() >= 20 {
		require.Greater(t, holds, int(seeds()))
		require.Positive(t, lost, "no hold was lost")
	}
}
