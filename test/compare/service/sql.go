package service

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/test/compare/peer"
)

// sqlServer is a server of a database.
type sqlServer struct {
	process
	service string
	dialect sqllock.Dialect
	addr    string
	install func() error // writes the data folder of a new server
	root    *sql.DB      // outside of the database of the locks
	admin   *sql.DB
}

func (s *sqlServer) data() string { return filepath.Join(s.dir, "data") }

// newSQL makes the folder of a server.
func newSQL(service, account string, dialect sqllock.Dialect, root string, clock bool) (s *sqlServer, err error) {
	ports, err := takePorts(1)
	if err != nil {
		return nil, err
	}
	s = &sqlServer{service: service, dialect: dialect, addr: ports[0].Addr(),
		process: process{account: account, ports: ports}}
	if s.dir, err = folder(service); err != nil {
		return nil, err
	}
	if err = own(s.dir, account); err == nil && clock {
		s.clock, err = NewClock(s.dir)
	}
	if err == nil {
		s.root, err = peer.Open(service, s.addr, root)
	}
	if err == nil {
		s.admin, err = peer.Open(service, s.addr, peer.Database)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, db := range []*sql.DB{s.root, s.admin} {
		db.SetMaxIdleConns(-1) // a server that is killed may end an idle connection with an error of its own
	}
	return s, nil
}

// begin starts the server and waits until it answers. A server that was killed may refuse to start until
// all its processes have ended: then it is started again.
func (s *sqlServer) begin(ctx context.Context) error {
	began := time.Now()
	for {
		if err := s.start(); err != nil {
			return err
		}
		err := await(ctx, func() error { return errors.Join(s.alive(), s.root.PingContext(ctx)) })
		if !errors.Is(err, errDead) || ctx.Err() != nil || time.Since(began) > time.Minute {
			return err
		}
		s.kill()
	}
}

// create starts a new server, and makes the tables in it.
func (s *sqlServer) create(ctx context.Context) error {
	if err := s.install(); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	locks, err := s.dialect.CreateTable(sqllock.DefaultTable)
	if err != nil {
		return err
	}
	if _, err := s.root.ExecContext(ctx, "CREATE DATABASE "+peer.Database); err != nil {
		return err
	}
	time := map[sqllock.Dialect]string{sqllock.PostgreSQL: "timestamptz", sqllock.MySQL: "DATETIME(6)"}[s.dialect]
	keys := fmt.Sprintf("CREATE TABLE %s (name varchar(255) PRIMARY KEY, holder varchar(255) NOT NULL, expires_at %s)",
		peer.KeyTable, time)
	for _, statement := range []string{locks, keys, "CREATE TABLE data (name varchar(255))"} {
		if _, err := s.admin.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlServer) Restart(ctx context.Context, wipe bool) error {
	s.kill()
	if !wipe {
		return s.begin(ctx)
	}
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	return s.create(ctx)
}

func (s *sqlServer) SetClock() error { return s.clock.Set(Jump) }

// Delete takes the lock from its holder. The lock of a connection or a transaction is taken by ending
// the connection.
func (s *sqlServer) Delete(ctx context.Context, lock string) error {
	if err := s.endConnection(ctx, lock); err != nil {
		return err
	}
	for _, statement := range []string{
		"UPDATE " + sqllock.DefaultTable + " SET owner = NULL WHERE name = '" + lock + "'",
		"DELETE FROM " + peer.KeyTable + " WHERE name = '" + lock + "'",
	} {
		if _, err := s.admin.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// sessionKey returns what the database calls the SessionLock of a lock.
func (s *sqlServer) sessionKey(lock string) (key string, err error) {
	client, err := sqllock.NewClient(s.admin, s.dialect)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	session, err := sqllock.NewSessionLock(client, lock)
	return session.Key(), err
}

func (s *sqlServer) endConnection(ctx context.Context, lock string) error {
	key, err := s.sessionKey(lock)
	if err != nil {
		return err
	}
	if s.dialect == sqllock.PostgreSQL {
		_, err := s.admin.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND datname = current_database() AND (state = 'idle in transaction'
			OR pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND (objid::bigint =
				hashtext('`+lock+`')::bigint & 4294967295 OR classid::bigint << 32 | objid::bigint = `+key+`)))`)
		return err
	}
	var id sql.NullInt64
	holder := "SELECT COALESCE(IS_USED_LOCK('" + lock + "'), IS_USED_LOCK('" + key + "'))"
	if err := s.admin.QueryRowContext(ctx, holder).Scan(&id); err != nil {
		return err
	}
	if !id.Valid {
		err := s.admin.QueryRowContext(ctx, `SELECT trx_mysql_thread_id FROM information_schema.innodb_trx
			ORDER BY trx_started LIMIT 1`).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	_, err = s.admin.ExecContext(ctx, fmt.Sprint("KILL ", id.Int64))
	if failed := (&mysql.MySQLError{}); errors.As(err, &failed) && failed.Number == noSuchThread {
		return nil
	}
	return err
}

// noSuchThread is the error of MariaDB for a connection that has ended.
const noSuchThread = 1094

func (s *sqlServer) Close() (err error) {
	s.kill()
	s.ports.close()
	for _, db := range []*sql.DB{s.root, s.admin} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// oneSQL is a server without a replica.
type oneSQL struct{ *sqlServer }

func (s oneSQL) Addrs() []string { return []string{s.addr} }

func (s oneSQL) Lag(context.Context) error { return nil }

func (s oneSQL) Failover(context.Context) error { return errNoReplica }

var errNoReplica = unsupported("no replica is set up for this service")

// mariaDB is a server of MariaDB.
type mariaDB struct{ oneSQL }

func startMariaDB(ctx context.Context, o Options) (Service, error) {
	if o.Replicas {
		return nil, errNoReplica
	}
	install, err := program("mariadb-install-db", "mariadb-server", "/usr/bin")
	if err != nil {
		return nil, err
	}
	server, err := program("mariadbd", "mariadb-server", "/usr/sbin")
	if err != nil {
		return nil, err
	}
	s, err := newSQL(peer.MariaDB, "mysql", sqllock.MySQL, "", o.Clock)
	if err != nil {
		return nil, err
	}
	s.install = func() error {
		return s.run(install, "--no-defaults", "--datadir="+s.data(), "--auth-root-authentication-method=normal",
			"--skip-test-db")
	}
	s.command = []string{server, "--no-defaults", "--datadir=" + s.data(), "--bind-address=127.0.0.1",
		"--port=" + portOf(s.addr), "--socket=" + s.dir + "/socket", "--pid-file=" + s.dir + "/pid",
		"--innodb-flush-log-at-trx-commit=1", "--max-connections=300", "--skip-name-resolve"}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return mariaDB{oneSQL{s}}, nil
}

func (s mariaDB) Requests(ctx context.Context) (n int64, err error) {
	var name, text string
	if err := s.admin.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Queries'").Scan(&name, &text); err != nil {
		return 0, err
	}
	return number(text)
}

// postgreSQL is a server of PostgreSQL, perhaps with a replica that the server does not wait for.
type postgreSQL struct {
	oneSQL
	replica *sqlServer // nil: none
	link    *Link      // to the replica

	mu   sync.Mutex
	addr string // of the server that answers
}

func startPostgreSQL(ctx context.Context, o Options) (Service, error) {
	s, err := newPostgreSQL(o)
	if err != nil {
		return nil, err
	}
	p := &postgreSQL{oneSQL: oneSQL{s}, addr: s.addr}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if o.Replicas {
		if err := p.replicate(ctx); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// postgreSQLProgram returns the path of a program. What Debian has in PATH chooses among versions, and
// may find none. A program looks for its files from its real place.
func postgreSQLProgram(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	slices.Sort(found)
	if len(found) > 0 {
		return found[len(found)-1], nil
	}
	path, err := program(name, "postgresql")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func newPostgreSQL(o Options) (*sqlServer, error) {
	initdb, err := postgreSQLProgram("initdb")
	if err != nil {
		return nil, err
	}
	server, err := postgreSQLProgram("postgres")
	if err != nil {
		return nil, err
	}
	s, err := newSQL(peer.PostgreSQL, "postgres", sqllock.PostgreSQL, "postgres", o.Clock)
	if err != nil {
		return nil, err
	}
	s.install = func() error {
		return s.run(initdb, "-D", s.data(), "-U", "docent", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	}
	s.command = []string{server, "-D", s.data(), "-h", "127.0.0.1", "-p", portOf(s.addr), "-k", "",
		"-c", "max_connections=300"}
	if o.Count {
		s.command = append(s.command, "-c", "log_statement=all")
	}
	return s, nil
}

// replicate starts a replica.
func (p *postgreSQL) replicate(ctx context.Context) (err error) {
	if p.link, err = NewLink(func() string { return p.sqlServer.addr }); err != nil {
		return err
	}
	if p.replica, err = newPostgreSQL(Options{}); err != nil {
		return err
	}
	backup, err := postgreSQLProgram("pg_basebackup")
	if err != nil {
		return err
	}
	if err := p.replica.run(backup, "-h", "127.0.0.1", "-p", portOf(p.link.Addr()), "-U", "docent",
		"-D", p.replica.data(), "-R", "-c", "fast", "--no-sync"); err != nil {
		return err
	}
	return p.replica.begin(ctx)
}

func (p *postgreSQL) Addrs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []string{p.addr}
}

// Lag cuts the link to the replica, when it has everything.
func (p *postgreSQL) Lag(ctx context.Context) error {
	if p.replica == nil {
		return nil
	}
	err := await(ctx, func() error {
		var written, replayed string
		if err := p.root.QueryRowContext(ctx, "SELECT pg_current_wal_insert_lsn()").Scan(&written); err != nil {
			return err
		}
		err := p.replica.root.QueryRowContext(ctx, "SELECT pg_last_wal_replay_lsn()").Scan(&replayed)
		if err == nil && written != replayed {
			err = errBehind
		}
		return err
	})
	p.link.Cut(true)
	return err
}

func (p *postgreSQL) Failover(ctx context.Context) error {
	p.kill()
	var promoted bool
	if err := p.replica.root.QueryRowContext(ctx, "SELECT pg_promote()").Scan(&promoted); err != nil || !promoted {
		return errors.Join(err, errors.New("the replica was not promoted"))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addr = p.replica.addr
	return nil
}

// Requests counts the statements in the log.
func (p *postgreSQL) Requests(context.Context) (int64, error) {
	text, err := os.ReadFile(p.log())
	return int64(strings.Count(string(text), "LOG:  statement:") + strings.Count(string(text), "LOG:  execute ")), err
}

func (p *postgreSQL) Close() error {
	err := p.oneSQL.Close()
	if p.replica != nil {
		err = errors.Join(err, p.replica.Close())
	}
	if p.link != nil {
		p.link.Close()
	}
	return err
}
