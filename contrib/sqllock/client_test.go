package sqllock_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

func TestBadInputIsNamed(t *testing.T) {
	connector, err := connectPostgreSQL("127.0.0.1:1", "")
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	listen := func(context.Context, string, func(string)) error { return nil }
	for want, opt := range map[string]sqllock.Option{
		"option 0 is nil":                    nil,
		`WithTable: "a b" is not the name`:   sqllock.WithTable("a b"),
		`WithTable: "" is not the name`:      sqllock.WithTable(""),
		`WithTable: "a.b.c" is not the name`: sqllock.WithTable("a.b.c"),
		"WithTTL: 999ms":                     sqllock.WithTTL(999 * time.Millisecond),
		"WithTTL: 24h0m1s":                   sqllock.WithTTL(24*time.Hour + time.Second),
		"WithPollInterval: 0s":               sqllock.WithPollInterval(0),
		"WithOwner: ":                        sqllock.WithOwner(strings.Repeat("x", 101)),
		`WithOwner: "a\x00"`:                 sqllock.WithOwner("a\x00"),
		`WithNotify: "a;b" is not`:           sqllock.WithNotify("a;b", listen),
		`WithNotify: "Locks" is not`:         sqllock.WithNotify("Locks", listen),
		"WithNotify: listen is nil":          sqllock.WithNotify("a", nil),
		"WithLogger: the logger is nil":      sqllock.WithLogger(nil),
		"WithMetrics: the metrics are nil":   sqllock.WithMetrics(nil),
	} {
		_, err := sqllock.NewClient(db, sqllock.PostgreSQL, opt)
		require.ErrorContains(t, err, want)
	}
	for want, k := range map[string]sqllock.KeyTable{
		`WithKeyTable: "" is not the name of a table`:     {},
		`WithKeyTable: "a b" is not the name of a column`: {Table: "a", Name: "a b"},
		`WithKeyTable: "1" is not the name of a column`:   {Table: "a", Holder: "1"},
		`WithKeyTable: "x;" is not the name of a column`:  {Table: "a", Expires: "x;"},
	} {
		_, err := sqllock.NewClient(db, sqllock.MySQL, sqllock.WithKeyTable(k))
		require.ErrorContains(t, err, want)
	}
	_, err = sqllock.NewClient(nil, sqllock.PostgreSQL)
	require.ErrorContains(t, err, "the database is nil")
	_, err = sqllock.NewClient(db, 0)
	require.ErrorContains(t, err, "Dialect(0)")
	_, err = sqllock.NewClient(db, sqllock.MySQL, sqllock.WithNotify("a", listen))
	require.ErrorContains(t, err, "MySQL has no notifications")

	c, err := sqllock.NewClient(db, sqllock.PostgreSQL, sqllock.WithTable("jobs.locks"), sqllock.WithOwner("me"))
	require.NoError(t, err)
	defer c.Close()
	_, err = sqllock.NewClient(db, sqllock.MySQL, sqllock.WithFairQueue(), sqllock.WithTable(strings.Repeat("x", 60)))
	require.ErrorContains(t, err, "WithFairQueue: ")
	_, err = sqllock.NewKeyLock(c, "a")
	require.ErrorContains(t, err, "WithKeyTable")
	for _, name := range []string{"", strings.Repeat("x", 256), "\xff", "a\x00"} {
		_, err := sqllock.New(c, name)
		require.ErrorContains(t, err, "the name")
		_, err = sqllock.NewSessionLock(c, name)
		require.ErrorContains(t, err, "the name")
	}
	for _, table := range []string{"", "a-b", "a;b", "1a"} {
		_, err := sqllock.MySQL.CreateTable(table)
		require.ErrorContains(t, err, "is not the name of a table")
	}
	_, err = sqllock.MySQL.CreateQueue("a b")
	require.ErrorContains(t, err, "is not the name of a table")
	_, err = sqllock.Dialect(3).CreateQueue("a")
	require.ErrorContains(t, err, "Dialect(3)")
	_, err = sqllock.Dialect(3).CreateTable("a")
	require.ErrorContains(t, err, "Dialect(3)")
	for want, row := range map[string]struct {
		table, fence string
		set, key     []string
	}{
		"set or key is empty": {"a", "f", nil, []string{"id"}},
		`"a b" is not`:        {"a b", "f", []string{"x"}, []string{"id"}},
		`"x=1" is not`:        {"a", "f", []string{"x=1"}, []string{"id"}},
		`"" is not`:           {"a", "", []string{"x"}, []string{"id"}},
	} {
		_, err := sqllock.MySQL.FencedUpdate(row.table, row.fence, row.set, row.key)
		require.ErrorContains(t, err, want)
	}
	_, err = sqllock.Dialect(0).FencedUpdate("a", "f", []string{"x"}, []string{"id"})
	require.ErrorContains(t, err, "Dialect(0)")
	require.Error(t, sqllock.CheckFenced(nil))

	lock := lockOf(t, c, "lock")
	var none context.Context
	_, err = lock.Acquire(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	_, err = lock.InTx(t.Context(), nil)
	require.ErrorContains(t, err, "the transaction is nil")
	require.ErrorContains(t, lock.Guard(t.Context(), nil, 1), "the transaction is nil")
	require.ErrorIs(t, c.CreateTable(none), framework.ErrNilContext)
}

func TestZeroValuesFail(t *testing.T) {
	var c sqllock.Client
	_, err := sqllock.New(&c, "lock")
	require.ErrorIs(t, err, framework.ErrZeroValue)
	_, err = sqllock.NewSessionLock(&c, "lock")
	require.ErrorIs(t, err, framework.ErrZeroValue)
	_, err = sqllock.NewKeyLock(&c, "lock")
	require.ErrorIs(t, err, framework.ErrZeroValue)
	require.ErrorIs(t, c.CreateTable(t.Context()), framework.ErrZeroValue)
	require.ErrorIs(t, c.Close(), framework.ErrZeroValue)
	_, err = sqllock.New(nil, "lock")
	require.ErrorContains(t, err, "nil client")
	var l sqllock.Lock
	var s sqllock.SessionLock
	var k sqllock.KeyLock
	require.Empty(t, l.Name()+s.Name()+s.Key()+k.Name())
	for name, acquire := range map[string]func(context.Context) (*recipes.Hold, error){
		"acquire": l.Acquire, "try": l.TryAcquire,
		"acquire a session": s.Acquire, "try a session": s.TryAcquire,
		"acquire a key": k.Acquire, "try a key": k.TryAcquire,
	} {
		_, err := acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrZeroValue, name)
	}
	_, err = l.InTx(t.Context(), nil)
	require.ErrorIs(t, err, framework.ErrZeroValue)
	require.ErrorIs(t, l.Guard(t.Context(), nil, 1), framework.ErrZeroValue)
}

// A closed client fails at once, without the database.
func TestClosedClient(t *testing.T) {
	connector, err := connectPostgreSQL("127.0.0.1:1", "")
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	c, err := sqllock.NewClient(db, sqllock.PostgreSQL)
	require.NoError(t, err)
	lock := lockOf(t, c, "lock")
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, err = lock.Acquire(t.Context())
	require.ErrorIs(t, err, sqllock.ErrClosed)
	require.EqualError(t, err, "acquire lock: sqllock: client closed")
}

// A database that refuses the first statement is no reason to wait.
func TestMissingTableIsReported(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t, sqllock.WithTable("none"))
		lock := lockOf(t, c, "lock")
		_, err := lock.Acquire(t.Context())
		require.ErrorContains(t, err, "acquire lock: ")
		require.ErrorContains(t, err, "none")
		require.NoError(t, c.CreateTable(t.Context()))
		require.NoError(t, c.CreateTable(t.Context()), "it exists")
		require.NoError(t, mustAcquire(t, lock).Release())
	})
}

// Names are compared byte by byte, and are no part of a statement.
func TestNames(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t, sqllock.WithOwner("wörker's \\ \"1\""))
		last := int64(0)
		for _, name := range []string{
			"a", "A", "a ", "ä", "a\u0308", "'", `"; DROP TABLE docent_locks; --`, `\`, "%", "\n",
			strings.Repeat("x", 255), strings.Repeat("x", 254), strings.Repeat("é", 127), "🔒",
		} {
			hold, err := lockOf(t, c, name).TryAcquire(t.Context())
			require.NoError(t, err, name)
			require.Positive(t, hold.Token())
			last = max(last, hold.Token())
		}
		var owners int
		require.NoError(t, one.db.QueryRow("SELECT COUNT(DISTINCT owner) FROM docent_locks").Scan(&owners))
		require.Equal(t, 14, owners)
	})
}

// Tokens grow although the row was deleted.
func TestTokensOfARowThatWasDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t)
		lock := lockOf(t, c, "lock")
		hold := mustAcquire(t, lock)
		require.NoError(t, hold.Release())
		one.exec(t, "DELETE FROM docent_locks")
		next := mustAcquire(t, lock)
		require.Greater(t, next.Token(), hold.Token())
		require.NoError(t, next.Release())
	})
}

// No token is larger than the largest one.
func TestLargestToken(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t)
		lock := lockOf(t, c, "lock")
		require.NoError(t, mustAcquire(t, lock).Release())
		one.exec(t, "UPDATE docent_locks SET fence = 9223372036854775807")
		_, err := lock.TryAcquire(t.Context())
		require.ErrorContains(t, err, "its token is 9223372036854775807")
		_, err = lock.Acquire(t.Context())
		require.ErrorContains(t, err, "its token is 9223372036854775807")
		_, err = lock.InTx(t.Context(), begin(t, one.db, sql.LevelDefault))
		require.ErrorContains(t, err, "its token is 9223372036854775807")
	})
}

// The holder has the largest token. Others are refused as by any holder.
func TestHolderOfTheLargestToken(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c, _ := one.client(t, sqllock.WithMetrics(whenWaiting(cancel)))
		lock := lockOf(t, c, "lock")
		require.NoError(t, mustAcquire(t, lock).Release())
		one.exec(t, "UPDATE docent_locks SET fence = 9223372036854775806")
		hold := mustAcquire(t, lock)
		_, err := lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		_, err = lock.InTx(t.Context(), begin(t, one.db, sql.LevelDefault))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		_, err = lock.Acquire(ctx)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, hold.Err())
	})
}

// A hold says why it was lost.
func TestReasons(t *testing.T) {
	past := map[sqllock.Dialect]string{
		sqllock.PostgreSQL: "clock_timestamp() - interval '1 hour'",
		sqllock.MySQL:      "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR",
	}
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.client(t) // the row is read in the time between a hold and its lease
		for want, text := range map[string]string{
			"its owner was removed":      "UPDATE docent_locks SET owner = NULL",
			"its row was deleted":        "DELETE FROM docent_locks",
			"there is a later token, 2":  "UPDATE docent_locks SET owner = NULL, fence = 2000000000000000000",
			"by the clock of the databa": "UPDATE docent_locks SET valid_until = " + past[s.dialect],
		} {
			one.loses(t, lockOf(t, a, "lock"), want, text)
		}
	})
}

// An owner is shown to operators, and a client that ends releases its locks at once.
func TestCloseReleases(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.client(t, sqllock.WithTTL(time.Hour), sqllock.WithOwner("worker 7"))
		b, _ := one.client(t)
		hold := mustAcquire(t, lockOf(t, a, "lock"))
		var owner string
		require.NoError(t, one.db.QueryRow("SELECT owner FROM docent_locks").Scan(&owner))
		require.True(t, strings.HasPrefix(owner, "worker 7 "), owner)
		require.NoError(t, a.Close())
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		require.ErrorContains(t, hold.Err(), "closed")
		next, err := lockOf(t, b, "lock").TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, next.Release())
	})
}

// A waiter far from its next look is woken by the release of another client.
func TestNotificationWakesAWaiter(t *testing.T) {
	t.Parallel()
	one := serverOf(t, sqllock.PostgreSQL).site(t)
	db := one.connect(t, one.addr, one.name)
	var ready []chan struct{}
	client := func() *sqllock.Client {
		heard := make(chan struct{})
		tell := sync.OnceFunc(func() { close(heard) })
		ready = append(ready, heard)
		listen := func(ctx context.Context, channel string, notified func(string)) error {
			return listenBy(db)(ctx, channel, func(payload string) { tell(); notified(payload) })
		}
		const long = time.Hour // longer than the test may take
		c, _ := one.client(t,
			sqllock.WithNotify("locks", listen), sqllock.WithPollInterval(10*long), sqllock.WithTTL(long))
		return c
	}
	a, b := client(), client()
	for _, heard := range ready {
		for listens := false; !listens; {
			one.exec(t, "NOTIFY locks, 'another'")
			select {
			case <-heard:
				listens = true
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	first, second := lockOf(t, a, "lock"), lockOf(t, b, "lock")
	for range 5 {
		hold := mustAcquire(t, first)
		waited := make(chan error, 1)
		go func() {
			hold, err := second.Acquire(t.Context())
			if err == nil {
				err = hold.Release()
			}
			waited <- err
		}()
		time.Sleep(100 * time.Millisecond) // its first looks are over, or not: it must acquire in both cases
		require.NoError(t, hold.Release())
		require.NoError(t, <-waited)
	}
}

// A listener that fails is called again, and waiters poll meanwhile.
func TestListenerThatFails(t *testing.T) {
	t.Parallel()
	one := serverOf(t, sqllock.PostgreSQL).site(t)
	calls := make(chan struct{}, 100)
	listen := func(context.Context, string, func(string)) error {
		calls <- struct{}{}
		return sql.ErrConnDone
	}
	a, _ := one.client(t, sqllock.WithNotify("locks", listen))
	b, _ := one.client(t)
	hold := mustAcquire(t, lockOf(t, a, "lock"))
	waited := make(chan error, 1)
	waiter := lockOf(t, a, "lock")
	go func() {
		hold, err := waiter.Acquire(t.Context())
		if err == nil {
			err = hold.Release()
		}
		waited <- err
	}()
	<-calls
	<-calls
	require.NoError(t, hold.Release())
	require.NoError(t, <-waited)
	require.NoError(t, mustAcquire(t, lockOf(t, b, "lock")).Release())
}
