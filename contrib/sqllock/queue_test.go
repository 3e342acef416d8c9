package sqllock_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

// fairClient returns a client with a fair queue.
func (s *site) fairClient(t testing.TB, opts ...sqllock.Option) (*sqllock.Client, *cable) {
	t.Helper()
	c, wire := s.client(t, append([]sqllock.Option{sqllock.WithFairQueue()}, opts...)...)
	require.NoError(t, c.CreateTable(t.Context()))
	return c, wire
}

// clocks are the clocks of the databases.
var clocks = map[sqllock.Dialect]string{
	sqllock.PostgreSQL: "clock_timestamp()",
	sqllock.MySQL:      "UTC_TIMESTAMP(6)",
}

// awaitEnd waits until the lease of the only lock has ended by the clock of the database.
func (s *site) awaitEnd(t testing.TB) {
	t.Helper()
	ended := func() bool { return s.count(t, "docent_locks WHERE valid_until <= "+clocks[s.dialect]) == 1 }
	require.Eventually(t, ended, time.Minute, 10*time.Millisecond)
}

// waiters counts the waiters in the queue.
func (s *site) waiters(t testing.TB) int {
	t.Helper()
	return s.count(t, "docent_locks_queue WHERE valid_until > "+clocks[s.dialect])
}

// tickets counts the waiters, and those that have crashed.
func (s *site) tickets(t testing.TB) int {
	t.Helper()
	return s.count(t, "docent_locks_queue")
}

func (s *site) count(t testing.TB, rows string) (n int) {
	t.Helper()
	require.NoError(t, s.db.QueryRow("SELECT COUNT(*) FROM "+rows).Scan(&n))
	return n
}

func fairContract(s *server, opts ...sqllock.Option) locktest.Service {
	service := contract(s, leases, append([]sqllock.Option{sqllock.WithFairQueue()}, opts...)...)
	service.Tokens = true
	service.Waiters = func(t testing.TB) int { return s.site(t).waiters(t) }
	client := service.Client
	service.Client = func(t testing.TB, name string) locktest.Client {
		text, err := s.dialect.CreateQueue(sqllock.DefaultTable)
		require.NoError(t, err)
		s.site(t).exec(t, text)
		return client(t, name)
	}
	return service
}

func TestFairQueue(t *testing.T) {
	each(t, func(t *testing.T, s *server) { locktest.Run(t, fairContract(s)) })
}

func TestFairQueueWithNotifications(t *testing.T) {
	t.Parallel()
	s := serverOf(t, sqllock.PostgreSQL)
	with := fairContract(s)
	with.Client = func(t testing.TB, name string) locktest.Client {
		db := s.connect(t, s.addr, s.site(t).name)
		notify := []sqllock.Option{sqllock.WithNotify("locks", listenBy(db)), sqllock.WithPollInterval(lease)}
		return fairContract(s, notify...).Client(t, name)
	}
	locktest.Run(t, with)
}

// enqueue starts an acquire, and returns when it is in the queue as the last of n.
func (s *site) enqueue(t *testing.T, c *sqllock.Client, n int) <-chan *recipes.Hold {
	t.Helper()
	lock, won := lockOf(t, c, "lock"), make(chan *recipes.Hold, 1)
	go func() {
		hold, _ := lock.Acquire(t.Context())
		won <- hold // nil if it has failed
	}()
	require.Eventually(t, func() bool { return s.waiters(t) == n }, time.Minute, time.Millisecond)
	return won
}

// Goroutines of several clients acquire in the order in which they came.
func TestFairQueueOfGoroutines(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.fairClient(t)
		b, _ := one.fairClient(t)
		hold := mustAcquire(t, lockOf(t, a, "lock"))
		var all []<-chan *recipes.Hold
		for i := range 6 {
			c := []*sqllock.Client{a, a, b}[i%3]
			all = append(all, one.enqueue(t, c, i+1))
		}
		for i, won := range all {
			require.NoError(t, hold.Release())
			hold = <-won
			require.NotNil(t, hold)
			for _, later := range all[i+1:] {
				require.Empty(t, later)
			}
		}
		require.NoError(t, hold.Release())
	})
}

// Waiters that come while a transaction has the lock acquire it in the order in which they came.
func TestFairQueueBehindATransaction(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.fairClient(t)
		b, _ := one.fairClient(t)
		tx := begin(t, one.db, sql.LevelDefault)
		_, err := lockOf(t, a, "lock").InTx(t.Context(), tx)
		require.NoError(t, err)
		first := one.enqueue(t, a, 1)
		second := one.enqueue(t, b, 2)
		require.NoError(t, tx.Commit())
		for _, won := range []<-chan *recipes.Hold{first, second} {
			hold := <-won
			require.NotNil(t, hold)
			require.NoError(t, hold.Release())
		}
	})
}

// A waiter that has crashed keeps its place for a lease, and then delays the others no more.
func TestFairQueueWithADeadWaiter(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.fairClient(t)
		b, wire := one.fairClient(t, sqllock.WithTTL(time.Hour))
		c, _ := one.fairClient(t)
		hold := mustAcquire(t, lockOf(t, a, "lock"))
		one.enqueue(t, b, 1)
		next := one.enqueue(t, c, 2)
		wire.cut(true)
		require.NoError(t, hold.Release())
		_, err := lockOf(t, a, "lock").TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "others wait")
		one.exec(t, "UPDATE docent_locks_queue SET valid_until = '2000-01-01' WHERE ticket = 1") // an hour later
		hold = <-next
		require.NotNil(t, hold)
		require.NoError(t, hold.Release())
		for one.tickets(t) > 0 { // those that have crashed are deleted, too
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, b.Close()) // ends its wait
	})
}

// slowTickets has the database wait for the row of another table before it inserts a ticket.
var slowTickets = map[sqllock.Dialect][]string{
	sqllock.PostgreSQL: {
		`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			UPDATE slow SET n = 1;
			RETURN NEW;
		END $$`,
		"CREATE TRIGGER slow BEFORE INSERT ON docent_locks_queue FOR EACH ROW EXECUTE PROCEDURE slow()",
	},
	sqllock.MySQL: {
		"CREATE TRIGGER slow BEFORE INSERT ON docent_locks_queue FOR EACH ROW UPDATE slow SET n = 1",
	},
}

// connectWithoutCancel connects by a driver that cannot cancel a request. pgx does that on another
// connection, for which PostgreSQL may interrupt the session twice. The driver of MySQL only closes the
// connection.
func (s *site) connectWithoutCancel(t testing.TB) *sql.DB {
	t.Helper()
	if s.dialect != sqllock.PostgreSQL {
		return s.connect(t, s.addr, s.name)
	}
	config, err := configPostgreSQL(s.addr, s.name)
	require.NoError(t, err)
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return withoutCancel{conn}, err
	}
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// withoutCancel is a connection of pgx that sends no CancelRequest.
type withoutCancel struct{ net.Conn }

// cancelRequest is what a CancelRequest begins with: its length and its number.
var cancelRequest = []byte{0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e}

func (c withoutCancel) Write(message []byte) (int, error) {
	if bytes.HasPrefix(message, cancelRequest) {
		return 0, errors.New("a CancelRequest is not sent")
	}
	return c.Conn.Write(message)
}

// The database inserts a ticket after its waiter has given up and left. It does not keep the lock from
// others.
func TestTicketThatComesLate(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.fairClient(t, sqllock.WithTTL(time.Hour))
		b, err := sqllock.NewClient(one.connectWithoutCancel(t), s.dialect,
			sqllock.WithFairQueue(), sqllock.WithTTL(time.Hour))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		hold := mustAcquire(t, lockOf(t, a, "lock"))
		one.exec(t, "CREATE TABLE slow (n int)")
		one.exec(t, "INSERT INTO slow VALUES (0)")
		for _, text := range slowTickets[s.dialect] {
			one.exec(t, text)
		}
		operator := begin(t, one.db, sql.LevelDefault)
		_, err = operator.Exec("UPDATE slow SET n = 2")
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(t.Context())
		waiter := lockOf(t, b, "lock")
		ended := one.untilRowLock(t, func() error {
			_, err := waiter.Acquire(ctx)
			return err
		})
		cancel()
		require.Error(t, <-ended)
		require.NoError(t, b.Close())
		require.Zero(t, one.tickets(t))
		require.NoError(t, operator.Commit())
		require.Eventually(t, func() bool { return one.tickets(t) > 0 }, time.Minute, 10*time.Millisecond)

		require.NoError(t, hold.Release())
		hold, err = lockOf(t, a, "lock").TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Release())
	})
}
