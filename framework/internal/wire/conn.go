package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// errOver is what the dialer says when the session is over.
var errOver = errors.New("the session is over")

// Config says how to connect.
type Config struct {
	Servers        []string                                                               // host:port, names unresolved
	SessionTimeout time.Duration                                                          // to ask for; the server decides
	ConnectTimeout time.Duration                                                          // bounds a dial and the handshake on it
	Resolve        func(ctx context.Context, host string) (addresses []string, err error) // nil: names are dialled
	Dial           func(ctx context.Context, network, address string) (net.Conn, error)
	TLS            *tls.Config // nil: plain
	Logger         *zap.Logger
	Random         func(n int64) int64 // 0 to n-1, for pauses and the order of servers; nil: of math/rand

	// These are called on the driver's own goroutines: they must not block and must not call the driver.
	OnEvent      func(*Conn, zk.Event)
	OnCredential func(accepted bool) // of this connection, in their order; after one that is refused there is no further attempt to connect
}

// Conn is one driver connection for at most one session. Safe for concurrent use.
type Conn struct {
	cfg    Config
	log    *zap.Logger
	hosts  *hosts
	driver *zk.Conn
	events <-chan zk.Event // closed by the driver when its goroutines are gone

	ctx    context.Context // of the dials; ended by Kill
	cancel context.CancelFunc

	dialled time.Time      // when the last attempt to connect began; of the driver's goroutines
	writing sync.WaitGroup // those who write to sockets; one at a time is added, by the driver's goroutine

	mu      sync.Mutex
	dialing string             // the server that is being dialled, or about to be
	giveUp  context.CancelFunc // of that attempt
	socket  *shim              // the one in use, to be closed by whoever wants the driver to stop
	info    Info
	contact contact          // with the leader
	quorum  bool             // only transactions tell of the leader
	zxid    int64            // the last that a reply told
	took    time.Duration    // by the last successful attempt to connect
	lastErr map[string]error // by server, since the last success
	patient bool             // a server was left for being slow: the next one may take the time that the driver gives it
}

// Open starts connecting and returns at once. The caller must Close the Conn.
func Open(cfg Config) (*Conn, error) {
	c := &Conn{cfg: cfg, log: cfg.Logger, lastErr: map[string]error{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hosts = newHosts(cfg.Servers, min(longestPause, cfg.SessionTimeout/8), c.Over, cfg.Random)
	var err error
	c.driver, c.events, err = zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithDialer(c.dial),
		zk.WithHostProvider(c.hosts),
		zk.WithEventCallback(c.event),
		zk.WithLogger(driverLog{cfg.Logger}),
	)
	if err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// Driver is the driver's connection, for its operations only.
func (c *Conn) Driver() *zk.Conn { return c.driver }

// Ask makes a request beside the driver, which would want a goroutine for each, and keeps to itself which transaction came of it. done is called
// once, perhaps before Ask returns, or where replies are read: it must not wait for anything. There are no such requests before
// Admit.
func (c *Conn) Ask(r Request, done func(Reply)) {
	if socket := c.current(); socket == nil || !socket.ask(r, done) {
		done(Reply{err: zk.ErrNoServer})
	}
}

// Admit allows requests by Ask on the connection that there is, now that its server knows the session and its credentials. They come behind
// the given ones, which leave together and whose answers are not needed.
func (c *Conn) Admit(first ...Request) {
	if socket := c.current(); socket != nil {
		socket.admit(first)
	}
}

// Admitted reports whether requests by Ask are allowed now.
func (c *Conn) Admitted() bool {
	socket := c.current()
	return socket != nil && socket.admitted()
}

// current is the socket in use. Its mu may be held when ours is taken, not the other way round.
func (c *Conn) current() *shim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}

// Info is what is known of the session: zero before there is one.
func (c *Conn) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// Reliance is a moment, and the session timeout of which a part may pass since.
type Reliance struct {
	At      Stamp
	Timeout time.Duration
}

// Proven is since when the session can be relied on: see contact. A follower that is cut off goes on answering reads and pings for a while,
// which do not count. While claimed has a moment the session can be relied on no longer than by that either.
func (c *Conn) Proven() (proven, claimed Reliance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Reliance{c.contact.proof, c.contact.timeout}, Reliance{c.contact.claimed, c.contact.granted}
}

// Even reports whether answers of the leader come as they should. Where they do not, heartbeats should come faster.
func (c *Conn) Even() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contact.even
}

// RelyOnQuorum says whether only transactions are to tell of the leader, to which a quorum of the servers agrees. A leader that has been
// replaced, and does not know it yet, answers other requests. It admits sessions, too: so a connection that is made again counts with the
// first transaction on it in any case.
func (c *Conn) RelyOnQuorum(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quorum = on
}

// Claimed reports whether a transaction has to be made before the connection counts.
func (c *Conn) Claimed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.contact.claimed.IsZero()
}

// Trouble names what last went wrong with each server, or is nil.
func (c *Conn) Trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for server, err := range c.lastErr {
		errs = append(errs, fmt.Errorf("%s: %w", server, err))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(errs) == 0 {
		return nil
	}
	return troubles(errs)
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

// LeaveStranger gives up a connection, or an attempt to make one, to a server that is not, or no longer, one to connect to. The next one is
// tried with the same session.
func (c *Conn) LeaveStranger() {
	c.mu.Lock()
	socket, dialing, giveUp := c.socket, c.dialing, c.giveUp
	c.mu.Unlock()
	if socket != nil && !c.hosts.has(socket.server) {
		socket.Close()
	}
	if giveUp != nil && !c.hosts.has(dialing) {
		giveUp()
	}
}

// EndSession asks the server to end the session and waits until it has, as long as for a handshake, and no longer than ctx. If it cannot be
// confirmed the connection is closed, so that the next one can be used to try again.
func (c *Conn) EndSession(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	socket := c.current()
	if socket == nil {
		return false
	}
	if !socket.part(ctx) {
		socket.Close()
		return false
	}
	c.cancel() // there is nothing to connect for any more
	return true
}

// parted reports whether the session has been ended on the connection that there is.
func (c *Conn) parted() bool {
	socket := c.current()
	return socket != nil && socket.farewell.over()
}

// Kill ends the connection without telling the server: no further dial, the socket closed, every request failed. Close
// must still be called.
func (c *Conn) Kill() {
	c.cancel()
	c.replace(nil)
}

// Close closes the connection and waits until the driver's goroutines are gone. No call of the driver may be under way, for it races with
// itself then: kill the connection first, and wait for them.
func (c *Conn) Close() {
	if !c.parted() {
		c.Kill()
	}
	c.driver.Close()
	c.Kill()
	for range c.events { // closed when the driver has ended
	}
	c.writing.Wait()
}

// Over reports whether no further attempt to connect will be made.
func (c *Conn) Over() bool { return c.ctx.Err() != nil }

// credential hears whether the server accepts one. The driver would present one that is refused again and again.
func (c *Conn) credential(accepted bool) {
	if !accepted {
		c.cancel()
	}
	if c.cfg.OnCredential != nil {
		c.cfg.OnCredential(accepted)
	}
}

// event sees what happens before the driver's next dial: both are on one goroutine.
func (c *Conn) event(e zk.Event) {
	if e.Type == zk.EventSession && e.State == zk.StateExpired {
		c.cancel()
	}
	c.cfg.OnEvent(c, e)
}

// dial is the driver's dialer. It also closes the socket of the attempt before, which the driver leaves open after an
// expiry, and pauses between rounds.
func (c *Conn) dial(network, address string, _ time.Duration) (net.Conn, error) {
	c.replace(nil)
	attempt, giveUp := context.WithCancel(c.ctx)
	defer giveUp()
	c.attempting(address, giveUp)
	if pause := c.hosts.pause(); !sleep(attempt, max(pause/8, pause-time.Since(c.dialled))) { // an attempt that took long was pause enough
		return nil, errOver
	}
	c.dialled = time.Now()
	deadline := time.Now().Add(c.patience())
	ctx, cancel := context.WithDeadline(attempt, deadline)
	defer cancel()
	socket, err := c.open(ctx, network, address)
	if err != nil {
		c.failed(address, err)
		return nil, err
	}
	_ = socket.SetWriteDeadline(deadline) // until the handshake is over: one without a buffer would wait for who reads
	s := newShim(socket, c, address, deadline)
	if !c.replace(s) || !c.hosts.has(address) {
		s.Close()
		return nil, errOver
	}
	return s, nil
}

// attempting notes to which server there will be an attempt, which can be given up from now on.
func (c *Conn) attempting(server string, giveUp context.CancelFunc) {
	c.mu.Lock()
	c.dialing, c.giveUp = server, giveUp
	c.mu.Unlock()
	if !c.hosts.has(server) {
		giveUp() // the servers were replaced since the driver asked for one
	}
}

// leastPatience is what an attempt to connect gets in any case, unless the session is shorter.
const leastPatience = 500 * time.Millisecond

// patience is how long an attempt may take. A server that accepts and says nothing must not cost the whole session while others
// would answer. But where links are slow all servers take long: an attempt gets twice what the last successful one took, and all the time
// that there is once all servers were tried in vain.
func (c *Conn) patience() time.Duration {
	timeout := c.cfg.SessionTimeout
	granted := c.Info().Timeout
	if granted > 0 {
		timeout = granted
	}
	limit := min(c.cfg.ConnectTimeout, timeout/3)
	if n := c.hosts.Len(); n > 1 && granted > 0 && c.hosts.round() == 0 {
		// One server may have fallen silent and another be down: there must be time for a third.
		limit = min(limit, max(leastPatience, timeout/time.Duration(4*n), 2*c.lastTook()))
	}
	return limit
}

func (c *Conn) lastTook() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took
}

// replyPatience is how long a server may keep a reply back. The driver would wait for two thirds of the timeout, when the session cannot be
// relied on any more. A heartbeat goes out each sixth; a sixth after one that is not answered it is time to go to another server, with about
// a third of the timeout left to get there. Where there is only one address it is a third: another server may be behind the same
// address, and the same one may do better on another connection.
//
// Servers may all be that slow. To go round would not help then: the next connection after one that was left for being slow is not
// left for that.
func (c *Conn) replyPatience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.patient:
		return 0
	case c.hosts.Len() == 1:
		return c.info.Timeout / 3
	}
	return c.info.Timeout / 6
}

// left notes that a server was left for being slow.
func (c *Conn) left(server string, err error) {
	c.log.Warn("leaving a server that does not answer", zap.String("server", server))
	c.failed(server, fmt.Errorf("no reply: %w", err))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patient = true
}

// open connects to a server, given as host:port.
func (c *Conn) open(ctx context.Context, network, server string) (net.Conn, error) {
	address, err := c.resolve(ctx, server)
	if err != nil {
		return nil, err
	}
	socket, err := c.cfg.Dial(ctx, network, address)
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

// resolve picks an address of a server, if names are resolved here.
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

// replace closes the socket in use and puts s in its place; false if the session is over.
func (c *Conn) replace(s *shim) bool {
	c.mu.Lock()
	old := c.socket
	c.socket = s
	c.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return !c.Over()
}

func (c *Conn) failed(server string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = errors.New(err.Error()) // of a context of ours, which must not be taken for the caller's
	}
	if !c.Over() && c.hosts.has(server) {
		c.lastErr[server] = err
	}
}

func (c *Conn) established(info Info, asked time.Duration, sent Stamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.info.ID != 0
	c.info, c.took = info, time.Since(c.dialled)
	c.contact.counts(asked, info.Timeout)
	if again {
		c.contact.claim(sent)
	} else {
		c.contact.begin(sent)
	}
	clear(c.lastErr)
}

// heard notes an answer of the leader; one that only it, and not most servers, can have given is no transaction.
func (c *Conn) heard(sent Stamp, transaction bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if transaction || !c.quorum && c.contact.claimed.IsZero() {
		c.contact.heard(sent, Now())
	}
	if sent.Elapsed() < c.info.Timeout/6 {
		c.patient = false
	}
}

func (c *Conn) saw(zxid int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxid = max(c.zxid, zxid)
}

// seen is the last zxid that a reply told.
func (c *Conn) seen() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zxid
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
