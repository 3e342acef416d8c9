package conn

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// Config has the settings of a Conn.
type Config struct {
	Servers        []string      // host:port, names not resolved
	SessionTimeout time.Duration // requested; the server decides
	ConnectTimeout time.Duration // limits a dial together with the handshake
	// Resolve returns the addresses of a host. If it is nil, Dial gets the name.
	Resolve     func(ctx context.Context, host string) (addresses []string, err error)
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)
	TLS         *tls.Config // nil: no TLS
	Credentials []Credential
	Logger      *zap.Logger
	Random      func(n int64) int64 // returns 0 to n-1, for pauses and the order of servers; nil: math/rand
	Handler     Handler
}

// Credential is sent on each connection before any other request.
type Credential struct {
	Scheme string
	Value  []byte
}

// A Handler is notified of the changes of a Conn. The goroutine of the Conn calls its methods,
// except Quorum. They must not wait for anything and must not call Close.
type Handler interface {
	// Established is called when a server has accepted the session on a new connection. The
	// credentials are sent next.
	Established(Info)
	// Connected is called when the server has accepted all credentials. No requests are sent before
	// Connected calls Conn.Admit.
	Connected()
	// Disconnected is called when a connection has ended for which Established was called.
	Disconnected()
	// Ended is called at most once: with zk.ErrSessionExpired if the servers have ended the session,
	// with zk.ErrAuthFailed if they refuse a credential. No further connection is made.
	Ended(error)
	// Event is called for each event of a watch. zxid is the transaction that is the cause, or -1 if
	// the server does not tell it.
	Event(e zk.Event, zxid int64)
	// Quorum reports whether only transactions count as heartbeats. The goroutine that sends a
	// heartbeat calls it before each one.
	Quorum() bool
}

// Conn connects one session to the servers. It is safe for concurrent use.
type Conn struct {
	cfg     Config
	log     *zap.Logger
	hosts   *hosts
	ctx     context.Context // of all attempts to connect; canceled by Kill
	cancel  context.CancelFunc
	running sync.WaitGroup // all goroutines; the goroutine of the Conn adds those of its links
	expired atomic.Bool    // a server has said so

	// nextXid is the number of the first request of the next link. Only the goroutine of the Conn uses
	// it. A server matches the transactions of a session with the requests that wait for them by
	// session and number alone. A transaction of a former connection must not be taken for the answer
	// to a request of this one.
	nextXid int32

	mu            sync.Mutex
	attempt       attempt
	link          *link         // nil: the session has no connection
	ready         *link         // link, once all credentials have been sent: the session can be ended on it
	changed       chan struct{} // closed and replaced whenever there is another ready link
	info          Info
	contact       contact          // with the ZooKeeper leader
	lastHeartbeat Stamp            // when the last heartbeat was sent
	quorum        bool             // whether only transactions count as heartbeats
	zxid          int64            // the largest of all replies and events
	rewatched     bool             // all watches are set on the last connection
	watched       int64            // the value of zxid when such a connection was lost, the last time
	took          time.Duration    // duration of the last successful attempt to connect
	lastErr       map[string]error // by server, since the last successful attempt
	tolerateSlow  bool             // the last connection was closed because its server was slow: keep the next one
}

// attempt is an attempt to connect.
type attempt struct {
	server  string
	started time.Time
	cancel  context.CancelFunc // nil: no attempt is under way
}

// Info is what servers said about the session in their connect replies.
type Info struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // the shortest that a server has granted: the client must not rely on more
	Longest  time.Duration // the longest one: the servers may keep the session for that long
}

// New returns a Conn, which connects after a call of Start. The caller must call Close.
func New(cfg Config) *Conn {
	c := &Conn{
		cfg: cfg, log: cfg.Logger, nextXid: firstXid, lastErr: map[string]error{}, changed: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hosts = newHosts(cfg.Servers, min(longestPause, cfg.SessionTimeout/8), cfg.Random)
	return c
}

// Start starts to connect and returns at once. Call it at most once, and not after Close.
func (c *Conn) Start() { c.running.Go(c.run) }

// Ask sends a request and calls done once with the reply. done is called either by Ask before it
// returns, or by another goroutine, mostly the one that reads. It must not wait for anything. The
// requests of one goroutine reach the server in the order of its calls.
//
// The error of the reply is zk.ErrNoServer if the request was not sent: there is no connection,
// Admit has not been called on it, or the session is being ended. It is zk.ErrConnectionClosed if
// the reply was lost.
func (c *Conn) Ask(r Request, done func(Reply)) { c.Link().Ask(r, done) }

// Link is one connection of a Conn. The zero value is none.
type Link struct{ link *link }

// Link returns the connection in use.
func (c *Conn) Link() Link { return Link{c.current()} }

// Ask is Conn.Ask for a request that no other connection may get.
func (l Link) Ask(r Request, done func(Reply)) {
	if l.link == nil || !l.link.ask(r, done) {
		done(NotSent())
	}
}

// Together calls fn, which must not wait for anything. The requests that fn sends with Ask are
// written in one piece and in order, unless the connection changes meanwhile.
func (c *Conn) Together(fn func()) {
	if l := c.current(); l != nil {
		if idle, mustStart := l.delay(); mustStart {
			defer l.startDelayed(idle)
		}
	}
	fn()
}

// Admit allows requests on the current connection and sends the given ones first. Only the functions
// of Request.Then receive their replies. If the connection is not confirmed yet, a heartbeat comes
// before them. Then no read on this connection returns older data than a read or an event on an
// earlier one. Only Handler.Connected calls Admit.
func (c *Conn) Admit(first ...Request) {
	l := c.current()
	if l == nil {
		refuse(first)
		return
	}
	if c.unconfirmed() {
		first = append([]Request{c.heartbeat()}, first...)
	}
	if l.admit(first) {
		c.running.Go(func() { c.keepAlive(l) })
	} else {
		refuse(first)
	}
}

// refuse ends requests that were not sent.
func refuse(all []Request) {
	for _, r := range all {
		r.finish(NotSent())
	}
}

// KeepAlive is Admit for a session that is only to be kept until EndSession: nothing is sent at once.
func (c *Conn) KeepAlive() {
	if l := c.current(); l != nil && l.admit(nil) {
		c.running.Go(func() { c.keepAlive(l) })
	}
}

// Admitted reports whether requests are allowed now.
func (c *Conn) Admitted() bool {
	l := c.current()
	return l != nil && l.admitted()
}

// current returns the link in use, or nil.
func (c *Conn) current() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// setLink sets the link in use; nil means none. It reports whether l may be used. It may not if no
// further connection is to be made, or if its server was removed by SetServers.
func (c *Conn) setLink(l *link) bool {
	c.mu.Lock()
	c.link, c.ready = l, nil
	c.mu.Unlock()
	return l == nil || !c.over() && c.hosts.has(l.server)
}

// setReady records that all credentials have been sent on the link in use.
func (c *Conn) setReady() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = c.link
	close(c.changed)
	c.changed = make(chan struct{})
}

// Info returns what is known of the session. It is zero before the first connection.
func (c *Conn) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// Server returns the server of the current connection as it was given in Config.Servers or to
// SetServers, or "" if there is no connection.
func (c *Conn) Server() string {
	if l := c.current(); l != nil {
		return l.server
	}
	return ""
}

// Failures returns the last failure of each server since the last successful attempt to connect, or
// nil if there is none.
func (c *Conn) Failures() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all failures
	for server, err := range c.lastErr {
		all = append(all, fmt.Errorf("%s: %w", server, err))
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all
}

// failures joins errors in one line.
type failures []error

func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

// SetServers replaces the servers to connect to.
func (c *Conn) SetServers(servers []string) {
	c.hosts.replace(servers)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.lastErr, func(server string, _ error) bool { return !slices.Contains(servers, server) })
}

// LeaveRemoved closes the connection if its server was removed by SetServers. Likewise it cancels
// an attempt to connect to such a server. The session goes on with another server.
func (c *Conn) LeaveRemoved() {
	c.mu.Lock()
	l, a := c.link, c.attempt
	c.mu.Unlock()
	if l != nil && !c.hosts.has(l.server) {
		l.Close()
	}
	if a.cancel != nil && !c.hosts.has(a.server) {
		a.cancel()
	}
}

// EndSession asks the servers to end the session and reports whether one has confirmed it. If a
// server does not confirm it within the time limit of an attempt to connect, EndSession closes the
// connection and asks the next server. It gives up when ctx ends. It gives up at once if no server
// has ever accepted the session, or if no further connection is to be made.
func (c *Conn) EndSession(ctx context.Context) bool {
	for {
		c.mu.Lock()
		l, changed, noSession := c.ready, c.changed, c.info.ID == 0
		c.mu.Unlock()
		switch {
		case noSession || c.over() || ctx.Err() != nil:
			return false
		case l != nil && c.endOn(ctx, l):
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-c.ctx.Done():
		}
	}
}

// endOn asks the server of a link to end the session. It closes the link in any case.
func (c *Conn) endOn(ctx context.Context, l *link) (confirmed bool) {
	ctx, cancel := context.WithTimeout(ctx, c.attemptTimeout())
	defer cancel()
	confirmed = l.end(ctx)
	l.Close()
	return confirmed
}

// Kill closes the connection without ending the session. It stops all attempts to connect, and
// every request fails. The caller must still call Close.
func (c *Conn) Kill() {
	c.cancel()
	if l := c.current(); l != nil {
		l.Close()
	}
}

// Close does what Kill does, and waits until all goroutines have ended.
func (c *Conn) Close() {
	c.Kill()
	c.running.Wait()
}

// over reports whether all attempts to connect have been stopped.
func (c *Conn) over() bool { return c.ctx.Err() != nil }

// Expired reports whether a server has said that the session does not exist any more.
func (c *Conn) Expired() bool { return c.expired.Load() }

// end stops all attempts to connect because of what a server said.
func (c *Conn) end(reason error) {
	if reason == zk.ErrSessionExpired {
		c.expired.Store(true)
	}
	c.cancel()
	c.cfg.Handler.Ended(reason)
}
