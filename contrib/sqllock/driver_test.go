package sqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// scripted is a driver whose answers are those of a test: the number of rows that were changed, or a row.
type scripted func(ctx context.Context, text string) (changed int64, found []driver.Value, err error)

func (s scripted) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s scripted) Driver() driver.Driver                        { return nil }
func (s scripted) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s scripted) Begin() (driver.Tx, error)                    { return s, nil }
func (s scripted) Commit() error                                { return nil }
func (s scripted) Rollback() error                              { return nil }
func (s scripted) Close() error                                 { return nil }

func (s scripted) ExecContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	changed, _, err := s(ctx, text)
	return driver.RowsAffected(changed), err
}

func (s scripted) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	_, found, err := s(ctx, text)
	return &oneRow{row: found}, err
}

// oneRow has one row, or none.
type oneRow struct {
	row  []driver.Value
	read bool
}

func (r *oneRow) Columns() []string { return make([]string, len(r.row)) }
func (r *oneRow) Close() error      { return nil }

func (r *oneRow) Next(to []driver.Value) error {
	if r.row == nil || r.read {
		return io.EOF
	}
	copy(to, r.row)
	r.read = true
	return nil
}

// closing is scripted, and calls a function before a connection is closed.
type closing struct {
	scripted
	closes func()
}

func (c closing) Connect(context.Context) (driver.Conn, error) { return c, nil }

func (c closing) Close() error {
	c.closes()
	return nil
}

// onDriver runs a test with a client of a driver, in virtual time.
func onDriver(t *testing.T, d driver.Connector, test func(t *testing.T, c *Client), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := sql.OpenDB(d)
		c, err := NewClient(db, PostgreSQL, append(opts, WithKeyTable(KeyTable{Table: "keys"}))...)
		require.NoError(t, err)
		test(t, c)
		require.NoError(t, c.Close())
		require.Zero(t, db.Stats().InUse, "a connection is left")
		require.NoError(t, db.Close())
	})
}

// losing is a driver that applies all statements, and whose reads find a row. Once lost is set, no statement
// changes anything, and reads fail.
func losing(lost *atomic.Bool, found func() []driver.Value) scripted {
	return func(_ context.Context, text string) (int64, []driver.Value, error) {
		switch read := strings.HasPrefix(text, "SELECT"); {
		case lost.Load() && read:
			return 0, nil, errFault
		case lost.Load():
			return 0, nil, nil
		case read:
			return 0, found(), nil
		}
		return 1, nil, nil
	}
}

// The release has changed no row, so another client has had the lock. Only why is not known.
func TestReleaseOfALostHoldWhoseReadFails(t *testing.T) {
	var lost atomic.Bool
	free := func() []driver.Value { return []driver.Value{int64(1), "", int64(0), time.Now().UnixMicro()} }
	onDriver(t, losing(&lost, free), func(t *testing.T, c *Client) {
		hold := mustAcquire(t, lockOf(t, c))
		lost.Store(true)
		require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
	})
}

// The read for the reason of a loss gets no answer. The hold does not wait long for it.
func TestLossWhoseReadGetsNoAnswer(t *testing.T) {
	var lost atomic.Bool
	free := func() []driver.Value { return []driver.Value{int64(1), "", int64(0), time.Now().UnixMicro()} }
	applied := losing(&lost, free)
	script := func(ctx context.Context, text string) (int64, []driver.Value, error) {
		if lost.Load() && strings.HasPrefix(text, "SELECT") {
			return 0, nil, noAnswer(ctx)
		}
		return applied(ctx, text)
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		hold := mustAcquire(t, lockOf(t, c))
		acquired := time.Now()
		lost.Store(true)
		<-hold.Done()
		require.LessOrEqual(t, time.Since(acquired), maxLease/3+2*time.Second)
	}, WithTTL(maxLease))
}

func TestReleaseOfALostKeyLockWhoseReadFails(t *testing.T) {
	var lost atomic.Bool
	me := rand.Text()
	mine := func() []driver.Value { return []driver.Value{me, int64(1e7)} }
	onDriver(t, losing(&lost, mine), func(t *testing.T, c *Client) {
		g := &grant{c: c, table: c.keys, request: request{name: "lock", owner: me}}
		left, err := c.keys.renew(t.Context(), g.request)
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, left)
		lost.Store(true)
		require.ErrorIs(t, g.delete(t.Context()), recipes.ErrForeignLost)
	})
}

// muted is a driver that says yes to all statements. Once mute is set, each ends as silence does.
func muted(mute *atomic.Bool, silence func(ctx context.Context) error) scripted {
	return func(ctx context.Context, _ string) (int64, []driver.Value, error) {
		if mute.Load() {
			return 0, nil, silence(ctx)
		}
		return 1, []driver.Value{true}, nil
	}
}

// noAnswer lasts until the request ends.
func noAnswer(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// isAboutRecovery reports whether a statement asks if the server takes writes.
func isAboutRecovery(text string) bool { return strings.Contains(text, "pg_is_in_recovery") }

// duringARenewal returns a hold of a session, whose renewal gets no answer.
func duringARenewal(t *testing.T, c *Client, mute *atomic.Bool) *recipes.Hold {
	t.Helper()
	hold := mustAcquire(t, sessionOf(t, c))
	mute.Store(true)
	time.Sleep(DefaultTTL / 3)
	synctest.Wait()
	return hold
}

// A release waits for a renewal that gets no answer. The release is never sent, and the database may have
// the lock until it learns that the connection has ended.
func TestReleaseOfASessionThatIsNeverSent(t *testing.T) {
	var mute atomic.Bool
	var unlocks atomic.Int32
	answer := muted(&mute, noAnswer)
	counted := func(ctx context.Context, text string) (int64, []driver.Value, error) {
		if strings.Contains(text, "pg_advisory_unlock") {
			unlocks.Add(1)
		}
		return answer(ctx, text)
	}
	onDriver(t, scripted(counted), func(t *testing.T, c *Client) {
		err := duringARenewal(t, c, &mute).Release()
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.NotErrorIs(t, err, recipes.ErrForeignLost)
		require.Zero(t, unlocks.Load())
	})
}

// The driver ends a request by a timer of its own. That is no answer.
func TestReleaseOfASessionThatADriverEnds(t *testing.T) {
	var mute atomic.Bool
	timer := func(context.Context) error {
		time.Sleep(100 * time.Millisecond)
		return os.ErrDeadlineExceeded
	}
	onDriver(t, muted(&mute, timer), func(t *testing.T, c *Client) {
		hold := mustAcquire(t, sessionOf(t, c))
		mute.Store(true)
		err := hold.Release()
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.NotErrorIs(t, err, recipes.ErrForeignLost)
	})
}

// An operator cancels the statement of a release. The session had the lock until then.
func TestReleaseOfASessionThatIsCanceled(t *testing.T) {
	script := func(_ context.Context, text string) (int64, []driver.Value, error) {
		if strings.Contains(text, "pg_advisory_unlock") {
			return 0, nil, state(canceled)
		}
		return 1, []driver.Value{true}, nil
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		err := mustAcquire(t, sessionOf(t, c)).Release()
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.NotErrorIs(t, err, recipes.ErrForeignLost)
	})
}

// The client is closed while a release waits for a renewal.
func TestCloseDuringAReleaseOfASession(t *testing.T) {
	var mute atomic.Bool
	onDriver(t, muted(&mute, noAnswer), func(t *testing.T, c *Client) {
		hold := duringARenewal(t, c, &mute)
		released := make(chan error, 1)
		go func() { released <- hold.Release() }()
		<-hold.Done()
		began := time.Now()
		require.NoError(t, c.Close())
		require.LessOrEqual(t, time.Since(began), DefaultTTL/3)
		require.NotErrorIs(t, <-released, recipes.ErrForeignLost, "the client has ended the connection")
	})
}

// The row is inserted and not found, as on a replica that is behind, or if a column has altered the name.
func TestRowThatIsNotFound(t *testing.T) {
	script := func(context.Context, string) (int64, []driver.Value, error) {
		time.Sleep(time.Millisecond)
		return 0, nil, nil
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lock := lockOf(t, c)
		_, err := lock.TryAcquire(ctx)
		require.ErrorIs(t, err, errNotFound)
		_, err = lock.Acquire(ctx)
		require.ErrorIs(t, err, errNotFound)
		tx, err := c.rows.db.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = lock.InTx(ctx, tx)
		require.ErrorIs(t, err, errNotFound)
		require.NoError(t, tx.Rollback())
	})
}

// The database frees the lock with the connection, so the hold ends first.
func TestHoldOfASessionEndsBeforeItsConnection(t *testing.T) {
	for name, err := range map[string]error{
		"the renewal fails":               errFault,
		"the renewal finds the lock lost": nil,
	} {
		t.Run(name, func(t *testing.T) {
			script := func(_ context.Context, text string) (int64, []driver.Value, error) {
				renewal := strings.Contains(text, "pg_locks")
				if renewal && err != nil {
					return 0, nil, err
				}
				return 1, []driver.Value{!renewal}, nil
			}
			var hold atomic.Pointer[recipes.Hold]
			var closed atomic.Bool
			closes := func() {
				closed.Store(true)
				assert.ErrorIs(t, hold.Load().Err(), recipes.ErrForeignLost)
			}
			onDriver(t, closing{script, closes}, func(t *testing.T, c *Client) {
				hold.Store(mustAcquire(t, sessionOf(t, c)))
				<-hold.Load().Done()
				synctest.Wait()
				require.True(t, closed.Load())
			})
		})
	}
}

// A driver ends a renewal by an error that matches context.Canceled, which is not that of the client.
func TestRenewalOfASessionThatADriverCancels(t *testing.T) {
	var mute atomic.Bool
	var ended time.Time
	ends := func(context.Context) error {
		ended = time.Now()
		return context.Canceled
	}
	onDriver(t, muted(&mute, ends), func(t *testing.T, c *Client) {
		hold := mustAcquire(t, sessionOf(t, c))
		mute.Store(true)
		<-hold.Done()
		require.Less(t, time.Since(ended), DefaultTTL/100)
	})
}

// The client is closed when a renewal finds that the lock was lost: no connection is left.
func TestCloseWhenASessionIsFoundLost(t *testing.T) {
	script := func(ctx context.Context, text string) (int64, []driver.Value, error) {
		if strings.Contains(text, "pg_locks") {
			<-ctx.Done() // the answer has arrived at that moment
			return 0, []driver.Value{false}, nil
		}
		return 1, []driver.Value{true}, nil
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		hold := mustAcquire(t, sessionOf(t, c))
		time.Sleep(DefaultTTL / 3)
		synctest.Wait() // the renewal is under way
		require.NoError(t, c.Close())
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
	})
}

// The client is closed when a renewal has succeeded. The hold ends because of that, and not by its connection.
func TestCloseWhenASessionIsRenewed(t *testing.T) {
	script := func(ctx context.Context, text string) (int64, []driver.Value, error) {
		if strings.Contains(text, "pg_locks") {
			<-ctx.Done() // the answer has arrived at that moment
		}
		return 1, []driver.Value{true}, nil
	}
	for range 50 { // the goroutines of Close and of the hold end in any order
		onDriver(t, scripted(script), func(t *testing.T, c *Client) {
			hold := mustAcquire(t, sessionOf(t, c))
			time.Sleep(DefaultTTL / 3)
			synctest.Wait() // the renewal is under way
			assert.NoError(t, c.Close())
			assert.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
			assert.NotContains(t, hold.Err().Error(), errSessionEnded.Error())
		})
	}
}

// A release fails once. Close tries again, unless the error tells that no server is there.
func TestCloseAfterARefusedConnection(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
	}
	for name, row := range map[string]struct {
		err      error
		releases int64
	}{
		"refused":                    {dial(syscall.ECONNREFUSED), 1},
		"refused, by Windows":        {dial(syscall.Errno(10061)), 1},
		"there is no socket":         {dial(syscall.ENOENT), 1},
		"no file descriptor is left": {dial(syscall.EMFILE), 2},
		"another host has answered":  {errors.Join(dial(syscall.ECONNREFUSED), state("55000")), 2},
	} {
		t.Run(name, func(t *testing.T) {
			var releases atomic.Int64
			script := func(_ context.Context, text string) (int64, []driver.Value, error) {
				if strings.HasPrefix(text, "UPDATE docent_locks SET owner = NULL") && releases.Add(1) == 1 {
					return 0, nil, row.err
				}
				return 1, []driver.Value{int64(1), nil, int64(0), time.Now().UnixMicro()}, nil
			}
			onDriver(t, scripted(script), func(t *testing.T, c *Client) {
				mustAcquire(t, lockOf(t, c))
				begun := time.Now()
				assert.NoError(t, c.Close())
				assert.Equal(t, row.releases, releases.Load())
				assert.Less(t, time.Since(begun), time.Second)
			})
		})
	}
}

// The first wait of an acquire gets no answer, and the next one the lock, on another connection. Then its release
// fails: the database has no lock of that connection any more.
func TestReleaseOfALostSessionAfterAWaitWithoutAnAnswer(t *testing.T) {
	for name, answer := range map[string]func() ([]driver.Value, error){
		"the session has ended": func() ([]driver.Value, error) {
			return nil, errors.New("terminating connection due to administrator command")
		},
		"the session is another one": func() ([]driver.Value, error) { return []driver.Value{false}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			var waits atomic.Int32
			script := func(ctx context.Context, text string) (int64, []driver.Value, error) {
				switch {
				case strings.Contains(text, "pg_try_advisory_lock"):
					return 0, []driver.Value{false}, nil
				case strings.Contains(text, "pg_advisory_lock(") && waits.Add(1) == 1:
					return 0, nil, noAnswer(ctx)
				case strings.Contains(text, "pg_advisory_unlock"):
					found, err := answer()
					return 0, found, err
				}
				return 1, []driver.Value{true}, nil
			}
			onDriver(t, scripted(script), func(t *testing.T, c *Client) {
				err := mustAcquire(t, sessionOf(t, c)).Release()
				require.Equal(t, int32(2), waits.Load())
				require.ErrorIs(t, err, recipes.ErrForeignLost)
				require.NotErrorIs(t, err, recipes.ErrReleasePending)
			})
		})
	}
}

// Another holder has the lock of a session for an hour. The first wait loses its connection.
func TestWaitOfASessionAfterALostAnswer(t *testing.T) {
	var waits atomic.Int32
	script := func(_ context.Context, text string) (int64, []driver.Value, error) {
		if !strings.Contains(text, "pg_advisory_lock(") {
			return 1, []driver.Value{isAboutRecovery(text)}, nil
		}
		time.Sleep(DefaultTTL / 3)
		if waits.Add(1) == 1 {
			return 0, nil, errFault
		}
		return 0, nil, state(lockTimeout)
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		_, err := sessionOf(t, c).AcquireWithin(t.Context(), time.Hour)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
	})
}

// A wait that is shorter than a third of the lease ends in the database. The waiter is counted before.
func TestShortWaitOfASessionForAnotherHolder(t *testing.T) {
	script := func(ctx context.Context, text string) (int64, []driver.Value, error) {
		if strings.Contains(text, "pg_advisory_lock(") {
			return 0, nil, noAnswer(ctx)
		}
		return 1, []driver.Value{isAboutRecovery(text)}, nil
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		var measured testzk.Metrics
		c.metrics = &measured
		time.AfterFunc(DefaultTTL/8, func() {
			assert.Contains(t, measured.Lines(DefaultTTL), "docent.lock.waiters{foreign lock} 1")
		})
		_, err := sessionOf(t, c).AcquireWithin(t.Context(), DefaultTTL/4)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// The database answers each wait with NULL at once. That is an error, after which there is a pause.
func TestNullAnswersOfASession(t *testing.T) {
	var waits atomic.Int64
	script := func(_ context.Context, text string) (int64, []driver.Value, error) {
		if strings.Contains(text, "pg_advisory_lock(") {
			time.Sleep(time.Millisecond)
			waits.Add(1)
			return 0, []driver.Value{nil}, nil
		}
		return 1, []driver.Value{isAboutRecovery(text)}, nil
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		began := time.Now()
		_, err := sessionOf(t, c).AcquireWithin(t.Context(), 4*DefaultTTL)
		require.ErrorContains(t, err, "<nil>")
		require.Greater(t, time.Since(began), DefaultTTL, "it goes on for a lease")
		require.Less(t, waits.Load(), int64(100))
	})
}

// state is an error of PostgreSQL.
type state string

func (s state) Error() string    { return "SQLSTATE " + string(s) }
func (s state) SQLState() string { return string(s) }

// A transaction has the row, which looks free, for longer than a lease. A waiter takes a ticket and renews it.
func TestTicketDuringATransaction(t *testing.T) {
	var stood []time.Time
	script := func(_ context.Context, text string) (int64, []driver.Value, error) {
		switch {
		case strings.HasPrefix(text, "SELECT"):
			return 0, []driver.Value{int64(1), "", int64(0), time.Now().UnixMicro(), int64(0)}, nil
		case strings.HasPrefix(text, "UPDATE docent_locks_queue"):
			stood = append(stood, time.Now())
			return 1, nil, nil
		}
		return 0, nil, nil
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		last := time.Now()
		_, err := lockOf(t, c).AcquireWithin(t.Context(), 10*DefaultTTL)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		for _, next := range append(stood, time.Now()) {
			require.Less(t, next.Sub(last), DefaultTTL, "the ticket has ended")
			last = next
		}
	}, WithFairQueue())
}

// Waiters with the longest interval wait for the lease of a holder, or for those that are ahead in the queue.
func TestLongestPollInterval(t *testing.T) {
	for name, row := range map[string]struct {
		ahead int64
		left  time.Duration
		opts  []Option
	}{
		"a holder":  {0, time.Minute, nil},
		"one ahead": {1, 0, []Option{WithFairQueue()}},
		"7 ahead":   {7, 0, []Option{WithFairQueue()}},
		"a million": {1_000_000, 0, []Option{WithFairQueue()}},
	} {
		t.Run(name, func(t *testing.T) {
			var acquires atomic.Int64
			script := func(_ context.Context, text string) (int64, []driver.Value, error) {
				switch {
				case strings.HasPrefix(text, "SELECT"):
					found := []driver.Value{int64(1), "x", row.left.Microseconds(), time.Now().UnixMicro()}
					if row.opts != nil {
						found = append(found, row.ahead)
					}
					return 0, found, nil
				case strings.HasPrefix(text, "UPDATE docent_locks SET owner"):
					acquires.Add(1)
				}
				return 1, nil, nil
			}
			onDriver(t, scripted(script), func(t *testing.T, c *Client) {
				_, err := lockOf(t, c).AcquireWithin(t.Context(), 100*time.Minute)
				require.ErrorIs(t, err, recipes.ErrNotAcquired)
				require.Zero(t, acquires.Load())
			}, append(row.opts, WithPollInterval(math.MaxInt64))...)
		})
	}
}

// The database refuses a ticket once, for example after a deadlock. The first statement of the acquire had an answer,
// so it goes on.
func TestTicketThatIsRefusedOnce(t *testing.T) {
	var refused atomic.Bool
	script := func(_ context.Context, text string) (int64, []driver.Value, error) {
		switch {
		case strings.HasPrefix(text, "SELECT"):
			return 0, []driver.Value{int64(1), "x", int64(1e7), time.Now().UnixMicro(), int64(0)}, nil
		case strings.HasPrefix(text, "INSERT INTO docent_locks_queue") && refused.CompareAndSwap(false, true):
			return 0, nil, errFault
		}
		return 1, nil, nil
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		_, err := lockOf(t, c).AcquireWithin(t.Context(), time.Minute)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.True(t, refused.Load())
	}, WithFairQueue())
}

// The database refuses all tickets of a waiter for another holder.
func TestTicketsThatAreRefused(t *testing.T) {
	script := func(_ context.Context, text string) (int64, []driver.Value, error) {
		if strings.HasPrefix(text, "SELECT") {
			return 0, []driver.Value{int64(1), "x", int64(1e7), time.Now().UnixMicro(), int64(0)}, nil
		}
		return 0, nil, errFault
	}
	onDriver(t, scripted(script), func(t *testing.T, c *Client) {
		_, err := lockOf(t, c).AcquireWithin(t.Context(), DefaultTTL/4)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, recipes.ErrNotAcquired)
		assert.ErrorContains(t, err, errFault.Error())
	}, WithFairQueue())
}

// PostgreSQL refuses all statements because of others.
func TestSerializationFailuresAreRepeatedAfterPauses(t *testing.T) {
	var statements atomic.Int64
	answer := func(context.Context, string) (int64, []driver.Value, error) {
		statements.Add(1)
		return 0, nil, state(serialization)
	}
	onDriver(t, scripted(answer), func(t *testing.T, c *Client) {
		began := time.Now()
		_, err := lockOf(t, c).TryAcquire(t.Context())
		require.ErrorIs(t, err, state(serialization))
		require.LessOrEqual(t, statements.Load(), int64(2*time.Since(began)/minPause))
	})
}

func sessionOf(t testing.TB, c *Client) *SessionLock {
	t.Helper()
	lock, err := NewSessionLock(c, "lock")
	require.NoError(t, err)
	return lock
}
