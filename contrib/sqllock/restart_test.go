package sqllock_test

import (
	"database/sql"
	"database/sql/driver"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes"
)

// A server is killed, and starts again with its data. A hold outlasts that. It runs while no other test
// uses the server.
func TestRestartOfTheServer(t *testing.T) {
	for d := range servers {
		t.Run(d.String(), func(t *testing.T) {
			s := serverOf(t, d)
			one := s.site(t)
			a, _ := one.client(t, sqllock.WithTTL(2*time.Minute))
			b, _ := one.client(t, sqllock.WithTTL(2*time.Minute))
			hold := mustAcquire(t, lockOf(t, a, "lock"))
			s.kill()
			require.NoError(t, s.start())
			require.NoError(t, hold.Err())
			_, err := lockOf(t, b, "lock").TryAcquire(t.Context())
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			require.NoError(t, hold.Release())
			next := mustAcquire(t, lockOf(t, b, "lock"))
			require.Greater(t, next.Token(), hold.Token())
			require.NoError(t, next.Release())
		})
	}
}

// A replica has session locks of its own. It runs while no other test uses the server.
func TestSessionLockOfAReplica(t *testing.T) {
	for d, demote := range map[sqllock.Dialect]func(s *site, t *testing.T){
		sqllock.PostgreSQL: (*site).standBy, sqllock.MySQL: (*site).takeNoWrites,
	} {
		t.Run(d.String(), func(t *testing.T) {
			one := serverOf(t, d).site(t)
			c, _ := one.client(t)
			demote(one, t)
			lock := one.sessionLock(t, c)
			_, err := lock.Acquire(t.Context())
			require.ErrorContains(t, err, "the server takes no writes")
			_, err = lock.TryAcquire(t.Context())
			require.ErrorContains(t, err, "the server takes no writes")
		})
	}
}

// standBy makes PostgreSQL a replica until the test ends.
func (s *site) standBy(t *testing.T) {
	s.kill()
	require.NoError(t, os.WriteFile(filepath.Join(s.place.dir, "data", "standby.signal"), nil, 0o644))
	require.NoError(t, s.start())
	t.Cleanup(func() { s.exec(t, "SELECT pg_promote()") })
}

// takeNoWrites has MariaDB take no writes until the test ends.
func (s *site) takeNoWrites(t *testing.T) {
	s.exec(t, "SET GLOBAL read_only = 1")
	t.Cleanup(func() { s.exec(t, "SET GLOBAL read_only = 0") })
}

// The statements work with the settings of the drivers.
func TestSettingsOfDrivers(t *testing.T) {
	pg := func(mode pgx.QueryExecMode, isolation string) func(addr, database string) (driver.Connector, error) {
		return func(addr, database string) (driver.Connector, error) {
			config, err := pgx.ParseConfig("postgres://docent@" + addr + "/" + database + "?sslmode=disable")
			if err != nil {
				return nil, err
			}
			config.DefaultQueryExecMode = mode
			config.RuntimeParams["default_transaction_isolation"] = isolation
			return stdlib.GetConnector(*config), nil
		}
	}
	maria := func(dsn string) func(addr, database string) (driver.Connector, error) {
		return func(addr, database string) (driver.Connector, error) {
			config, err := mysql.ParseDSN("root@tcp(" + addr + ")/" + database + dsn)
			if err != nil {
				return nil, err
			}
			return mysql.NewConnector(config)
		}
	}
	for name, row := range map[string]struct {
		dialect sqllock.Dialect
		connect func(addr, database string) (driver.Connector, error)
	}{
		"pgx, simple protocol":           {sqllock.PostgreSQL, pg(pgx.QueryExecModeSimpleProtocol, "read committed")},
		"pgx, exec":                      {sqllock.PostgreSQL, pg(pgx.QueryExecModeExec, "repeatable read")},
		"pgx, described each time":       {sqllock.PostgreSQL, pg(pgx.QueryExecModeDescribeExec, "serializable")},
		"mysql, interpolated":            {sqllock.MySQL, maria("?interpolateParams=true")},
		"mysql, found rows":              {sqllock.MySQL, maria("?clientFoundRows=true&parseTime=true&loc=Local")},
		"mysql, a time zone":             {sqllock.MySQL, maria("?time_zone=%27%2B09%3A30%27")},
		"mysql, serializable":            {sqllock.MySQL, maria("?tx_isolation=%27SERIALIZABLE%27")},
		"mysql, an empty string is NULL": {sqllock.MySQL, maria("?sql_mode=%27EMPTY_STRING_IS_NULL%27")},
		"mysql, strings are not quoted":  {sqllock.MySQL, maria("?sql_mode=%27ANSI%2CNO_BACKSLASH_ESCAPES%27")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serverOf(t, row.dialect)
			database, admin := s.database(t)
			connector, err := row.connect(s.addr, database)
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer db.Close()
			c, err := sqllock.NewClient(db, row.dialect, sqllock.WithTTL(lease), sqllock.WithSessionTokens())
			require.NoError(t, err)
			defer c.Close()
			other, err := sqllock.NewClient(admin, row.dialect)
			require.NoError(t, err)
			defer other.Close()

			lock := lockOf(t, c, "it's \\ a lock")
			useOnce(t, lock)
			hold := mustAcquire(t, lock)
			_, err = lockOf(t, other, lock.Name()).TryAcquire(t.Context())
			require.ErrorContains(t, err, "not acquired")
			tx := begin(t, db, sql.LevelDefault)
			require.NoError(t, lock.Guard(t.Context(), tx, hold.Token()))
			require.NoError(t, tx.Commit())
			require.NoError(t, hold.Release())
			tx = begin(t, db, sql.LevelDefault)
			token, err := lock.InTx(t.Context(), tx)
			require.NoError(t, err)
			require.Greater(t, token, hold.Token())
			require.NoError(t, tx.Commit())

			session, err := sqllock.NewSessionLock(c, database)
			require.NoError(t, err)
			useOnce(t, session)
		})
	}
}

// useOnce acquires a lock, waits until the hold is renewed, and releases it.
func useOnce(t *testing.T, lock recipes.Locker) {
	t.Helper()
	hold := mustAcquire(t, lock)
	require.Positive(t, hold.Token())
	awaitRenewal(t, hold)
	_, err := lock.TryAcquire(t.Context())
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.NoError(t, hold.Release())
}
