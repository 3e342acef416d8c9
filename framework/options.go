package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/slogcore"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/retry"
)

const (
	defaultSessionTimeout = 30 * time.Second
	defaultConnectTimeout = 2500 * time.Millisecond
	defaultDeadline       = 2.0 / 3

	minSessionTimeout = 100 * time.Millisecond
	maxSessionTimeout = 24 * time.Hour
)

// Option configures a Client. Curator: CuratorFrameworkFactory.Builder.
type Option func(*config) error

type config struct {
	sessionTimeout time.Duration
	connectTimeout time.Duration
	retry          retry.Policy
	namespace      string // "" or "/a/b"
	log            *zap.Logger
	logOption      string // the option that has set log, or ""
	metrics        metrics.Metrics
	waitWarning    time.Duration
	auth           []conn.Credential
	acl            func(path string) []zk.ACL
	tls            *tls.Config
	dial           func(ctx context.Context, network, address string) (net.Conn, error)
	resolve        func(ctx context.Context, host string) ([]string, error) // nil: the dialer resolves names
	random         func(n int64) int64
	loss           LossPolicy
	deadline       float64 // of the session timeout
	quorum         bool    // heartbeats are transactions
}

func newConfig(opts []Option) (config, error) {
	cfg := config{
		sessionTimeout: defaultSessionTimeout,
		connectTimeout: defaultConnectTimeout,
		retry:          retry.BoundedExponential(100*time.Millisecond, 2*time.Second, 5),
		log:            zap.NewNop(),
		metrics:        unmeasured{},
		waitWarning:    defaultWaitWarning,
		random:         rand.Int64N,
		deadline:       defaultDeadline,
	}
	if err := option.Apply(&cfg, opts); err != nil {
		return config{}, err
	}
	if cfg.dial == nil {
		cfg.dial = (&net.Dialer{}).DialContext
		if cfg.resolve == nil {
			cfg.resolve = net.DefaultResolver.LookupHost
		}
	}
	return cfg, nil
}

// WithSessionTimeout sets the session timeout to ask for, from 100 ms to 24 h. Default 30 s. The
// servers decide: by default they accept 2 to 20 of their ticks. Session.Timeout returns the shortest
// timeout that they have granted. It should be at least four ticks, better eight. The ephemeral nodes
// of a crashed client stay for the session timeout. A client that does not hear from the ZooKeeper
// leader for two thirds of it (see WithLossDeadline) ends its holds.
func WithSessionTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d < minSessionTimeout || d > maxSessionTimeout {
			return fmt.Errorf("WithSessionTimeout: %v is not between %v and %v",
				d, minSessionTimeout, maxSessionTimeout)
		}
		c.sessionTimeout = d
		return nil
	}
}

// WithConnectTimeout limits one attempt to connect, including the handshakes of TLS and ZooKeeper.
// It also limits how long one attempt at an operation waits for a connection. Default 2.5 s. An
// attempt to connect takes at most a third of the session timeout.
func WithConnectTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("WithConnectTimeout: %v is not positive", d)
		}
		c.connectTimeout = d
		return nil
	}
}

// WithQuorumHeartbeat makes the heartbeats of a session transactions while there are holds. A
// majority of the servers must agree to a transaction, so nothing is assumed of the ZooKeeper
// leader. A hold begins with the deadline of the session, which other answers may have moved before.
//
// Without it a heartbeat is a sync, which the ZooKeeper leader answers alone. A leader that was
// paused and meanwhile replaced answers for up to a tick after it wakes up. The client allows for
// that if the session timeout is at least eight ticks; see docs/guarantees.md.
//
// A client that has a hold sends one transaction in each sixth of the session timeout. It changes
// nothing, and takes about 100 bytes in the log of each server. A thousand such clients with a
// timeout of 30 s make 200 transactions a second.
func WithQuorumHeartbeat() Option {
	return func(c *config) error {
		c.quorum = true
		return nil
	}
}

// WithLossPolicy sets what a suspended connection means for holds: UntilDeadline, the default, or
// Strict.
func WithLossPolicy(p LossPolicy) Option {
	return func(c *config) error {
		if p != UntilDeadline && p != Strict {
			return fmt.Errorf("WithLossPolicy: %v is neither UntilDeadline nor Strict", p)
		}
		c.loss = p
		return nil
	}
}

// WithLossDeadline sets for which part of the session timeout a client relies on its session, and
// on the holds in it, without an answer of the ZooKeeper leader. It is from 1/3 to 3/4; default
// 2/3. Below 1/3, one late answer would end the session. The rest up to 5/6 of the timeout is the
// margin for clocks that are wrong: a smaller part leaves more margin and less time for outages.
// See docs/guarantees.md.
func WithLossDeadline(fraction float64) Option {
	return func(c *config) error {
		if !(fraction >= 1.0/3 && fraction <= 3.0/4) { // also true for NaN
			return fmt.Errorf("WithLossDeadline: %v is not between 1/3 and 3/4", fraction)
		}
		c.deadline = fraction
		return nil
	}
}

// WithRetry sets the policy for repeating operations that failed for want of a connection. The
// package documentation says which operations may be repeated. Default: BoundedExponential(100ms,
// 2s, 5).
func WithRetry(p retry.Policy) Option {
	return func(c *config) error {
		if p == nil {
			return fmt.Errorf("WithRetry: nil policy: use retry.Never for none")
		}
		c.retry = p
		return nil
	}
}

// WithNamespace puts all paths of the client under /name. Curator: namespace.
func WithNamespace(name string) Option {
	return func(c *config) error {
		ns, err := namespacePath(name)
		if err != nil {
			return fmt.Errorf("WithNamespace: %w", err)
		}
		c.namespace = ns
		return nil
	}
}

// namespacePath turns "a/b" into "/a/b", "" into "".
func namespacePath(name string) (string, error) {
	switch {
	case name == "":
		return "", nil
	case name[0] == '/':
		return "", fmt.Errorf("namespace %q: %w: write it without the slash in front", name, ErrInvalidPath)
	}
	if err := znode.ValidatePath("/" + name); err != nil {
		return "", fmt.Errorf("namespace %q: %w", name, err)
	}
	return "/" + name, nil
}

// WithLogger sets the logger of the client and of the recipes on it. Sessions and states are logged
// at Info, losses and problems that the client works around at Warn, connections at Debug. The
// logger of the client is named "docent", and that of a recipe "docent.mutex" and so on. Messages
// and field names are stable; docs/observability.md lists them. Default: no logging.
//
// A goroutine of the client writes the entries, in order, so that a log that blocks delays nothing. Up to
// 16,384 entries wait for it. Further ones are dropped, and an entry says how many. Close waits at most one
// second for the log. A panic of the logger is printed to standard error. Errors of the program that are
// logged, such as that of a leader function, must not change. What the client asks directly must not wait: for
// an entry at Debug whether it is enabled, and for any entry the level of zap.AddStacktrace and the clock of
// zap.WithClock.
func WithLogger(l *zap.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return fmt.Errorf("WithLogger: nil logger: use zap.NewNop for none")
		}
		return c.setLogger("WithLogger", l)
	}
}

// WithSlog is WithLogger for a slog logger. Messages, names and values of fields are the same. The
// name of the logger is the attribute "logger", and nested fields are groups. WithSlog and WithLogger
// exclude each other.
func WithSlog(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return fmt.Errorf("WithSlog: nil logger: leave the option out for none")
		}
		return c.setLogger("WithSlog", zap.New(slogcore.New(l.Handler())))
	}
}

// setLogger sets the logger that an option gives.
func (c *config) setLogger(option string, l *zap.Logger) error {
	if c.logOption != "" && c.logOption != option {
		return fmt.Errorf("%s and %s exclude each other", c.logOption, option)
	}
	c.logOption, c.log = option, l.Named("docent")
	return nil
}

// WithAuth adds a credential, such as scheme "digest" with "user:password". The client presents it
// in each new session and at each reconnect, before any other request. New returns an error for a
// digest without a colon. If the servers refuse a credential, the state is AuthFailed. Curator:
// authorization, which replaces the credentials of earlier calls; this adds one.
//
// The scheme digest sends the password itself at each connection: without WithTLS it can be read in
// the network. There is no SASL, and so no Kerberos: servers that require it close the session with
// the ServerError -124.
func WithAuth(scheme string, value []byte) Option {
	return func(c *config) error {
		if scheme == "" {
			return fmt.Errorf("WithAuth: the scheme is empty")
		}
		if err := checkSecret(scheme, value); err != nil {
			return fmt.Errorf("WithAuth: scheme %q: %w", scheme, err)
		}
		c.auth = append(c.auth, conn.Credential{Scheme: scheme, Value: slices.Clone(value)})
		return nil
	}
}

// checkSecret refuses a secret that was omitted by mistake, such as the value of an environment
// variable that is not set. Its error does not show the secret.
func checkSecret(scheme string, value []byte) error {
	switch {
	case scheme != "digest":
		return nil
	case len(value) == 0:
		return fmt.Errorf("the value is empty: want user:password")
	case !bytes.Contains(value, []byte(":")):
		return fmt.Errorf("the value has no colon: want user:password")
	}
	return nil
}

// WithACL sets the function that returns the ACL of a node that is created without the option ACL,
// or as a missing parent. Its argument is the full path with chroot, namespace and protection
// prefix, without the sequence number. With an empty list the create fails with zk.ErrInvalidACL, so
// that a path that was forgotten is not open to all clients. By default each node is: see zk.WorldACL.
// Curator: ACLProvider, whose null stands for its default list.
func WithACL(provider func(path string) []zk.ACL) Option {
	return func(c *config) error {
		if provider == nil {
			return fmt.Errorf("WithACL: nil function")
		}
		c.acl = provider
		return nil
	}
}

// WithTLS connects with TLS. If settings has no ServerName, certificates are verified against the
// name in the connection string, not against the address that it resolves to. WithTLS clones
// settings.
func WithTLS(settings *tls.Config) Option {
	return func(c *config) error {
		if settings == nil {
			return fmt.Errorf("WithTLS: nil configuration")
		}
		c.tls = settings.Clone()
		return nil
	}
}

// WithDialer replaces net.Dialer.DialContext. The address is a server of the connection string,
// name and port; the context ends with the connect timeout. With WithDialer names are not resolved,
// unless WithResolver is given too: each name then counts as one server, even if it stands for
// several. Several goroutines may call dial at a time.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) error {
		if dial == nil {
			return fmt.Errorf("WithDialer: nil function")
		}
		c.dial = dial
		return nil
	}
}

// WithResolver replaces net.DefaultResolver.LookupHost. The host is the name of a server; the
// context ends with the connect timeout. resolve returns the addresses of the host. Each attempt to
// connect resolves the name again and tries another address. A dialer of WithDialer gets the
// address. Several goroutines may call resolve at a time.
func WithResolver(resolve func(ctx context.Context, host string) (addresses []string, err error)) Option {
	return func(c *config) error {
		if resolve == nil {
			return fmt.Errorf("WithResolver: nil function")
		}
		c.resolve = resolve
		return nil
	}
}

// WithRandom replaces the random numbers that determine the order of servers and the lengths of
// pauses, so that a simulation can be repeated. random returns a number from 0 to n-1. It is called
// by one goroutine at a time, and each connection takes a seed of its own from it: it does not
// choose a pause directly. The default is rand.Int64N of math/rand/v2. The random ids in node
// names do not come from it.
func WithRandom(random func(n int64) int64) Option {
	return func(c *config) error {
		if random == nil {
			return fmt.Errorf("WithRandom: nil function")
		}
		var mu sync.Mutex
		c.random = func(n int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			return random(n)
		}
		return nil
	}
}
