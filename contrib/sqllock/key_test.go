package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

// theirs is the table of another program.
var theirs = sqllock.KeyTable{Table: "mutexes", Name: "unique_mutex", Holder: "holder_id", Expires: "until"}

// mutexes creates the table of the other program. Columns of both dialects have other types.
func (s *site) mutexes(t testing.TB) {
	t.Helper()
	s.exec(t, `CREATE TABLE IF NOT EXISTS mutexes (
		unique_mutex varchar(100) NOT NULL UNIQUE, holder_id varchar(36), until timestamp(6) NULL
	)`)
}

func (s *site) keyLock(t testing.TB, c *sqllock.Client, name string) *sqllock.KeyLock {
	t.Helper()
	s.mutexes(t)
	lock, err := sqllock.NewKeyLock(c, name)
	require.NoError(t, err)
	return lock
}

// keyClient returns a client whose holders fit into 36 characters.
func (s *site) keyClient(t testing.TB, opts ...sqllock.Option) (*sqllock.Client, *cable) {
	t.Helper()
	return s.client(t, append([]sqllock.Option{sqllock.WithKeyTable(theirs), sqllock.WithOwner("")}, opts...)...)
}

var uniqueKeys = kind{
	lock: func(t testing.TB, one *site, c *sqllock.Client) methods {
		return one.keyLock(t, c, "lock")
	},
	remove: func(t testing.TB, one *site) { one.exec(t, "DELETE FROM mutexes") },
}

func TestKeyLock(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		locktest.Run(t, contract(s, uniqueKeys, sqllock.WithKeyTable(theirs), sqllock.WithOwner("")))
	})
}

// Another program acquires by INSERT and releases by DELETE.
func TestKeyLockWithAnotherProgram(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.keyClient(t)
		lock := one.keyLock(t, c, "lock")
		for _, insert := range []string{
			"INSERT INTO mutexes VALUES ('lock', 'me', CURRENT_TIMESTAMP + INTERVAL '1' HOUR)",
			"INSERT INTO mutexes VALUES ('lock', 'me', NULL)",
			"INSERT INTO mutexes VALUES ('lock', NULL, NULL)",
			"INSERT INTO mutexes VALUES ('lock', '', CURRENT_TIMESTAMP + INTERVAL '1' HOUR)",
		} {
			one.exec(t, insert)
			require.ErrorIs(t, tryWhileLocked(t, one, lock), recipes.ErrNotAcquired, insert)
			one.exec(t, "DELETE FROM mutexes WHERE unique_mutex = 'lock'")
			hold, err := lock.TryAcquire(t.Context())
			require.NoError(t, err)
			_, err = one.db.Exec(insert)
			require.Error(t, err, "the other program")
			require.NoError(t, hold.Release())
		}
		one.exec(t, "INSERT INTO mutexes VALUES ('lock', 'me', CURRENT_TIMESTAMP - INTERVAL '1' HOUR)")
		hold, err := lock.TryAcquire(t.Context())
		require.NoError(t, err, "its time is over")
		require.Zero(t, hold.Token())
		one.exec(t, "DELETE FROM mutexes WHERE holder_id = 'me'")
		one.exec(t, "DELETE FROM mutexes WHERE until <= CURRENT_TIMESTAMP")
		require.NoError(t, hold.Release())
	})
}

// tryWhileLocked tries to acquire a lock that is held, while a transaction of another program has its row. A
// request that changes the row would wait for that, and fail.
func tryWhileLocked(t *testing.T, one *site, lock *sqllock.KeyLock) error {
	t.Helper()
	tx, err := one.db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.Exec("UPDATE mutexes SET holder_id = 'other' WHERE unique_mutex = 'lock'")
	require.NoError(t, err)
	_, err = lock.TryAcquire(t.Context())
	return err
}

// A hold says why it was lost, and its release deletes only its own row.
func TestKeyLockThatIsLost(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.keyClient(t)
		lock := one.keyLock(t, c, "lock")
		for want, text := range map[string]string{
			"its row was deleted":    "DELETE FROM mutexes",
			`another holder, "me"`:   "UPDATE mutexes SET holder_id = 'me'",
			"by the clock of the da": "UPDATE mutexes SET until = CURRENT_TIMESTAMP - INTERVAL '1' HOUR",
		} {
			one.loses(t, lock, want, text)
			one.exec(t, "DELETE FROM mutexes")
		}
		hold := mustAcquire(t, lock)
		one.exec(t, "UPDATE mutexes SET holder_id = 'me'")
		err := hold.Release()
		require.ErrorIs(t, err, recipes.ErrForeignLost)
		var n int
		require.NoError(t, one.db.QueryRow("SELECT COUNT(*) FROM mutexes WHERE holder_id = 'me'").Scan(&n))
		require.Equal(t, 1, n)
	})
}

// loses has a hold lose its row by a statement, and requires the reason. It tries again if the client came too
// late to read the row once more for the reason.
func (s *site) loses(t testing.TB, lock recipes.Locker, reason, statement string) {
	t.Helper()
	var err error
	for err == nil || strings.Contains(err.Error(), "its row has changed") {
		hold := mustAcquire(t, lock)
		s.exec(t, statement)
		<-hold.Done()
		err = hold.Err()
	}
	require.ErrorIs(t, err, recipes.ErrForeignLost)
	require.ErrorContains(t, err, reason)
	require.ErrorContains(t, err, "lock")
}

// awaitRenewal waits until a hold is renewed.
func awaitRenewal(t testing.TB, hold *recipes.Hold) {
	t.Helper()
	for first := hold.ValidUntil(); !hold.ValidUntil().After(first); time.Sleep(10 * time.Millisecond) {
		require.NoError(t, hold.Err())
	}
}

// A column of whole seconds does not look as if a renewal had failed.
func TestKeyLockWithWholeSeconds(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		one.exec(t, `CREATE TABLE seconds (
			name varchar(100) PRIMARY KEY, holder varchar(200), expires_at timestamp(0) NULL
		)`)
		c, _ := one.client(t, sqllock.WithKeyTable(sqllock.KeyTable{Table: "seconds"}))
		lock, err := sqllock.NewKeyLock(c, strings.Repeat("x", 100))
		require.NoError(t, err)
		hold := mustAcquire(t, lock)
		for range 3 {
			awaitRenewal(t, hold)
		}
		require.NoError(t, hold.Release())
	})
}

// A column of whole seconds cuts the time of a holder, which then is cut off.
func TestKeyLockWithWholeSecondsHasOneHolder(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		// MariaDB leaves fractions of a second out, PostgreSQL rounds.
		column, clock, late := "timestamptz(0)", "SELECT date_part('milliseconds', clock_timestamp())::int % 1000", 400
		if s.dialect == sqllock.MySQL {
			column, clock, late = "DATETIME", "SELECT MICROSECOND(SYSDATE(6)) DIV 1000", 900
		}
		one := s.site(t)
		one.exec(t, `CREATE TABLE seconds (name varchar(100) PRIMARY KEY, holder varchar(200), expires_at `+column+`)`)
		opts := []sqllock.Option{
			sqllock.WithKeyTable(sqllock.KeyTable{Table: "seconds"}), sqllock.WithPollInterval(5 * time.Millisecond),
		}
		a, wire := one.client(t, opts...)
		b, _ := one.client(t, opts...)
		first, err := sqllock.NewKeyLock(a, "lock")
		require.NoError(t, err)
		second, err := sqllock.NewKeyLock(b, "lock")
		require.NoError(t, err)
		for now := 0; now < late || now >= late+80; {
			require.NoError(t, one.db.QueryRow(clock).Scan(&now))
		}
		hold := mustAcquire(t, first)
		wire.cut(true)
		next := mustAcquire(t, second)
		require.Error(t, hold.Err())
		wire.cut(false)
		require.NoError(t, next.Release())
	})
}

// A column that alters the holder is named, instead of a holder that is not known, and no row is left.
func TestKeyLockWhoseHolderIsAltered(t *testing.T) {
	for name, row := range map[string]struct{ holder, label string }{ // column and label
		"cut":     {"varchar(36)", "a label of its own"},
		"letters": {"varchar(100) CHARACTER SET latin1", "日本"},
	} {
		t.Run(name, func(t *testing.T) {
			one := serverOf(t, sqllock.MySQL).site(t)
			lock := one.looseKeyLock(t, "varchar(100)", row.holder, row.label)
			for _, acquire := range []func(context.Context) (*recipes.Hold, error){lock.TryAcquire, lock.Acquire} {
				_, err := acquire(t.Context())
				require.ErrorContains(t, err, "the column has made")
				one.awaitNone(t, "mutexes")
			}
		})
	}
}

// awaitNone waits until a table has no row, which an acquire that has failed deletes in the background.
func (s *site) awaitNone(t testing.TB, table string) {
	t.Helper()
	require.Eventually(t, func() bool { return s.count(t, table) == 0 }, time.Minute, time.Millisecond)
}

// A row without the random letters of the holder may be that of another program. It stays, as that of any holder, and
// so do other rows with the label.
func TestKeyLockWhoseRowIsNotRecognized(t *testing.T) {
	for name, row := range map[string]struct{ name, holder, label string }{ // columns and label
		"label":  {"varchar(100)", "varchar(36)", "a label that is longer than the column"},
		"name":   {"varchar(8)", "varchar(36)", ""},
		"number": {"varchar(8)", "BIGINT", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			one := serverOf(t, sqllock.MySQL).site(t)
			lock := one.looseKeyLock(t, row.name, row.holder, row.label)
			one.exec(t, "INSERT INTO mutexes VALUES ('theirs', '7', CURRENT_TIMESTAMP + INTERVAL '1' HOUR)")
			_, err := lock.TryAcquire(t.Context())
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			require.Equal(t, 2, one.count(t, "mutexes"))
		})
	}
}

// looseKeyLock returns a lock in a table with these columns, and a label. The database is not strict.
func (s *site) looseKeyLock(t testing.TB, name, holder, label string) *sqllock.KeyLock {
	t.Helper()
	s.exec(t, fmt.Sprintf(
		"CREATE TABLE mutexes (unique_mutex %s NOT NULL UNIQUE, holder_id %s, until timestamp(6) NULL)", name, holder))
	return s.keyLockBy(t, label, func(config *mysql.Config) { config.Params = map[string]string{"sql_mode": "''"} })
}

// keyLockBy returns a lock with a label, by a driver of MariaDB with settings.
func (s *site) keyLockBy(
	t testing.TB, label string, set func(*mysql.Config), opts ...sqllock.Option,
) *sqllock.KeyLock {
	t.Helper()
	c, err := sqllock.NewClient(s.connectBy(t, set), sqllock.MySQL, append([]sqllock.Option{
		sqllock.WithKeyTable(theirs), sqllock.WithOwner(label), sqllock.WithTTL(time.Minute),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	lock, err := sqllock.NewKeyLock(c, "orders/7/items")
	require.NoError(t, err)
	return lock
}

// connectBy connects a driver of MariaDB with settings.
func (s *site) connectBy(t testing.TB, set func(*mysql.Config)) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "tcp", s.addr, s.name
	set(config)
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// behindInsert has another program insert the row of keyLockBy in a transaction, for an hour, and acquire wait for it.
// The channel gets the error of acquire.
func (s *site) behindInsert(t testing.TB, holder string, acquire func() error) (other *sql.Tx, ended <-chan error) {
	t.Helper()
	other = begin(t, s.db, sql.LevelReadCommitted)
	_, err := other.Exec(
		"INSERT INTO mutexes VALUES ('orders/7/items', ?, CURRENT_TIMESTAMP + INTERVAL '1' HOUR)", holder)
	require.NoError(t, err)
	return other, s.untilRowLock(t, acquire)
}

// Another program inserts the row in a transaction, for which an acquire waits. The column alters the holder of the
// acquire to that of the other program, which has the lock for its own time.
func TestKeyLockThatIsAlteredToAnotherHolder(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ column, label, theirs string }{
		"label":  {"varchar(6)", "host-1", "host-1"},
		"number": {"BIGINT", "7", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			one := serverOf(t, sqllock.MySQL).site(t)
			lock := one.looseKeyLock(t, "varchar(100)", row.column, row.label)
			other, ended := one.behindInsert(t, row.theirs, func() error {
				_, err := lock.TryAcquire(t.Context())
				return err
			})
			require.NoError(t, other.Commit())
			require.ErrorIs(t, <-ended, recipes.ErrNotAcquired)
			var left int
			require.NoError(t,
				one.db.QueryRow("SELECT TIMESTAMPDIFF(MINUTE, CURRENT_TIMESTAMP, until) FROM mutexes").Scan(&left))
			require.Greater(t, left, 30)
		})
	}
}

// An acquire is given up while it waits for another program. In a column of numbers that one's holder is equal to that
// of the acquire. Its row stays.
func TestKeyLockThatIsGivenUpDeletesNoOtherRow(t *testing.T) {
	t.Parallel()
	one := serverOf(t, sqllock.MySQL).site(t)
	t.Cleanup(func() { require.Equal(t, 1, one.count(t, "mutexes")) }) // after the client is closed
	lock := one.looseKeyLock(t, "varchar(100)", "BIGINT", "7")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other, ended := one.behindInsert(t, "7", func() error {
		_, err := lock.TryAcquire(ctx)
		return err
	})
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, other.Commit())
}

// Another program inserts the row in a transaction, for which an acquire waits. The holder is the label of the lock,
// and the driver counts rows that were found and not changed. The other program has the lock.
func TestKeyLockWhoseLabelIsAHolder(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*sqllock.KeyLock, context.Context) (*recipes.Hold, error){
		"TryAcquire": (*sqllock.KeyLock).TryAcquire, "Acquire": (*sqllock.KeyLock).Acquire,
	}
	for name, acquire := range ways {
		t.Run(name, func(t *testing.T) {
			one := serverOf(t, sqllock.MySQL).site(t)
			one.mutexes(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			lock := one.keyLockBy(t, "host-1", func(config *mysql.Config) { config.ClientFoundRows = true },
				sqllock.WithMetrics(whenWaiting(cancel)))
			other, ended := one.behindInsert(t, "host-1", func() error {
				_, err := acquire(lock, ctx)
				return err
			})
			require.NoError(t, other.Commit())
			require.ErrorIs(t, <-ended, recipes.ErrNotAcquired)
		})
	}
}

// PostgreSQL has spaces at the end of a CHAR.
func TestKeyLockWhoseHolderHasSpacesAtTheEnd(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		one.exec(t, `CREATE TABLE padded (
			name varchar(100) PRIMARY KEY, holder char(36), expires_at timestamp(6) NULL
		)`)
		c, _ := one.client(t, sqllock.WithKeyTable(sqllock.KeyTable{Table: "padded"}), sqllock.WithOwner(""))
		lock, err := sqllock.NewKeyLock(c, "lock")
		require.NoError(t, err)
		hold, err := lock.TryAcquire(t.Context())
		require.NoError(t, err)
		_, err = lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		awaitRenewal(t, hold)
		require.NoError(t, hold.Release())
		require.Zero(t, one.count(t, "padded"))
	})
}

// A column that fills a holder up is named, and no row is left.
func TestKeyLockWhoseHolderIsFilledUp(t *testing.T) {
	one := serverOf(t, sqllock.MySQL).site(t)
	one.exec(t, `CREATE TABLE filled (
		name varchar(100) PRIMARY KEY, holder binary(36), expires_at timestamp(6) NULL
	)`)
	c, _ := one.client(t, sqllock.WithKeyTable(sqllock.KeyTable{Table: "filled"}), sqllock.WithOwner(""))
	lock, err := sqllock.NewKeyLock(c, "lock")
	require.NoError(t, err)
	_, err = lock.TryAcquire(t.Context())
	require.ErrorContains(t, err, "the column has made")
	one.awaitNone(t, "filled")
}
