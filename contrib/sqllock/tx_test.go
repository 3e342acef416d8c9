package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

func begin(t testing.TB, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func mustAcquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	var hold *recipes.Hold
	require.NoError(t, untilAnswered(testzk.Context(t), func() (err error) {
		hold, err = l.Acquire(t.Context())
		return err
	}))
	return hold
}

// A transaction excludes clients, which do not hang, and clients exclude it.
func TestTransactionsAndHoldsExcludeEachOther(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t)
		lock, other := lockOf(t, c, "lock"), lockOf(t, c, "other")
		tx := begin(t, one.db, sql.LevelDefault)
		first, err := lock.InTx(t.Context(), tx)
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), lease/10)
		defer cancel()
		_, err = lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		_, err = lock.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, mustAcquire(t, other).Release())

		require.NoError(t, tx.Commit())
		hold := mustAcquire(t, lock)
		require.Greater(t, hold.Token(), first)
		tx = begin(t, one.db, sql.LevelDefault)
		_, err = lock.InTx(t.Context(), tx)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, tx.Rollback())
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Release())

		tx = begin(t, one.db, sql.LevelDefault)
		second, err := lock.InTx(t.Context(), tx)
		require.NoError(t, err)
		require.Greater(t, second, hold.Token())
		require.NoError(t, tx.Rollback())
		require.Greater(t, mustAcquire(t, lock).Token(), hold.Token())
	})
}

// Transactions see what the ones before them have written, at each isolation level: no increment of a
// counter, which is read and then written, is lost.
func TestTransactionsExcludeEachOther(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		for _, level := range []sql.IsolationLevel{
			sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
		} {
			t.Run(level.String(), func(t *testing.T) {
				t.Parallel()
				one := s.site(t)
				one.exec(t, "CREATE TABLE counter (n int NOT NULL)")
				one.exec(t, "INSERT INTO counter VALUES (0)")
				c, _ := one.client(t)
				lock := lockOf(t, c, "lock") // the row is missing at first
				const goroutines, rounds = 4, 5
				var work sync.WaitGroup
				for range goroutines {
					work.Go(func() {
						for done := 0; done < rounds; {
							if increment(t, one.db, lock, level) {
								done++
							}
						}
					})
				}
				work.Wait()
				var n int
				require.NoError(t, one.db.QueryRow("SELECT n FROM counter").Scan(&n))
				require.Equal(t, goroutines*rounds, n)
			})
		}
	})
}

// increment reports whether its transaction was committed. It fails the test if that may fail only
// because of the lock.
func increment(t *testing.T, db *sql.DB, lock *sqllock.Lock, level sql.IsolationLevel) bool {
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Error(err)
		return true
	}
	defer tx.Rollback() // fails if it is committed
	if _, err := lock.InTx(t.Context(), tx); err != nil {
		if level == sql.LevelReadCommitted {
			t.Error(err)
			return true
		}
		return false
	}
	var n int
	if err := tx.QueryRow("SELECT n FROM counter").Scan(&n); err != nil {
		t.Error(err)
		return true
	}
	if _, err := tx.Exec(fmt.Sprintf("UPDATE counter SET n = %d", n+1)); err != nil {
		return false
	}
	return tx.Commit() == nil
}

// A transaction has read before others have written under a lock. It fails, or reads what they have written. MySQL
// does not show InTx at repeatable read that the state is old.
func TestTransactionsThatReadAnOldState(t *testing.T) {
	ways := map[string]func(t *testing.T, lock *sqllock.Lock, tx *sql.Tx) error{
		"Guard": func(t *testing.T, lock *sqllock.Lock, tx *sql.Tx) error {
			return lock.Guard(t.Context(), tx, mustAcquire(t, lock).Token())
		},
		"InTx": func(t *testing.T, lock *sqllock.Lock, tx *sql.Tx) error {
			_, err := lock.InTx(t.Context(), tx)
			return err
		},
	}
	each(t, func(t *testing.T, s *server) {
		for name, enter := range ways {
			for _, level := range []sql.IsolationLevel{
				sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
			} {
				if s.dialect == sqllock.MySQL && name == "InTx" && level == sql.LevelRepeatableRead {
					continue
				}
				t.Run(name+" "+level.String(), func(t *testing.T) {
					one := s.site(t)
					one.exec(t, "CREATE TABLE another (n int)")
					one.exec(t, "CREATE TABLE counter (n int NOT NULL)")
					one.exec(t, "INSERT INTO counter VALUES (0)")
					c, _ := one.client(t)
					lock := lockOf(t, c, "lock")
					tx := begin(t, one.db, level)
					var n int
					require.NoError(t, tx.QueryRow("SELECT COUNT(*) FROM another").Scan(&n))

					hold := mustAcquire(t, lock)
					one.exec(t, "UPDATE counter SET n = n + 1")
					require.NoError(t, hold.Release())

					if err := enter(t, lock, tx); err != nil {
						require.NotEqual(t, sql.LevelReadCommitted, level, err)
						return
					}
					require.NoError(t, tx.QueryRow("SELECT n FROM counter").Scan(&n))
					require.Equal(t, 1, n)
				})
			}
		}
	})
}

// A transaction of MySQL acquires two locks before it reads. Another one has the second lock, and writes. The first
// one reads that, except at serializable of MariaDB with innodb_snapshot_isolation: there it is rolled back.
func TestTransactionWithASecondLockThatIsBusy(t *testing.T) {
	t.Parallel()
	for _, snapshots := range []string{"OFF", "ON"} {
		for _, level := range []sql.IsolationLevel{
			sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
		} {
			t.Run(level.String()+" "+snapshots, func(t *testing.T) {
				one := serverOf(t, sqllock.MySQL).site(t)
				one.exec(t, "CREATE TABLE counter (n int NOT NULL)")
				one.exec(t, "INSERT INTO counter VALUES (0)")
				c, _ := one.client(t)
				first, busy := lockOf(t, c, "first"), lockOf(t, c, "busy")
				other := begin(t, one.db, level)
				_, err := busy.InTx(t.Context(), other)
				require.NoError(t, err)

				tx := begin(t, one.connectBy(t, func(config *mysql.Config) {
					config.Params = map[string]string{"innodb_snapshot_isolation": snapshots}
				}), level)
				_, err = first.InTx(t.Context(), tx)
				require.NoError(t, err)
				acquired := one.untilRowLock(t, func() error {
					_, err := busy.InTx(t.Context(), tx)
					return err
				})
				_, err = other.Exec("UPDATE counter SET n = 1")
				require.NoError(t, err)
				require.NoError(t, other.Commit())
				err = <-acquired
				if snapshots == "ON" && level == sql.LevelSerializable {
					var answer *mysql.MySQLError
					require.ErrorAs(t, err, &answer)
					require.EqualValues(t, 1020, answer.Number)
					return
				}
				require.NoError(t, err)
				var n int
				require.NoError(t, tx.QueryRow("SELECT n FROM counter").Scan(&n))
				require.Equal(t, 1, n)
			})
		}
	}
}

// A guarded transaction keeps others out, even if the hold is over by its time.
func TestGuard(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, wire := one.client(t)
		b, _ := one.client(t)
		lock, other := lockOf(t, a, "lock"), lockOf(t, b, "lock")
		hold := mustAcquire(t, lock)
		tx := begin(t, one.db, sql.LevelDefault)
		require.NoError(t, lock.Guard(t.Context(), tx, hold.Token()))
		second := begin(t, one.db, sql.LevelDefault)
		require.NoError(t, lock.Guard(t.Context(), second, hold.Token()), "two transactions of one hold")
		require.NoError(t, second.Commit())

		wire.cut(true)
		<-hold.Done() // before others could have it
		one.awaitEnd(t)
		_, err := other.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "the transaction has not ended")
		require.NoError(t, tx.Commit())
		next := mustAcquire(t, other)
		wire.cut(false)

		tx = begin(t, one.db, sql.LevelDefault)
		err = lock.Guard(t.Context(), tx, hold.Token())
		require.ErrorIs(t, err, recipes.ErrNotHeld)
		require.NoError(t, tx.Rollback())
		require.NoError(t, next.Release())
		tx = begin(t, one.db, sql.LevelDefault)
		require.ErrorIs(t, other.Guard(t.Context(), tx, next.Token()), recipes.ErrNotHeld, "it was released")
		require.NoError(t, tx.Rollback())
	})
}

// The lease of a holder ends while its guarded transaction is under way. The next transaction waits for that one by
// InTx, and reads what it has written, or fails. At repeatable read of PostgreSQL it may do neither.
func TestInTxBehindAGuardedTransaction(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		for _, level := range []sql.IsolationLevel{
			sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
		} {
			if s.dialect == sqllock.PostgreSQL && level == sql.LevelRepeatableRead {
				continue
			}
			t.Run(level.String(), func(t *testing.T) {
				t.Parallel()
				one := s.site(t)
				one.exec(t, "CREATE TABLE jobs (n int NOT NULL)")
				a, wire := one.client(t)
				b, _ := one.client(t)
				first, second := lockOf(t, a, "lock"), lockOf(t, b, "lock")
				hold := mustAcquire(t, first)
				guarded := begin(t, one.db, level)
				wire.cut(true) // before a renewal waits for the guarded transaction
				defer wire.cut(false)
				require.NoError(t, first.Guard(t.Context(), guarded, hold.Token()))
				require.NoError(t, insertOnce(guarded))
				<-hold.Done()
				one.awaitEnd(t)

				tx := begin(t, one.db, level)
				ended := one.untilRowLock(t, func() error {
					_, err := second.InTx(t.Context(), tx)
					if err == nil {
						err = insertOnce(tx)
					}
					if err == nil {
						err = tx.Commit()
					}
					return err
				})
				require.NoError(t, guarded.Commit())
				if err := <-ended; err != nil {
					require.Equal(t, sql.LevelSerializable, level, err)
				}
				require.Equal(t, 1, one.count(t, "jobs"))
			})
		}
	})
}

// insertOnce inserts a row, unless the transaction reads one.
func insertOnce(tx *sql.Tx) error {
	var n int
	if err := tx.QueryRow("SELECT COUNT(*) FROM jobs").Scan(&n); err != nil || n > 0 {
		return err
	}
	_, err := tx.Exec("INSERT INTO jobs VALUES (1)")
	return err
}

// A guard that has failed keeps no other holder from renewing and releasing, and no client from the lock.
func TestGuardThatFailsLocksNothing(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
			t.Run(level.String(), func(t *testing.T) {
				one := s.site(t)
				c, _ := one.client(t)
				lock := lockOf(t, c, "lock")
				for range 2 { // the row is missing at first
					tx := begin(t, one.db, level)
					require.ErrorIs(t, lock.Guard(t.Context(), tx, 7), recipes.ErrNotHeld)
					hold, err := lock.TryAcquire(t.Context())
					require.NoError(t, err)
					awaitRenewal(t, hold)
					require.ErrorIs(t, lock.Guard(t.Context(), tx, 7), recipes.ErrNotHeld)
					require.NoError(t, hold.Release())
				}
			})
		}
	})
}

func TestFencedUpdate(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		one.exec(t, `CREATE TABLE accounts (
			id int PRIMARY KEY, owner varchar(20), balance int, fence bigint NOT NULL DEFAULT 0
		)`)
		one.exec(t, "INSERT INTO accounts (id, balance) VALUES (1, 0), (2, 0)")
		text, err := s.dialect.FencedUpdate("accounts", "fence", []string{"owner", "balance"}, []string{"id"})
		require.NoError(t, err)
		update := func(token int64, balance int) error {
			result, err := one.db.Exec(text, "me", balance, token, 1, token)
			require.NoError(t, err)
			return sqllock.CheckFenced(result)
		}
		require.NoError(t, update(7, 100))
		require.NoError(t, update(7, 101))
		require.NoError(t, update(9, 102))
		require.ErrorIs(t, update(8, 103), fence.ErrStale)
		var sum int
		require.NoError(t, one.db.QueryRow("SELECT SUM(balance) FROM accounts").Scan(&sum))
		require.Equal(t, 102, sum)
	})
}
