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
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// Config says how to connect.
type Config struct {
	Servers        []string                                                               // host:port, names unresolved
	SessionTimeout time.Duration                                                          // to ask for; the server decides
	ConnectTimeout time.Duration                                                          // bounds a dial and the handshake on it
	Resolve        func(ctx context.Context, host string) (addresses []string, err error) // nil: names are dialled
	Dial           func(ctx context.Context, network, address string) (net.Conn, error)
	TLS            *tls.Config // nil: plain
	Credentials    []Credential
	Logger         *zap.Logger
	Random         func(n int64) int64 // 0 to n-1, for pauses and the order of servers; nil: of math/rand
	Handler        Handler
}

// Credential is presented on each connection before any request is sent.
type Credential struct {
	Scheme string
	Value  []byte
}

// Handler is told what becomes of a Conn. One goroutine calls its methods, except Quorum. They must not wait for anything, and must not
// call Close.
type Handler interface {
	// Established is called when a server has admitted the session on a new connection. Credentials are presented next.
	Established(Info)
	// Connected is called when the server has accepted all credentials. No requests are sent before Connected calls Conn.Admit.
	Connected()
	// Disconnected is called when a connection has ended that was Established.
	Disconnected()
	// Ended is called at most once: with zk.ErrSessionExpired if the servers have ended the session, with zk.ErrAuthFailed if they
	// refuse a credential. No further connection is made.
	Ended(error)
	// Event is called for each event of a watch.
	Event(zk.Event)
	// Quorum reports whether only transactions are to count as heartbeats. It is called before each heartbeat, by the goroutine that
	// sends it.
	Quorum() bool
}

// Conn is the connection of one session. Safe for concurrent use.
type Conn struct {
	cfg     Config
	log     *zap.Logger
	hosts   *hosts
	ctx     context.Context // of all connecting; ended by Kill
	cancel  context.CancelFunc
	running sync.WaitGroup // all goroutines; those of links are added by that of the Conn

	mu      sync.Mutex
	attempt attempt
	link    *link         // nil: there is none on which the session has been admitted
	ready   *link         // link, once the credentials have been presented: the session can be ended on it
	changed chan struct{} // closed, and replaced, whenever there is another ready link
	info    Info
	contact contact          // with the ZooKeeper leader
	beaten  Stamp            // when the last heartbeat was sent
	quorum  bool             // only transactions count as heartbeats
	zxid    int64            // the largest that a reply or an event had
	took    time.Duration    // by the last attempt to connect that succeeded
	lastErr map[string]error // by server, since the last success
	patient bool             // the last server was left because it was slow: the next one is not
}

// attempt is one to connect.
type attempt struct {
	server string
	begun  time.Time
	cancel context.CancelFunc // nil: there is no attempt now
}

// Info is what the server told of the session.
type Info struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // that the server grants
}

// New returns a Conn that connects once it is started. The caller must Close it.
func New(cfg Config) *Conn {
	c := &Conn{cfg: cfg, log: cfg.Logger, lastErr: map[string]error{}, changed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hosts = newHosts(cfg.Servers, min(longestPause, cfg.SessionTimeout/8), cfg.Random)
	return c
}

// Start begins to connect, and returns at once. It is called once at most, and not after Close.
func (c *Conn) Start() { c.running.Go(c.run) }

// Ask sends a request. done is called once, perhaps before Ask returns, or by the goroutine that reads: it must not wait for anything.
// Requests reach the server in the order in which one goroutine asks. The reply's error is zk.ErrNoServer if the request was not
// sent, because there is no connection, or Admit has not been called on it, or the session is being ended; it is
// zk.ErrConnectionClosed if the answer was lost.
func (c *Conn) Ask(r Request, done func(Reply)) {
	if l := c.current(); l == nil || !l.ask(r, done) {
		done(Reply{err: zk.ErrNoServer})
	}
}

// Together calls fn, which must not wait for anything. The requests that it sends by Ask leave in one piece, in their order, as long as
// the connection is the same.
func (c *Conn) Together(fn func()) {
	if l := c.current(); l != nil {
		defer l.hold()()
	}
	fn()
}

// Admit allows requests on the present connection. They come behind the given ones, whose replies are not needed. A connection that
// does not count yet begins with a heartbeat, so that nothing is read on it that is older than what was read, or told by an event, on
// the one before. Only Handler.Connected calls it.
func (c *Conn) Admit(first ...Request) {
	l := c.current()
	if l == nil {
		return
	}
	if c.claimed() {
		first = append([]Request{c.heartbeat()}, first...)
	}
	if l.admit(first) {
		c.running.Go(func() { c.keepAlive(l) })
	}
}

// Admitted reports whether requests are allowed now.
func (c *Conn) Admitted() bool {
	l := c.current()
	return l != nil && l.admitted()
}

// current is the link in use.
func (c *Conn) current() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// use makes l the link in use; nil: there is none. It reports whether l is to be used, which it is not once no further connection
// is to be made, or its server has been replaced.
func (c *Conn) use(l *link) bool {
	c.mu.Lock()
	c.link, c.ready = l, nil
	c.mu.Unlock()
	return l == nil || !c.Over() && c.hosts.has(l.server)
}

// presented notes that the credentials have been presented on the link in use.
func (c *Conn) presented() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = c.link
	close(c.changed)
	c.changed = make(chan struct{})
}

// Info is what is known of the session: zero before there is one.
func (c *Conn) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// Server is the server of the present connection, as it was given in Config.Servers or to SetServers; empty if there is no connection.
func (c *Conn) Server() string {
	if l := c.current(); l != nil {
		return l.server
	}
	return ""
}

// Trouble names what last failed with each server since the last success; nil: nothing did.
func (c *Conn) Trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all troubles
	for server, err := range c.lastErr {
		all = append(all, fmt.Errorf("%s: %w", server, err))
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all
}

// troubles are errors in one line.
type troubles []error

func (t troubles) Error() string {
	texts := make([]string, len(t))
	for i, err := range t {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (t troubles) Unwrap() []error { return t }

// SetServers replaces the servers to connect to.
func (c *Conn) SetServers(servers []string) {
	c.hosts.replace(servers)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.lastErr, func(server string, _ error) bool { return !slices.Contains(servers, server) })
}

// LeaveStranger closes a connection, or cancels an attempt to connect, to a server that is not one of those to connect to any more. The
// session goes on with another server.
func (c *Conn) LeaveStranger() {
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

// EndSession asks a server to end the session, and reports whether one has confirmed it. A server that does not confirm it in the time
// of a handshake is left, and the next one is asked. It gives up when ctx ends, and at once if no server has ever admitted the
// session or no further connection is to be made.
func (c *Conn) EndSession(ctx context.Context) bool {
	for {
		c.mu.Lock()
		l, changed, none := c.ready, c.changed, c.info.ID == 0
		c.mu.Unlock()
		switch {
		case none || c.Over() || ctx.Err() != nil:
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

// endOn asks the server of a link to end the session. Whatever comes of it, the link is closed.
func (c *Conn) endOn(ctx context.Context, l *link) (confirmed bool) {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	confirmed = l.end(ctx)
	if confirmed {
		c.cancel() // before the link is closed, which would begin another attempt to connect
	}
	l.Close()
	return confirmed
}

// Kill closes the connection without ending the session: no further attempt to connect is made, and every request fails. Close must
// still be called.
func (c *Conn) Kill() {
	c.cancel()
	if l := c.current(); l != nil {
		l.Close()
	}
}

// Close is Kill that waits until all goroutines have ended.
func (c *Conn) Close() {
	c.Kill()
	c.running.Wait()
}

// Over reports whether no further attempt to connect will be made.
func (c *Conn) Over() bool { return c.ctx.Err() != nil }

// end makes no further attempt to connect, because of what a server said.
func (c *Conn) end(reason error) {
	c.cancel()
	c.cfg.Handler.Ended(reason)
}
