package peer

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes"
)

// database is a kind of database, and what its programs do.
type database struct {
	dialect sqllock.Dialect
	lock    string // acquires the lock of the connection
	unlock  string
	// The statement that writes the data of a lock; the table is made with the server.
	write string
}

var (
	postgreSQL = database{sqllock.PostgreSQL, "SELECT 1 FROM pg_advisory_lock(hashtext($1))",
		"SELECT pg_advisory_unlock(hashtext($1))::int", "INSERT INTO data (name) VALUES ($1)"}
	mariaDB = database{sqllock.MySQL, "SELECT GET_LOCK(?, 1000000)", "SELECT RELEASE_LOCK(?)",
		"INSERT INTO data (name) VALUES (?)"}
)

// Database is the database that servers have for the locks.
const Database = "compare"

// Open connects to a server of a service.
func Open(service, addr, database string) (*sql.DB, error) {
	if service == PostgreSQL {
		return sql.Open("pgx", "postgres://docent@"+addr+"/"+database+"?sslmode=disable&connect_timeout=5")
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "tcp", addr, database
	config.Timeout, config.Logger = 5*time.Second, quiet{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// quiet drops what the driver logs of connections that are cut.
type quiet struct{}

func (quiet) Print(...any) {}

func (d database) open(c Config) (*sql.DB, error) {
	service := MariaDB
	if d.dialect == sqllock.PostgreSQL {
		service = PostgreSQL
	}
	return Open(service, c.Servers[0], Database)
}

// docentOnSQL is contrib/sqllock: a lease in a row.
func docentOnSQL(d database) Program {
	return func(_ context.Context, c Config) (func(string) (Lock, error), error) {
		db, client, err := d.sqllock(c)
		if err != nil {
			return nil, err
		}
		return func(name string) (Lock, error) {
			lock, err := sqllock.New(client, name)
			return locker{lock, func(ctx context.Context, h *recipes.Hold) error {
				return d.inTx(ctx, db, func(tx *sql.Tx) error {
					if err := lock.Guard(ctx, tx, h.Token()); err != nil {
						return err
					}
					_, err := tx.ExecContext(ctx, d.write, name)
					return err
				})
			}}, err
		}, nil
	}
}

func (d database) sqllock(c Config) (*sql.DB, *sqllock.Client, error) {
	db, err := d.open(c)
	if err != nil {
		return nil, nil, err
	}
	client, err := sqllock.NewClient(db, d.dialect, sqllock.WithTTL(c.Lease),
		sqllock.WithKeyTable(sqllock.KeyTable{Table: KeyTable}))
	return db, client, err
}

func (d database) inTx(ctx context.Context, db *sql.DB, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// transaction is sqllock's lock for the length of a transaction, which also writes.
func transaction(d database) Program {
	return func(_ context.Context, c Config) (func(string) (Lock, error), error) {
		db, client, err := d.sqllock(c)
		if err != nil {
			return nil, err
		}
		return func(name string) (Lock, error) {
			lock, err := sqllock.New(client, name)
			return txLock{d, db, lock}, err
		}, nil
	}
}

type txLock struct {
	d    database
	db   *sql.DB
	lock *sqllock.Lock
}

func (l txLock) Acquire(ctx context.Context) (held Held, err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	token, err := l.lock.InTx(ctx, tx)
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return &txHeld{txLock: l, tx: tx, token: token}, nil
}

type txHeld struct {
	txLock
	tx      *sql.Tx
	token   int64
	written bool
}

func (h *txHeld) Token() int64 { return h.token }

// Look makes a request, because only the database knows whether the transaction goes on.
func (h *txHeld) Look(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return stateOf(h.tx.QueryRowContext(ctx, "SELECT 1").Scan(new(int)) == nil)
}

// Write writes and commits, which also releases the lock.
func (h *txHeld) Write(ctx context.Context) error {
	h.written = true
	if _, err := h.tx.ExecContext(ctx, h.d.write, h.lock.Name()); err != nil {
		return errors.Join(err, h.tx.Rollback())
	}
	return h.tx.Commit()
}

func (h *txHeld) Release(context.Context) error {
	if h.written {
		return nil
	}
	return h.tx.Rollback()
}

// docentLock is a lock of contrib/sqllock without a token.
func docentLock(d database, lockOf func(*sqllock.Client, string) (recipes.Locker, error)) Program {
	return func(_ context.Context, c Config) (func(string) (Lock, error), error) {
		_, client, err := d.sqllock(c)
		if err != nil {
			return nil, err
		}
		return func(name string) (Lock, error) {
			lock, err := lockOf(client, name)
			return locker{Locker: lock}, err
		}, nil
	}
}

func sessionOf(c *sqllock.Client, name string) (recipes.Locker, error) {
	return sqllock.NewSessionLock(c, name)
}

func keyOf(c *sqllock.Client, name string) (recipes.Locker, error) {
	return sqllock.NewKeyLock(c, name)
}

// KeyTable is the table of the locks that are rows with a unique key.
const KeyTable = "key_locks"

// connectionLock is the lock of a connection: pg_advisory_lock, GET_LOCK. The program keeps the
// connection, and asks it whether it is alive.
func connectionLock(d database) Program {
	return func(_ context.Context, c Config) (func(string) (Lock, error), error) {
		db, err := d.open(c)
		if err != nil {
			return nil, err
		}
		return func(name string) (Lock, error) { return connLock{d, db, name}, nil }, nil
	}
}

type connLock struct {
	d    database
	db   *sql.DB
	name string
}

func (l connLock) Acquire(ctx context.Context) (Held, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := conn.QueryRowContext(ctx, l.d.lock, l.name).Scan(new(int)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return connHeld{l, conn}, nil
}

type connHeld struct {
	connLock
	conn *sql.Conn
}

func (connHeld) Token() int64 { return 0 }

func (h connHeld) Look(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return stateOf(h.conn.QueryRowContext(ctx, "SELECT 1").Scan(new(int)) == nil)
}

func (h connHeld) Release(ctx context.Context) error {
	err := h.conn.QueryRowContext(ctx, h.d.unlock, h.name).Scan(new(int))
	return errors.Join(err, h.conn.Close())
}
