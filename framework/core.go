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
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
)

// core is a client without the view from which it is used: it keeps one session after the other.
type core struct {
	cfg    config
	chroot string
	states states

	ctx        context.Context // ends with ErrClosed when the client is closed
	cancel     context.CancelCauseFunc
	grace      context.Context // ends a connect timeout later: what the servers are still told must be told by then
	endGrace   context.CancelFunc
	stopped    chan struct{}  // closed by run
	background sync.WaitGroup // retiring sessions, audits of watches, and clean-ups

	noContainers atomic.Bool // the servers do not know containers

	mu           sync.Mutex
	servers      []string
	current      *session                // nil while there is none
	conn         *conn.Conn              // of the current session, or of the attempt to get one
	conns        map[*conn.Conn]struct{} // those that may still connect, of former sessions too
	refused      error                   // why no session is to be had, while that is certain
	onReplaced   map[int]func()          // to be called when there is another session
	replacements int                     // how many there have been
	changed      chan struct{}           // closed, and replaced, whenever one of these changes
}

func newCore(spec connstr.Spec, cfg config) *core {
	c := &core{cfg: cfg, chroot: spec.Chroot, servers: spec.Servers, stopped: make(chan struct{}), changed: make(chan struct{})}
	c.conns, c.onReplaced = map[*conn.Conn]struct{}{}, map[int]func(){}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.grace, c.endGrace = context.WithCancel(context.Background())
	if cfg.log.Core().Enabled(zap.InfoLevel) {
		c.states.Listen(c.logState)
	}
	if _, none := cfg.metrics.(unmeasured); !none {
		c.states.Listen(c.measureState)
	}
	return c
}

// logState is a listener like any other, so that a slow log delays nobody.
func (c *core) logState(change StateChange) {
	c.cfg.log.Info("state", zap.Stringer("state", change.State), logfield.Session(change.Session), zap.Error(change.Cause))
}

// levelOf is the level for the end of a session: Close ends it on purpose.
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
		c.cfg.log.Log(levelOf(s.reason()), "session over", logfield.Session(s.id()), zap.Error(s.reason()))
		c.background.Go(s.close)
		if time.Since(begun) < reopenPause || refusal(s.reason()) != nil {
			c.pause(1)
		}
	}
}

// Between attempts to get a session that the servers refuse, or end at once, there is a pause, the longer the more often: a new session
// is a transaction of the whole ensemble, and one that a credential was refused for stays until its timeout.
const (
	reopenPause    = time.Second
	maxReopenPause = 5 * time.Second
)

func (c *core) pause(failures int) {
	sleep(min(time.Duration(failures)*reopenPause, maxReopenPause), c.ctx.Done(), nil)
}

// linger waits for d, or until one of the two is closed; nil never is.
func sleep(d time.Duration, one, other <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-one:
	case <-other:
	}
}

// open gets a session, waiting for a server as long as it takes.
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

// derive makes a source of random numbers for one goroutine: two that drew from the same one at the same instant would leave to chance which
// of them gets which number.
func (c *core) newRandom() func(n int64) int64 {
	return rand.New(rand.NewPCG(uint64(c.cfg.random(math.MaxInt64)), 0)).Int64N
}

func (c *core) addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}

// connecting notes which connection is to know of a change of servers, and tells it of one since.
func (c *core) connecting(conn *conn.Conn, servers []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	c.conns[conn] = struct{}{}
	if !slices.Equal(servers, c.servers) {
		conn.SetServers(c.servers)
	}
}

// disconnected notes that a connection need not know of servers any more.
func (c *core) forget(conn *conn.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// setServers replaces the servers, unless they are the same.
func (c *core) setServers(servers []string) {
	shuffled := conn.Shuffle(servers, c.cfg.random)
	for _, conn := range c.replaceServers(servers, shuffled) {
		conn.LeaveStranger()
	}
}

// replaceServers returns the connections that are concerned.
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

// whenReplaced has fn called once there is a session, the next one if there is none; not after forget. fn must not wait for anything.
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

// refuse notes that there is no session.
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

// refusal is what every caller may as well be told at once, if the trouble is of that kind.
func refusal(trouble error) error {
	if errors.Is(trouble, ErrAuthFailed) {
		return ErrAuthFailed
	}
	return nil
}

// setRefused is called with mu held.
func (c *core) setRefusedLocked(err error) {
	c.refused = err
	if err != nil {
		c.states.set(StateChange{State: AuthFailed, Cause: err, At: time.Now()})
	}
	c.notifyLocked()
}

// touch wakes whoever waits for a change. Call it with mu held.
func (c *core) notifyLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// live is the current session if there is one, otherwise why there will be none, if that is certain.
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

// session waits for a live session, as long as ctx lasts and, if timeout is not zero, no longer than that.
func (c *core) session(ctx context.Context, timeout time.Duration) (*session, error) {
	var expired <-chan time.Time // once there is something to wait for
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

// trouble says why there is no connection.
func (c *core) connectionError() error {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	return notConnected(conn)
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

// whileOpen is ctx, ended also by the end of the client.
func (c *core) whileOpen(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// spawn runs fn on a goroutine that close waits for; false if the client is closed.
func (c *core) spawn(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.background.Go(fn)
	return true
}

// listenerTimeout bounds how long Close waits for listeners that do not return.
const listenerTimeout = time.Second

func (c *core) close() {
	c.mu.Lock()
	c.cancel(ErrClosed)
	c.mu.Unlock()
	enough := time.AfterFunc(c.cfg.connectTimeout, c.endGrace)
	<-c.stopped
	c.background.Wait()
	enough.Stop()
	c.endGrace()
	c.states.close(listenerTimeout)
}

func isNoNode(err error) bool { return errors.Is(err, zk.ErrNoNode) }
