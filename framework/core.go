package framework

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/connstr"
	"github.com/docent-zk/docent/framework/internal/logqueue"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
)

// core is a client without its view. It keeps one session after another.
type core struct {
	cfg    config
	chroot string
	states states
	logs   logqueue.Queue // entries of cfg.log

	ctx        context.Context // ends with ErrClosed when the client is closed
	cancel     context.CancelCauseFunc
	grace      context.Context // ends a connect timeout later; no request is made after that
	endGrace   context.CancelFunc
	stopped    chan struct{}  // closed by run
	background sync.WaitGroup // ends of sessions, checks of watches, and cleanups
	reports    sync.WaitGroup // of listeners, begun before their session's end is over

	noContainers atomic.Bool // the servers do not know containers
	noWatches    atomic.Bool // the servers do not know persistent watches
	watchers     watchers
	gauges       gauges
	locals       sync.Map // see bridge.Client.Locals

	mu           sync.Mutex
	servers      []string
	current      *session                // nil while there is none
	conn         *conn.Conn              // of the current session, or of the attempt to get one
	conns        map[*conn.Conn]struct{} // all that may still connect, also of former sessions
	refused      error                   // the reason, while the servers refuse a session
	onReplaced   map[int]func()          // called when there is another session
	replacements int                     // number of calls of whenReplaced; a key of onReplaced
	changed      chan struct{}           // closed and replaced when one of these changes
}

func newCore(spec connstr.Spec, cfg config) *core {
	c := &core{
		cfg: cfg, chroot: spec.Chroot, servers: spec.Servers,
		stopped: make(chan struct{}), changed: make(chan struct{}),
	}
	c.cfg.log = c.logs.Logger(cfg.log)
	c.conns, c.onReplaced = map[*conn.Conn]struct{}{}, map[int]func(){}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.grace, c.endGrace = context.WithCancel(context.Background())
	c.states.log = c.logState
	if _, none := cfg.metrics.(unmeasured); !none {
		c.states.Listen(c.measureState)
	}
	c.offerGauges()
	return c
}

// logState logs a change of state.
func (c *core) logState(change StateChange) {
	c.cfg.log.Info("state", zap.Stringer("state", change.State), logfield.Session(change.Session),
		zap.Error(change.Cause))
}

// levelOf returns the log level for the end of a session. An end by Close is intended.
func levelOf(reason error) zapcore.Level {
	if errors.Is(reason, ErrClosed) {
		return zap.InfoLevel
	}
	return zap.WarnLevel
}

// run opens sessions until the client is closed.
func (c *core) run() {
	defer close(c.stopped)
	for failures := 0; c.ctx.Err() == nil; {
		begun := time.Now()
		s, err := c.open()
		if err != nil {
			c.refuse(err)
			failures++
			c.pause(failures)
			continue
		}
		failures = 0
		c.publish(s, nil)
		s.supervise(c.ctx)
		c.publish(nil, refusal(s.reason()))
		c.cfg.log.Log(levelOf(s.reason()), "session ended", logfield.Session(s.id()), zap.Error(s.reason()))
		c.background.Go(s.close)
		if time.Since(begun) < reopenPause || refusal(s.reason()) != nil {
			c.pause(1)
		}
	}
}

// There is a pause between attempts to get a session that the servers refuse or end at once. It
// grows with the number of failures. A new session is a transaction of the whole ensemble. If its
// credential was refused, it stays on the servers until its timeout.
const (
	reopenPause    = time.Second
	maxReopenPause = 5 * time.Second
)

func (c *core) pause(failures int) {
	sleep(min(time.Duration(failures)*reopenPause, maxReopenPause), c.ctx.Done(), nil)
}

// sleep waits for d, or until one or other is closed. Either channel may be nil.
func sleep(d time.Duration, one, other <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-one:
	case <-other:
	}
}

// open returns a new session. It waits for a server without a time limit.
func (c *core) open() (*session, error) {
	s := newSession(c)
	s.random = c.newRandom()
	servers := c.addresses()
	s.conn = conn.New(conn.Config{
		Servers:        servers,
		SessionTimeout: c.cfg.sessionTimeout,
		ConnectTimeout: c.cfg.connectTimeout,
		Resolve:        c.cfg.resolve,
		Dial:           c.cfg.dial,
		TLS:            c.cfg.tls,
		Logger:         c.cfg.log,
		Credentials:    c.cfg.auth,
		Random:         c.newRandom(),
		Handler:        handler{s},
	})
	c.connecting(s.conn, servers)
	s.conn.Start()
	if err := s.open(c.ctx); err != nil {
		s.end(err)
		c.background.Go(s.close)
		return nil, err
	}
	c.background.Go(s.verifyWatches)
	c.cfg.log.Info("session established", logfield.Session(s.id()), zap.Duration("timeout", s.timeout()))
	if asked := c.cfg.sessionTimeout; s.timeout() != asked {
		c.cfg.log.Warn("the servers grant another session timeout than was asked for", zap.Duration("asked", asked),
			zap.Duration("granted", s.timeout()))
	}
	return s, nil
}

// newRandom returns a source of random numbers for one goroutine. If two goroutines drew from one
// source at the same instant, their order would depend on the scheduler, and simulations would not
// repeat.
func (c *core) newRandom() func(n int64) int64 {
	return rand.New(rand.NewPCG(uint64(c.cfg.random(math.MaxInt64)), 0)).Int64N
}

func (c *core) addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}

// connecting registers a connection that SetServers must notify. If the servers have changed since
// the connection got them, it sets them again.
func (c *core) connecting(conn *conn.Conn, servers []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	c.conns[conn] = struct{}{}
	if !slices.Equal(servers, c.servers) {
		conn.SetServers(c.servers)
	}
}

// forget removes a connection that SetServers need not notify any more.
func (c *core) forget(conn *conn.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// setServers replaces the servers, unless the new ones are the same.
func (c *core) setServers(servers []string) {
	shuffled := conn.Shuffle(servers, c.cfg.random)
	for _, conn := range c.replaceServers(servers, shuffled) {
		conn.LeaveRemoved()
	}
}

// replaceServers returns the connections that must leave a server that is not in the list.
func (c *core) replaceServers(servers, shuffled []string) []*conn.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(slices.Sorted(slices.Values(servers)), slices.Sorted(slices.Values(c.servers))) {
		return nil
	}
	c.servers = servers
	for conn := range c.conns {
		conn.SetServers(shuffled)
	}
	return slices.Collect(maps.Keys(c.conns))
}

func (c *core) publish(s *session, refused error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = s
	if s != nil {
		for _, fn := range c.onReplaced {
			fn()
		}
		clear(c.onReplaced)
	}
	c.setRefusedLocked(refused)
}

// whenReplaced calls fn at once if there is a session, and otherwise when there is one. After
// forget it does not call fn any more. fn must not wait for anything.
func (c *core) whenReplaced(fn func()) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		fn()
		return func() {}
	}
	c.replacements++
	number := c.replacements
	c.onReplaced[number] = fn
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.onReplaced, number)
	}
}

// refuse logs that there is no session. If the servers refused a credential, waiting operations
// fail.
func (c *core) refuse(err error) {
	if c.ctx.Err() != nil {
		return
	}
	c.cfg.log.Warn("no session", zap.Error(err))
	c.mu.Lock()
	defer c.mu.Unlock()
	if refused := refusal(err); refused != nil {
		c.setRefusedLocked(refused)
	}
}

// refusal returns the error with which waiting operations fail at once, or nil if the cause may
// pass.
func refusal(cause error) error {
	if errors.Is(cause, ErrAuthFailed) {
		return ErrAuthFailed
	}
	return nil
}

func (c *core) setRefusedLocked(err error) {
	c.refused = err
	if err != nil {
		c.states.set(StateChange{State: AuthFailed, Cause: err})
	}
	c.notifyLocked()
}

// notifyLocked wakes the goroutines that wait for a change.
func (c *core) notifyLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// live returns the current session if it lives. Otherwise err is the reason if there will be no
// session, or nil if there may be one after the next change.
func (c *core) live() (s *session, changed <-chan struct{}, err error) {
	c.mu.Lock()
	s, changed, err = c.current, c.changed, c.refused
	c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return nil, changed, ErrClosed
	case s != nil && s.check() == nil:
		return s, changed, nil
	}
	return nil, changed, err
}

// session waits for a live session until ctx ends and, unless timeout is zero, for at most timeout.
func (c *core) session(ctx context.Context, timeout time.Duration) (*session, error) {
	var expired <-chan time.Time // set when there is a reason to wait
	for {
		s, changed, err := c.live()
		switch {
		case ctx.Err() != nil:
			return nil, notApplied(fmt.Errorf("%w: %w", ctxerr.Of(ctx), c.connectionError()))
		case err != nil:
			return nil, notApplied(err)
		case s != nil:
			return s, nil
		case timeout > 0 && expired == nil:
			timer := time.NewTimer(timeout)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-c.ctx.Done():
		case <-expired:
			return nil, transient(NotApplied, c.connectionError())
		}
	}
}

// connection returns the connection of the current session, or of the attempt to get one, or nil
// before the first attempt.
func (c *core) connection() *conn.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// connectionError returns why there is no connection.
func (c *core) connectionError() error { return notConnected(c.connection()) }

// server returns the server of the current connection, or "".
func (c *core) server() string {
	if conn := c.connection(); conn != nil {
		return conn.Server()
	}
	return ""
}

// waitConnected waits until the current session has a connection.
func (c *core) waitConnected(ctx context.Context) error {
	for {
		s, err := c.session(ctx, 0)
		if err != nil {
			return err
		}
		if err := s.await(ctx, func() bool { return s.link && s.admitted }); err == nil {
			return nil
		}
	}
}

// openContext is whileOpen that costs nothing until the context ends or is waited for. Most operations
// need no second attempt, and do not wait for one.
type openContext struct {
	context.Context // of the caller
	core            *core
	once            sync.Once
	both            atomic.Pointer[bothContexts] // nil: not needed yet
}

// bothContexts is the result of whileOpen.
type bothContexts struct {
	context.Context
	stop func()
}

func (c *openContext) needed() context.Context {
	c.once.Do(func() {
		ctx, stop := c.core.whileOpen(c.Context)
		c.both.Store(&bothContexts{ctx, stop})
	})
	return c.both.Load()
}

// stop frees the resources of the context that needed has returned, and ends that context. If needed
// was not called, there are none, and stop does nothing.
func (c *openContext) stop() {
	if both := c.both.Load(); both != nil {
		both.stop()
	}
}

func (c *openContext) Done() <-chan struct{} { return c.needed().Done() }

func (c *openContext) Err() error {
	if c.both.Load() == nil && c.Context.Err() == nil && c.core.ctx.Err() == nil {
		return nil
	}
	return c.needed().Err()
}

// Value also serves context.Cause, which asks for the context that was canceled.
func (c *openContext) Value(key any) any {
	if both := c.both.Load(); both != nil {
		return both.Value(key)
	}
	return c.Context.Value(key)
}

// whileOpen returns a context that ends with ctx, and when the client is closed.
func (c *core) whileOpen(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// spawn calls fn in a goroutine that close waits for. It reports false if the client is closed.
func (c *core) spawn(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.background.Go(fn)
	return true
}

// listenerTimeout limits how long Close waits for listeners that do not return.
const listenerTimeout = time.Second

func (c *core) close() {
	c.mu.Lock()
	c.cancel(ErrClosed)
	c.mu.Unlock()
	enough := time.AfterFunc(c.cfg.connectTimeout, c.endGrace)
	<-c.stopped
	c.background.Wait()
	c.reports.Wait()
	enough.Stop()
	c.endGrace()
	begun := time.Now()
	c.watchers.close(listenerTimeout)
	c.states.close(max(listenerTimeout-time.Since(begun), 0))
	c.gauges.remove()
	c.logs.Close(max(listenerTimeout-time.Since(begun), 0))
}

func isNoNode(err error) bool { return errors.Is(err, zk.ErrNoNode) }
