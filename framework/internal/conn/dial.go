package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// run connects to one server after the other, and reads from each as long as the connection lasts.
func (c *Conn) run() {
	for !c.Over() {
		if l := c.connect(); l != nil {
			c.serve(l)
		}
	}
}

// connect makes one attempt to connect; nil: it has failed, or the session has ended.
func (c *Conn) connect() *link {
	server := c.hosts.next()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.mu.Lock()
	last := c.attempt.begun
	c.attempt = attempt{server, last, cancel}
	c.mu.Unlock()
	if !c.hosts.has(server) { // the servers have been replaced in between
		return nil
	}
	// An attempt that took long was pause enough.
	if pause := c.hosts.pause(); !sleep(ctx, max(pause/8, pause-time.Since(last))) {
		return nil
	}
	c.mu.Lock()
	c.attempt.begun = time.Now()
	c.mu.Unlock()
	l, err := c.handshake(ctx, server)
	c.mu.Lock()
	c.attempt.cancel = nil
	c.mu.Unlock()
	if err != nil {
		c.failed(server, err)
	}
	return l
}

// handshake dials a server and asks it for the session; nil without an error: the session has ended.
func (c *Conn) handshake(ctx context.Context, server string) (*link, error) {
	deadline := time.Now().Add(c.patience())
	bound, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	socket, err := c.open(bound, server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	asked := connectRequest{zxid: c.seen(), timeout: c.cfg.SessionTimeout, session: c.Info()}
	sent := Now()
	granted, err := greet(socket, deadline, asked)
	if !stop() && err == nil {
		err = net.ErrClosed // just after the reply
	}
	switch {
	case err != nil:
		socket.Close()
		return nil, err
	case granted.ID == 0 || granted.Timeout <= 0 || asked.session.ID != 0 && granted.ID != asked.session.ID:
		// A server that answers with another session does not know ours.
		socket.Close()
		c.end(zk.ErrSessionExpired)
		return nil, nil
	}
	c.established(granted, sent)
	return newLink(socket, c, server, asked.zxid), nil
}

// established notes that a server has admitted the session.
func (c *Conn) established(info Info, sent Stamp) {
	c.hosts.connected()
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.info.ID != 0
	c.info, c.took, c.beaten = info, time.Since(c.attempt.begun), Now()
	c.contact.counts(c.cfg.SessionTimeout, info.Timeout)
	if again {
		c.contact.claim(sent)
	} else {
		c.contact.begin(sent)
	}
	clear(c.lastErr)
}

// serve uses a link until it is closed.
func (c *Conn) serve(l *link) {
	c.running.Go(l.write)
	if !c.use(l) {
		l.Close()
		c.use(nil)
		return
	}
	c.log.Debug("connected", zap.String("server", l.server))
	c.cfg.Handler.Established(c.Info())
	c.present(l)
	c.presented()
	err := l.read()
	c.log.Debug("disconnected", zap.String("server", l.server), zap.Error(err))
	if l.overdue(err) {
		c.left(l.server, err)
	}
	l.Close()
	c.use(nil)
	c.cfg.Handler.Disconnected()
}

// present asks the server to accept all credentials.
func (c *Conn) present(l *link) {
	missing := len(c.cfg.Credentials)
	if missing == 0 {
		c.cfg.Handler.Connected()
	}
	for _, credential := range c.cfg.Credentials {
		l.send(authenticate(credential), func(r Reply) {
			switch r.Err() {
			case nil:
				if missing--; missing == 0 {
					c.cfg.Handler.Connected()
				}
			case zk.ErrConnectionClosed:
			case zk.ErrAuthFailed: // which would be refused again and again
				c.end(zk.ErrAuthFailed)
			default: // the server does not take it just now
				c.failed(l.server, fmt.Errorf("credential of scheme %s: %w", credential.Scheme, r.Err()))
				l.Close()
			}
		})
	}
}

// open connects to a server, given as host:port.
func (c *Conn) open(ctx context.Context, server string) (net.Conn, error) {
	address, err := c.resolve(ctx, server)
	if err != nil {
		return nil, err
	}
	socket, err := c.cfg.Dial(ctx, "tcp", address)
	if err == nil && socket == nil {
		err = errors.New("the dialer returned neither a connection nor an error")
	}
	if err != nil || c.cfg.TLS == nil {
		return socket, err
	}
	config := c.cfg.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(server)
	}
	secure := tls.Client(socket, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		socket.Close()
		return nil, err
	}
	return secure, nil
}

// resolve returns an address of a server. Without Config.Resolve that is its name.
func (c *Conn) resolve(ctx context.Context, server string) (address string, err error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil || c.cfg.Resolve == nil {
		return server, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return server, nil
	}
	all, err := c.cfg.Resolve(ctx, host)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("lookup %s: no addresses", host)
	}
	if slices.Contains(all, "") {
		err = fmt.Errorf("lookup %s: an address is empty", host)
	}
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(c.hosts.choose(server, all), port), nil
}

// leastPatience is what an attempt to connect gets in any case, unless the session is shorter.
const leastPatience = 500 * time.Millisecond

// patience is how long an attempt to connect may take. A server that accepts connections and is silent must not cost the session while
// others would answer. Where links are slow all servers take long: an attempt gets twice what the last successful one took, and the
// whole limit once all servers have been tried without success.
func (c *Conn) patience() time.Duration {
	timeout := c.cfg.SessionTimeout
	granted := c.Info().Timeout
	if granted > 0 {
		timeout = granted
	}
	limit := min(c.cfg.ConnectTimeout, timeout/3)
	if n := c.hosts.count(); n > 1 && granted > 0 && c.hosts.round() == 0 {
		// One server may be silent and another one down: there must be time for a third.
		limit = min(limit, max(leastPatience, timeout/time.Duration(4*n), 2*c.lastTook()))
	}
	return limit
}

func (c *Conn) lastTook() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took
}

// limits are how long a server may be silent, and how long it may take to reply; 0: any time. After two thirds of the session timeout
// the session cannot be relied on. A heartbeat is sent each sixth. A sixth after one that is not answered it is time to try
// another server: about a third of the timeout is left for it. Where there is only one address it is a third: another server may be
// behind the same address, and the same server may do better on another connection.
//
// All servers may be that slow. To try one after the other would not help then: the connection after one that was left for
// being slow is not left.
func (c *Conn) limits() (silence, reply time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := c.info.Timeout
	switch {
	case c.patient:
		reply = 0
	case c.hosts.count() == 1:
		reply = timeout / 3
	default:
		reply = timeout / 6
	}
	return timeout * 2 / 3, reply
}

// left notes that a server was left for being slow.
func (c *Conn) left(server string, err error) {
	c.log.Warn("leaving a server that does not answer", zap.String("server", server))
	c.failed(server, fmt.Errorf("no reply: %w", err))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patient = true
}

func (c *Conn) failed(server string, err error) {
	c.log.Debug("connection failed", zap.String("server", server), zap.Error(err))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = errors.New(err.Error()) // of a context of ours, which must not be taken for the caller's
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Over() && c.hosts.has(server) {
		c.lastErr[server] = err
	}
}

// sleep waits for d; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
