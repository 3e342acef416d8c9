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

// run connects to one server after the other and reads from each connection until it ends.
func (c *Conn) run() {
	for !c.over() {
		if l := c.connect(); l != nil {
			c.serve(l)
		}
	}
}

// connect makes one attempt to connect. It returns nil if the attempt failed or the session has
// ended.
func (c *Conn) connect() *link {
	server := c.hosts.next()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.mu.Lock()
	last := c.attempt.started
	c.attempt = attempt{server, last, cancel}
	c.mu.Unlock()
	if !c.hosts.has(server) { // SetServers was called in between
		return nil
	}
	// The time since the start of the last attempt counts towards the pause, up to seven eighths.
	if pause := c.hosts.pause(); !sleep(ctx, max(pause/8, pause-time.Since(last))) {
		return nil
	}
	c.mu.Lock()
	c.attempt.started = time.Now()
	c.mu.Unlock()
	l, err := c.handshake(ctx, server)
	c.mu.Lock()
	c.attempt.cancel = nil
	c.mu.Unlock()
	if err != nil {
		c.noteFailure(server, err)
	}
	return l
}

// handshake dials a server and asks it for the session. It returns nil without an error if the
// session has ended.
func (c *Conn) handshake(ctx context.Context, server string) (*link, error) {
	deadline := time.Now().Add(c.attemptTimeout())
	bound, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	socket, err := c.open(bound, server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	asked := connectRequest{zxid: c.lastZxid(), timeout: c.cfg.SessionTimeout, session: c.Info()}
	sent := Now()
	granted, err := requestSession(socket, deadline, asked)
	stop() // if ctx has ended just after the reply, the socket is closed, and so the link ends
	switch {
	case err != nil:
		socket.Close()
		return nil, err
	case granted.ID == 0 || granted.Timeout <= 0 || asked.session.ID != 0 && granted.ID != asked.session.ID:
		// A server that does not know the session answers with another one, or with none.
		socket.Close()
		c.end(zk.ErrSessionExpired)
		return nil, nil
	}
	c.established(granted, sent)
	return newLink(socket, c, server, c.watchedZxid()), nil
}

// established records that a server has accepted the session.
func (c *Conn) established(info Info, sent Stamp) {
	c.hosts.connected()
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.info.ID != 0
	asked, granted := c.cfg.SessionTimeout, info.Timeout
	c.contact.setTimeouts(asked, granted)
	info.Timeout, info.Longest = c.contact.granted, max(granted, c.info.Longest)
	c.info, c.took, c.lastHeartbeat = info, time.Since(c.attempt.started), Now()
	if again {
		c.contact.reconnect(sent)
	} else {
		c.contact.restart(sent)
	}
	clear(c.lastErr)
}

// serve uses a link until it is closed.
func (c *Conn) serve(l *link) {
	c.running.Go(l.write)
	if !c.setLink(l) {
		l.Close()
		c.setLink(nil)
		return
	}
	c.log.Debug("connected", zap.String("server", l.server))
	c.cfg.Handler.Established(c.Info())
	c.sendCredentials(l)
	c.setReady()
	err := l.read()
	c.log.Debug("disconnected", zap.String("server", l.server), zap.Error(err))
	if l.replyOverdue(err) {
		c.noteSlow(l.server, err)
	}
	l.Close()
	c.nextXid = l.unusedXid()
	c.setLink(nil)
	c.cfg.Handler.Disconnected()
}

// sendCredentials sends all credentials. It calls Handler.Connected once the server has accepted
// them.
func (c *Conn) sendCredentials(l *link) {
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
			case zk.ErrAuthFailed: // every other connection would fail in the same way
				c.end(zk.ErrAuthFailed)
				l.Close()
			default: // another attempt may succeed
				c.noteFailure(l.server, fmt.Errorf("credential of scheme %s: %w", credential.Scheme, r.Err()))
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

// resolve returns an address of a server. It returns the server itself without Config.Resolve, or
// if its host is an IP address.
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

// minAttemptTimeout is the least that attemptTimeout returns, unless the limit of all attempts is
// shorter.
const minAttemptTimeout = 500 * time.Millisecond

// attemptTimeout returns how long an attempt to connect may take. The limit is ConnectTimeout or a
// third of the session timeout, whichever is shorter.
//
// A server that accepts connections and does not answer must not cost the session while other
// servers would answer. So at a reconnect, an attempt has only a fraction of the session timeout in
// the first round over several servers. On slow networks all servers take long. So an attempt has
// at least twice the time of the last successful one, and the whole limit once all servers have
// failed.
func (c *Conn) attemptTimeout() time.Duration {
	timeout := c.cfg.SessionTimeout
	granted := c.Info().Timeout
	if granted > 0 {
		timeout = granted
	}
	limit := min(c.cfg.ConnectTimeout, timeout/3)
	if n := c.hosts.count(); n > 1 && granted > 0 && c.hosts.round() == 0 {
		// One server may be silent and another one down. There must be time for a third one.
		limit = min(limit, max(minAttemptTimeout, timeout/time.Duration(4*n), 2*c.lastTook()))
	}
	return limit
}

func (c *Conn) lastTook() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took
}

// limits returns how long a server may be silent, and how long it may take to reply. A reply limit
// of 0 means none.
//
// After two thirds of the session timeout the session cannot be relied on. A heartbeat is sent each
// sixth. If it has no reply after another sixth, it is time to try another server, for which about
// a third of the timeout remains. With only one address the reply limit is a third of the timeout.
// Another server may be behind the same address, and the same server may answer faster on another
// connection.
//
// All servers may be slow. Then it does not help to try one after the other. So after a connection
// was closed because of a slow server, the next connection has no reply limit.
func (c *Conn) limits() (silence, reply time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := c.info.Timeout
	switch {
	case c.tolerateSlow:
		reply = 0
	case c.hosts.count() == 1:
		reply = timeout / 3
	default:
		reply = timeout / 6
	}
	return timeout * 2 / 3, reply
}

// noteSlow records that a connection was closed because its server was slow.
func (c *Conn) noteSlow(server string, err error) {
	c.log.Warn("leaving a server that does not answer", zap.String("server", server))
	c.noteFailure(server, fmt.Errorf("no reply: %w", err))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tolerateSlow = true
}

// noteFailure records a failure of a server for Failures.
func (c *Conn) noteFailure(server string, err error) {
	c.log.Debug("connection failed", zap.String("server", server), zap.Error(err))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = errors.New(err.Error()) // of an internal context; callers must not take it for their own
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over() && c.hosts.has(server) {
		c.lastErr[server] = err
	}
}

// sleep waits for d and reports whether ctx is still alive.
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
