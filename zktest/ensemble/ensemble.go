package ensemble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// startTimeout bounds Start, which has no context. It is long enough for five servers on a busy
// machine.
const startTimeout = 2 * time.Minute

// TB is the part of a test that [Start] needs. *testing.T and *testing.B implement it.
type TB interface {
	Helper()
	Name() string
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Ensemble is a set of servers that were started together. Its methods may be called from any
// goroutine.
type Ensemble struct {
	dir     string
	ports   []ports
	servers []*Server

	closing  sync.Once
	closeErr error // written inside closing
}

// Start starts 1, 3 or 5 servers, waits until all of them serve, and closes them when the test
// ends. If the test has failed, the ends of their logs are logged. If the servers cannot be
// started, the test fails at once.
func Start(t TB, servers int, opts ...Option) *Ensemble {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	e, err := New(ctx, servers, opts...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil // in case Fatalf of a TB returns
	}
	t.Cleanup(func() { e.finish(t) })
	return e
}

// finish logs and closes the servers at the end of a test.
func (e *Ensemble) finish(t TB) {
	t.Helper()
	if t.Failed() {
		var logs strings.Builder
		e.Logs(&logs, tailInTests)
		t.Logf("ZooKeeper's logs at the end of %s:\n%s", t.Name(), &logs)
	}
	if err := e.Close(); err != nil {
		t.Errorf("%v", err)
	}
}

// New is [Start] for programs and for TestMain. It returns when all servers serve. An error leaves
// no process and no file behind, and contains the end of the log that explains it. ctx bounds only
// the start; the servers run until Close.
func New(ctx context.Context, servers int, opts ...Option) (*Ensemble, error) {
	c, err := newConfig(servers, opts)
	if err != nil {
		return nil, err
	}
	d, err := c.find()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		e, err := start(ctx, c, d)
		if err == nil {
			return e, nil
		}
		if !errors.Is(err, errPortTaken) || attempt == attempts {
			return nil, err
		}
	}
}

func (c *config) find() (Distribution, error) {
	if c.distribution != nil {
		return *c.distribution, nil
	}
	return Find()
}

// start makes one attempt to start all servers, with new ports.
func start(ctx context.Context, c config, d Distribution) (*Ensemble, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ensemble: start: %w", err)
	}
	e, err := prepare(c, d)
	if err != nil {
		return nil, fmt.Errorf("ensemble: prepare: %w", err)
	}
	if err := e.boot(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// prepare writes all files and starts nothing.
func prepare(c config, d Distribution) (*Ensemble, error) {
	all, err := pickPorts(c.servers)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "zookeeper-ensemble-")
	if err != nil {
		release(all)
		return nil, err
	}
	e := &Ensemble{dir: dir, ports: all}
	for i := range all {
		s, err := prepareServer(c, d, dir, i+1, all)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.servers = append(e.servers, s)
	}
	return e, nil
}

func prepareServer(c config, d Distribution, root string, id int, all []ports) (*Server, error) {
	dir := filepath.Join(root, "server-"+strconv.Itoa(id))
	s := &Server{
		id:   id,
		addr: all[id-1].client.Addr(),
		dir:  dir,
		java: d.Java,
		args: arguments(c, d, dir),
		env:  c.environment[id],
	}
	cfg, err := zooCfg(c, id, s.dataDir(), all)
	if err != nil {
		return nil, err
	}
	return s, writeFiles(dir, map[string]string{
		"zoo.cfg":          cfg,
		"logback.xml":      logback,
		"log4j.properties": log4j,
		"data/myid":        strconv.Itoa(id),
	})
}

// boot starts all servers at once, because no server of an ensemble serves alone.
func (e *Ensemble) boot(ctx context.Context) error {
	for _, s := range e.servers {
		if _, err := s.launch(); err != nil {
			return s.annotate(err)
		}
	}
	if err := poll(ctx, e.booted); err != nil {
		return fmt.Errorf("ensemble: start: %w%s", err, e.explain(err))
	}
	return nil
}

// booted is ready, except that it fails when a server could not get a port. Such a server might
// retry forever.
func (e *Ensemble) booted(ctx context.Context) (bool, error) {
	done, err := e.ready(ctx)
	if done && err == nil {
		return true, nil
	}
	for _, s := range e.servers {
		if p, _ := s.current(); p != nil && s.lostPort(p) {
			return true, fmt.Errorf("server %d: %w", s.id, errPortTaken)
		}
	}
	return done, err
}

// explain returns the logs of a failed start, unless err already has the one that matters.
func (e *Ensemble) explain(err error) string {
	if errors.Is(err, errDied) {
		return ""
	}
	var logs strings.Builder
	e.Logs(&logs, tailInErrors)
	return "\n" + logs.String()
}

// Close kills all servers, waits until their processes have ended, and removes the folder with
// their data and logs. Further calls return the result of the first. Servers of a closed ensemble
// cannot be started again.
func (e *Ensemble) Close() error {
	e.closing.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *Ensemble) close() error {
	var errs []error
	for _, s := range e.servers {
		errs = append(errs, s.close())
	}
	release(e.ports)
	if err := os.RemoveAll(e.dir); err != nil {
		errs = append(errs, fmt.Errorf("ensemble: remove the data: %w", err))
	}
	return errors.Join(errs...)
}

// Connect returns the connect string for clients: the addresses of all servers, running or not,
// separated by commas.
func (e *Ensemble) Connect() string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr
	}
	return strings.Join(addrs, ",")
}

// Servers returns all servers, running or not, by number.
func (e *Ensemble) Servers() []*Server {
	return append([]*Server(nil), e.servers...)
}
