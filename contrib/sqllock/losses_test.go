package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// A table can be read and not written: an acquire ends, and its error says why.
func TestAcquireWhoseStatementsFail(t *testing.T) {
	short := map[sqllock.Dialect]string{
		sqllock.PostgreSQL: "ALTER TABLE docent_locks ALTER COLUMN owner TYPE varchar(5)",
		sqllock.MySQL:      "ALTER TABLE docent_locks MODIFY owner VARBINARY(5)",
	}
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		one.exec(t, short[s.dialect])
		c, _ := one.client(t)
		lock := lockOf(t, c, "lock")
		_, err := lock.TryAcquire(t.Context())
		require.ErrorContains(t, err, "too long")
		_, err = lock.Acquire(t.Context())
		require.ErrorContains(t, err, "too long")

		core, logs := observer.New(zap.WarnLevel)
		ctx, pass := testzk.Deadline(testzk.Context(t))
		log := zap.New(core, zap.Hooks(func(zapcore.Entry) error { // an attempt has failed
			pass()
			return nil
		}))
		long, _ := one.client(t, sqllock.WithTTL(time.Hour), sqllock.WithLogger(log))
		_, err = lockOf(t, long, "lock").Acquire(ctx)
		require.NotZero(t, logs.Len(), "no attempt has failed")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "too long")
	})
}

// Another client has acquired the lock before the holder has learned that it was taken away.
func TestReleaseOfAHoldThatWasTakenAway(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.client(t, sqllock.WithTTL(time.Hour))
		b, _ := one.client(t, sqllock.WithTTL(time.Hour))
		hold := mustAcquire(t, lockOf(t, a, "lock"))
		one.exec(t, "UPDATE docent_locks SET owner = NULL")
		next := mustAcquire(t, lockOf(t, b, "lock"))
		err := hold.Release()
		require.ErrorIs(t, err, recipes.ErrForeignLost)
		require.ErrorContains(t, err, "there is a later token")
		require.NoError(t, next.Release())
	})
}

// untilRowLock starts fn, and returns when a statement waits for a row of the site's database. The channel gets the
// error of fn.
//
// InnoDB answers from a cache. It renews the cache only if nothing has read it for 100 ms: with a
// shorter interval, also that of several tests, the first answer would be repeated for ever.
func (s *site) untilRowLock(t testing.TB, fn func() error) (ended <-chan error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- fn() }()
	text := "SELECT COUNT(*) FROM information_schema.innodb_trx" +
		" JOIN information_schema.processlist ON id = trx_mysql_thread_id" +
		" WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()"
	if s.dialect == sqllock.PostgreSQL {
		text = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	}
	for n := 0; n == 0; {
		require.Empty(t, result, "it has ended, and has not been seen to wait")
		n = s.afterPause(t, s.db, text)
	}
	return result
}

// afterPause returns the number that a query finds after a pause in which no other test makes such a query.
func (s *server) afterPause(t testing.TB, db *sql.DB, text string) (n int) {
	t.Helper()
	s.reading.Lock()
	defer s.reading.Unlock()
	time.Sleep(120 * time.Millisecond)
	require.NoError(t, db.QueryRow(text).Scan(&n))
	return n
}

// The database does not answer a release when Close ends it, and answers a moment later.
func TestCloseDuringARelease(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, wire := one.client(t, sqllock.WithTTL(time.Hour))
		hold := mustAcquire(t, lockOf(t, c, "lock"))
		wire.cut(true)
		released, closed := make(chan error), make(chan error)
		go func() { released <- hold.Release() }()
		<-hold.Done()
		go func() { closed <- c.Close() }()
		require.ErrorIs(t, <-released, recipes.ErrReleasePending)
		wire.cut(false)
		require.NoError(t, <-closed)
		requireReleased(t, one.db)
	})
}

// requireReleased requires that the only lock of a database has no owner.
func requireReleased(t *testing.T, db *sql.DB) {
	t.Helper()
	var owner sql.NullString
	require.NoError(t, db.QueryRow("SELECT owner FROM docent_locks").Scan(&owner))
	require.False(t, owner.Valid, "the lock is still of %s", owner.String)
}

// The server has ended the idle connections of the pool, and then it limits how long the release may wait for a
// transaction. Close goes on until the lock is released.
func TestCloseAfterErrors(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		refused := make(refusals, 1)
		db := one.connect(t, s.addr, one.name)
		if s.dialect == sqllock.PostgreSQL {
			config, err := configPostgreSQL(one.addr, one.name)
			require.NoError(t, err)
			config.Tracer = refused
			db = sql.OpenDB(stdlib.GetConnector(*config))
			defer db.Close()
		}
		c, err := sqllock.NewClient(db, s.dialect, sqllock.WithTTL(time.Hour))
		require.NoError(t, err)
		defer c.Close()
		lock := lockOf(t, c, "lock")
		hold := mustAcquire(t, lock)
		if s.dialect == sqllock.PostgreSQL {
			one.exec(t, "ALTER DATABASE "+one.name+" SET lock_timeout = 200")
			one.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"+
				" WHERE datname = current_database() AND pid <> pg_backend_pid()")
		}
		tx := begin(t, one.db, sql.LevelDefault)
		require.NoError(t, lock.Guard(t.Context(), tx, hold.Token()))
		if s.dialect == sqllock.PostgreSQL {
			closed := make(chan error, 1)
			go func() { closed <- c.Close() }()
			testzk.Closes(t, refused, "no request was refused")
			require.NoError(t, tx.Commit())
			require.NoError(t, <-closed)
		} else {
			closed := one.untilRowLock(t, c.Close)
			require.NoError(t, tx.Commit())
			require.NoError(t, <-closed)
		}
		requireReleased(t, one.db)
	})
}

// refusals gets a message when PostgreSQL has refused to wait longer for a lock. It has room for one.
type refusals chan struct{}

func (r refusals) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (r refusals) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	var answer *pgconn.PgError
	if !errors.As(data.Err, &answer) || answer.Code != "55P03" {
		return
	}
	select {
	case r <- struct{}{}:
	default:
	}
}

// No server listens any more when the client is closed. Close does not wait for one.
func TestCloseWithoutAServer(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		wire := newCable(t, s.addr)
		connector, err := s.connector(wire.addr(), one.name)
		require.NoError(t, err)
		var dials atomic.Int32
		db := sql.OpenDB(counted{connector, &dials})
		defer db.Close()
		c, err := sqllock.NewClient(db, s.dialect, sqllock.WithTTL(time.Hour))
		require.NoError(t, err)
		mustAcquire(t, lockOf(t, c, "lock"))
		wire.stop()
		dials.Store(0)
		require.NoError(t, c.Close())
		require.LessOrEqual(t, dials.Load(), int32(2)) // otherwise it would try for seconds
	})
}

// counted counts the connections that are tried.
type counted struct {
	driver.Connector
	dials *atomic.Int32
}

func (c counted) Connect(ctx context.Context) (driver.Conn, error) {
	c.dials.Add(1)
	return c.Connector.Connect(ctx)
}

// An operator has given a lock away until a time far ahead.
func TestLockThatIsParked(t *testing.T) {
	times := map[sqllock.Dialect][]string{
		sqllock.PostgreSQL: {"9999-12-31", "infinity"},
		sqllock.MySQL:      {"9999-12-31", "9999-00-00"},
	}
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t)
		lock := lockOf(t, c, "lock")
		require.NoError(t, mustAcquire(t, lock).Release())
		for _, until := range times[s.dialect] {
			one.exec(t, "UPDATE docent_locks SET owner = 'maintenance', valid_until = '"+until+"'")
			_, err := lock.TryAcquire(t.Context())
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			tx := begin(t, one.db, sql.LevelDefault)
			_, err = lock.InTx(t.Context(), tx)
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			require.NoError(t, tx.Rollback())
		}
	})
}

// An operator locks the row, and deletes it while InTx waits.
func TestRowDeletedBeforeATransaction(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t)
		lock := lockOf(t, c, "lock")
		hold := mustAcquire(t, lock)
		require.NoError(t, hold.Release())
		operator := begin(t, one.db, sql.LevelReadCommitted)
		_, err := operator.Exec("SELECT * FROM docent_locks FOR UPDATE")
		require.NoError(t, err)
		tx := begin(t, one.db, sql.LevelReadCommitted)
		var token int64
		ended := one.untilRowLock(t, func() (err error) {
			token, err = lock.InTx(t.Context(), tx)
			return err
		})
		_, err = operator.Exec("DELETE FROM docent_locks")
		require.NoError(t, err)
		require.NoError(t, operator.Commit())
		require.NoError(t, <-ended)
		require.Greater(t, token, hold.Token())
		_, err = lock.TryAcquire(t.Context())
		require.Error(t, err)
		require.NoError(t, tx.Commit())
		require.Greater(t, mustAcquire(t, lock).Token(), token)
	})
}

// A release that waits for a guarded transaction goes on when Hold.Release has given up.
func TestReleaseGoesOn(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t, sqllock.WithTTL(time.Hour))
		lock := lockOf(t, c, "lock")
		hold := mustAcquire(t, lock)
		tx := begin(t, one.db, sql.LevelDefault)
		require.NoError(t, lock.Guard(t.Context(), tx, hold.Token()))
		require.ErrorIs(t, hold.Release(), recipes.ErrReleasePending)
		require.NoError(t, tx.Commit())
		require.NoError(t, mustAcquire(t, lock).Release())
	})
}

// All instances of a program create the table when they start.
func TestCreateTableAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		db := s.connect(t, s.addr, one.name)
		const instances = 10
		for round := range 3 {
			table := sqllock.WithTable(fmt.Sprintf("locks%d", round))
			c, err := sqllock.NewClient(db, s.dialect, table, sqllock.WithFairQueue())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			errs := make(chan error, instances)
			for range instances {
				go func() { errs <- c.CreateTable(t.Context()) }()
			}
			for range instances {
				require.NoError(t, <-errs)
			}
		}
	})
}

// A pool with one connection, which the transaction has, is enough for a name that was used before.
func TestTransactionsNeedOneConnection(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		db := s.connect(t, s.addr, one.name)
		db.SetMaxOpenConns(1)
		c, err := sqllock.NewClient(db, s.dialect)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		require.NoError(t, mustAcquire(t, lockOf(t, c, "lock")).Release())
		before := db.Stats().WaitCount
		for range 2 {
			tx := begin(t, db, sql.LevelDefault)
			_, err = lockOf(t, c, "lock").InTx(t.Context(), tx)
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
		}
		require.Equal(t, before, db.Stats().WaitCount)
	})
}

// An operator may write any time.
func TestLeaseOfLongAgoHasEnded(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.keyClient(t)
		lock, key := lockOf(t, c, "lock"), one.keyLock(t, c, "lock")
		require.NoError(t, mustAcquire(t, lock).Release())
		past := []string{"1970-01-02", "1600-01-01", "1000-01-01"}
		if s.dialect == sqllock.PostgreSQL {
			past = append(past, "4000-01-01 BC", "-infinity")
		} else {
			past = append(past, "0000-00-00", "2020-00-00")
		}
		for _, at := range past {
			one.exec(t, "UPDATE docent_locks SET owner = 'x', valid_until = '"+at+"'")
			hold, err := lock.TryAcquire(t.Context())
			require.NoError(t, err, at)
			require.NoError(t, hold.Release())
			if s.dialect == sqllock.MySQL { // its timestamps begin in 1970
				one.exec(t, "ALTER TABLE mutexes MODIFY until DATETIME(6)")
			}
			one.exec(t, "INSERT INTO mutexes VALUES ('lock', 'x', '"+at+"')")
			hold, err = key.TryAcquire(t.Context())
			require.NoError(t, err, at)
			require.NoError(t, hold.Release())
		}
	})
}
