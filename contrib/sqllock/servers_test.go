package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/port"
)

// server is a database server of the tests.
type server struct {
	dialect sqllock.Dialect
	addr    string
	place   *place
	command []string
	kill    func()
	// connector returns a connector to an address, for a database.
	connector func(addr, database string) (driver.Connector, error)
	reading   sync.Mutex // see site.untilRowLock
}

// servers are started once, at the first use.
var servers = map[sqllock.Dialect]func() (*server, error){
	sqllock.PostgreSQL: sync.OnceValues(startPostgreSQL),
	sqllock.MySQL:      sync.OnceValues(startMariaDB),
}

var started struct {
	sync.Mutex
	all []*server
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // the tests mostly wait
		panic(err)
	}
	code := m.Run()
	for _, s := range started.all {
		s.stop()
	}
	leaks.Exit(code)
}

// serverOf returns the server of a dialect.
func serverOf(t testing.TB, d sqllock.Dialect) *server {
	t.Helper()
	s, err := servers[d]()
	require.NoError(t, err, "scripts/deps.sh sql installs PostgreSQL and MariaDB")
	return s
}

// binary returns the path of a program that may be outside of PATH.
func binary(name string, patterns ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		// PostgreSQL looks for its files from its real place.
		return filepath.EvalSymlinks(path)
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		slices.Sort(found)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// place is the directory of a server, and the user that it runs as: these servers refuse to run as
// root.
type place struct {
	dir  string
	attr *syscall.SysProcAttr
}

func newPlace(account string) (*place, error) {
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, attr: &syscall.SysProcAttr{Setpgid: true}}
	if os.Getuid() != 0 {
		return p, nil
	}
	who, err := user.Lookup(account)
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	p.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return p, os.Chown(dir, uid, gid)
}

// prepare gives a command a directory for temporary files of its own: MariaDB deletes those of other
// servers.
func (p *place) prepare(cmd *exec.Cmd) {
	cmd.Dir, cmd.SysProcAttr, cmd.Env = p.dir, p.attr, append(os.Environ(), "TMPDIR="+p.dir)
}

func (p *place) remove() { _ = os.RemoveAll(p.dir) }

// run runs a command to its end.
func (p *place) run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	p.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// serve runs a server until kill is called or this process ends: then the standard input of the shell
// is closed.
func (p *place) serve(command []string) (kill func(), err error) {
	cmd := exec.Command("sh", append([]string{"-c", `"$@" & cat; kill -9 $!; wait`, "sh"}, command...)...)
	out, err := os.Create(p.log())
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.prepare(cmd)
	cmd.Stdout, cmd.Stderr = out, out
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}

// log returns the file of what the server prints.
func (p *place) log() string { return filepath.Join(p.dir, "log") }

func startPostgreSQL() (*server, error) {
	initdb, err := binary("initdb", "/usr/lib/postgresql/*/bin")
	if err != nil {
		return nil, err
	}
	postgres, err := binary("postgres", "/usr/lib/postgresql/*/bin")
	if err != nil {
		return nil, err
	}
	p, err := newPlace("postgres")
	if err != nil {
		return nil, err
	}
	if err := p.run(initdb, "-D", p.dir+"/data", "-U", "docent", "-A", "trust", "-E", "UTF8",
		"--locale=C", "--no-sync"); err != nil {
		p.remove()
		return nil, err
	}
	return p.await(sqllock.PostgreSQL, func(port string) []string {
		return []string{postgres, "-D", p.dir + "/data", "-h", "127.0.0.1", "-p", port, "-k", "",
			"-c", "fsync=off", "-c", "max_connections=300"}
	}, connectPostgreSQL)
}

func startMariaDB() (*server, error) {
	install, err := binary("mariadb-install-db", "/usr/bin")
	if err != nil {
		return nil, err
	}
	mariadbd, err := binary("mariadbd", "/usr/sbin")
	if err != nil {
		return nil, err
	}
	p, err := newPlace("mysql")
	if err != nil {
		return nil, err
	}
	if err := p.run(install, "--no-defaults", "--datadir="+p.dir+"/data",
		"--auth-root-authentication-method=normal", "--skip-test-db"); err != nil {
		p.remove()
		return nil, err
	}
	return p.await(sqllock.MySQL, func(port string) []string {
		return []string{mariadbd, "--no-defaults", "--datadir=" + p.dir + "/data", "--bind-address=127.0.0.1",
			"--port=" + port, "--socket=" + p.dir + "/socket", "--pid-file=" + p.dir + "/pid",
			"--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--debug-no-sync",
			"--max-connections=300", "--skip-name-resolve"}
	}, connectMariaDB)
}

// await starts a server and waits until it answers.
func (p *place) await(
	d sqllock.Dialect, args func(port string) []string, connector func(addr, database string) (driver.Connector, error),
) (*server, error) {
	kept, err := port.New() // until the process of the tests ends
	if err != nil {
		return nil, err
	}
	command := args(strconv.Itoa(kept.Number()))
	s := &server{dialect: d, addr: kept.Addr(), place: p, command: command, connector: connector}
	if err := s.start(); err != nil {
		s.stop()
		return nil, err
	}
	started.Lock()
	defer started.Unlock()
	started.all = append(started.all, s)
	return s, nil
}

// start starts the server and waits until it answers. A server that was killed may refuse to start
// until all its processes have ended: then it is started again.
func (s *server) start() (err error) {
	db, err := s.open(s.addr, "")
	if err != nil {
		return err
	}
	defer db.Close()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); s.kill() {
		if s.kill, err = s.place.serve(s.command); err != nil {
			return err
		}
		for again := time.Now().Add(20 * time.Second); time.Now().Before(again); time.Sleep(20 * time.Millisecond) {
			if err = db.Ping(); err == nil {
				return nil
			}
		}
	}
	out, _ := os.ReadFile(s.place.log())
	return fmt.Errorf("the server does not answer: %w: %s", err, out)
}

func (s *server) stop() {
	if s.kill != nil {
		s.kill()
	}
	s.place.remove()
}

func connectPostgreSQL(addr, database string) (driver.Connector, error) {
	if database == "" {
		database = "postgres"
	}
	config, err := configPostgreSQL(addr, database)
	if err != nil {
		return nil, err
	}
	return stdlib.GetConnector(*config), nil
}

func configPostgreSQL(addr, database string) (*pgx.ConnConfig, error) {
	return pgx.ParseConfig("postgres://docent@" + addr + "/" + database + "?sslmode=disable")
}

func connectMariaDB(addr, database string) (driver.Connector, error) {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "tcp", addr, database
	config.Logger = quiet{}
	return mysql.NewConnector(config)
}

// quiet drops what the driver logs of connections that are cut.
type quiet struct{}

func (quiet) Print(...any) {}

func (s *server) open(addr, database string) (*sql.DB, error) {
	connector, err := s.connector(addr, database)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

var databases atomic.Int64

// database makes a database with a table of locks. It returns its name, and a connection of an
// operator.
func (s *server) database(t testing.TB) (string, *sql.DB) {
	t.Helper()
	name := fmt.Sprintf("d%d", databases.Add(1))
	root, err := s.open(s.addr, "")
	require.NoError(t, err)
	defer root.Close()
	_, err = root.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	db := s.connect(t, s.addr, name)
	text, err := s.dialect.CreateTable(sqllock.DefaultTable)
	require.NoError(t, err)
	_, err = db.Exec(text)
	require.NoError(t, err)
	return name, db
}

func (s *server) connect(t testing.TB, addr, database string) *sql.DB {
	t.Helper()
	db, err := s.open(addr, database)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// each runs a test with each dialect, at the same time as other tests.
func each(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	t.Parallel()
	for d := range servers {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			test(t, serverOf(t, d))
		})
	}
}

// cable is a TCP proxy that can be cut: then it lets nothing through, and closes no connection.
type cable struct {
	listener net.Listener
	target   string
	ctx      context.Context
	end      context.CancelFunc
	busy     sync.WaitGroup

	mu    sync.Mutex
	whole chan struct{} // closed unless the cable is cut
}

func newCable(t testing.TB, target string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: l, target: target, whole: make(chan struct{})}
	close(c.whole)
	c.ctx, c.end = context.WithCancel(context.Background())
	c.busy.Go(c.serve)
	t.Cleanup(c.stop)
	return c
}

// stop closes the connections, and has new ones refused.
func (c *cable) stop() {
	_ = c.listener.Close()
	c.end()
	c.busy.Wait()
}

func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) cut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cut {
		c.whole = make(chan struct{})
	} else {
		close(c.whole)
	}
}

// pass waits until the cable is whole.
func (c *cable) pass() error {
	c.mu.Lock()
	whole := c.whole
	c.mu.Unlock()
	select {
	case <-whole:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (c *cable) serve() {
	for {
		from, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.busy.Go(func() {
			defer from.Close()
			if c.pass() != nil {
				return
			}
			to, err := net.Dial("tcp", c.target)
			if err != nil {
				return
			}
			defer to.Close()
			defer context.AfterFunc(c.ctx, func() { from.Close(); to.Close() })()
			done := make(chan struct{})
			go func() { defer close(done); c.copy(to, from) }()
			c.copy(from, to)
			<-done
		})
	}
}

// copy copies until either end is closed, and then closes both.
func (c *cable) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if c.pass() != nil {
			return
		}
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}
