package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/framework/metrics"
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
	metrics        metrics.Metrics
	waitWarning    time.Duration
	auth           []conn.Credential
	acl            func(path string) []zk.ACL
	tls            *tls.Config
	dial           func(ctx context.Context, network, address string) (net.Conn, error) // nil: that of net.Dialer
	resolve        func(ctx context.Context, host string) ([]string, error)             // nil: names are for the dialer
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
	for i, opt := range opts {
		if opt == nil {
			return config{}, fmt.Errorf("framework: option %d is nil", i)
		}
		if err := opt(&cfg); err != nil {
			return config{}, fmt.Errorf("framework: %w", err)
		}
	}
	if cfg.dial == nil {
		cfg.dial = (&net.Dialer{}).DialContext
		if cfg.resolve == nil {
			cfg.resolve = net.DefaultResolver.LookupHost
		}
	}
	return cfg, nil
}

// WithSessionTimeout sets the session timeout to ask for; the servers decide (Session.Timeout tells) and by default accept 2 to
// 20 of their ticks. A crashed client's ephemeral nodes stay for that long, and a client that hears nothing of the leader for
// two thirds of it (see WithLossDeadline) gives up its holds. It should be four ticks or more, better eight. Default 30 s. Between 100 ms and 24 h.
func WithSessionTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d < minSessionTimeout || d > maxSessionTimeout {
			return fmt.Errorf("session timeout %v is not between %v and %v", d, minSessionTimeout, maxSessionTimeout)
		}
		c.sessionTimeout = d
		return nil
	}
}

// WithConnectTimeout bounds one attempt to connect, the handshakes of TLS and ZooKeeper included, and how long one attempt at
// an operation waits for a connection. Default 2.5 s; attempts to connect take no longer than a third of the session timeout.
func WithConnectTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("connect timeout %v is not positive", d)
		}
		c.connectTimeout = d
		return nil
	}
}

// WithQuorumHeartbeat makes the heartbeats of a session transactions while there are holds, of which most servers must agree. Without it
// a heartbeat is a sync, which the ZooKeeper leader alone answers: a leader that was paused, and replaced meanwhile, does so for up to
// a tick after it wakes up, which the client allows for if the session timeout is at least eight ticks; see docs/guarantees.md. With it
// nothing is assumed of leaders. It costs a transaction that changes nothing, about 100 bytes in the log of each server, for each
// sixth of the session timeout and client that has a hold: a thousand such clients with a timeout of 30 s make 200 transactions a second.
func WithQuorumHeartbeat() Option {
	return func(c *config) error {
		c.quorum = true
		return nil
	}
}

// WithLossPolicy says what a suspended connection means for holds: UntilDeadline, the default, or Strict.
func WithLossPolicy(p LossPolicy) Option {
	return func(c *config) error {
		if p != UntilDeadline && p != Strict {
			return fmt.Errorf("%v is neither UntilDeadline nor Strict", p)
		}
		c.loss = p
		return nil
	}
}

// WithLossDeadline sets which part of the session timeout a session, and the holds with it, can be relied on without an answer of the
// ZooKeeper leader. Default 2/3. What is left until 5/6 of the timeout is the margin for clocks that are wrong. Less than the default leaves
// more margin and less time for outages. Between 1/3, below which one answer that is late would end the session, and 3/4. See
// docs/guarantees.md.
func WithLossDeadline(fraction float64) Option {
	return func(c *config) error {
		if !(fraction >= 1.0/3 && fraction <= 3.0/4) { // not a number is neither
			return fmt.Errorf("loss deadline %v is not between 1/3 and 3/4 of the session timeout", fraction)
		}
		c.deadline = fraction
		return nil
	}
}

// WithRetry sets the policy by which operations are repeated that failed for want of a connection and may be repeated: see
// the package documentation for which are. Default: BoundedExponential(100ms, 2s, 5).
func WithRetry(p retry.Policy) Option {
	return func(c *config) error {
		if p == nil {
			return fmt.Errorf("retry policy is nil: use retry.Never for none")
		}
		c.retry = p
		return nil
	}
}

// WithNamespace puts everything the client does under /name. Curator: namespace.
func WithNamespace(name string) Option {
	return func(c *config) error {
		ns, err := namespacePath(name)
		c.namespace = ns
		return err
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

// WithLogger sets where the client and the recipes on it log: sessions and states at Info, losses
// and what they work around at Warn, connections at Debug. The client logs under the name "docent",
// a recipe under that and its own, such as "docent.mutex". Messages and field names are stable:
// docs/observability.md lists them. Default: nowhere.
func WithLogger(l *zap.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return fmt.Errorf("logger is nil: use zap.NewNop for none")
		}
		c.log = l.Named("docent")
		return nil
	}
}

// WithAuth adds a credential, such as scheme "digest" with "user:password". It is presented in each
// new session and at each reconnect, before anything else is sent. New refuses a digest without a
// colon, an empty one among them; whether the servers accept a credential is the state AuthFailed.
// Curator: authorization, which replaces what earlier calls gave; this adds.
//
// The scheme digest sends the password itself, at each connection: without WithTLS all that see the
// network can read it. There is no SASL, and with it no Kerberos: servers that require it close the
// session with the ServerError -124.
func WithAuth(scheme string, value []byte) Option {
	return func(c *config) error {
		if scheme == "" {
			return fmt.Errorf("credential has no scheme")
		}
		if err := checkSecret(scheme, value); err != nil {
			return fmt.Errorf("credential of scheme %q: %w", scheme, err)
		}
		c.auth = append(c.auth, conn.Credential{Scheme: scheme, Value: slices.Clone(value)})
		return nil
	}
}

// checkSecret refuses what was left out by mistake, such as the value of an environment variable
// that is not set. Its error does not show the secret.
func checkSecret(scheme string, value []byte) error {
	switch {
	case scheme != "digest":
		return nil
	case len(value) == 0:
		return fmt.Errorf("it is empty: want user:password")
	case !bytes.Contains(value, []byte(":")):
		return fmt.Errorf("it has no colon: want user:password")
	}
	return nil
}

// WithACL sets the ACL of nodes that are created without one of their own, missing parents included. The path is the full one,
// with chroot, namespace, protection prefix and without the sequence number. A nil list means all permissions for everybody, which is
// also the default. Curator: ACLProvider.
func WithACL(provider func(path string) []zk.ACL) Option {
	return func(c *config) error {
		if provider == nil {
			return fmt.Errorf("ACL provider is nil")
		}
		c.acl = provider
		return nil
	}
}

// WithTLS connects with TLS. Where settings has no ServerName, the name in the connection string is verified, not the address it
// resolves to. The settings are cloned.
func WithTLS(settings *tls.Config) Option {
	return func(c *config) error {
		if settings == nil {
			return fmt.Errorf("TLS configuration is nil")
		}
		c.tls = settings.Clone()
		return nil
	}
}

// WithDialer replaces net.Dialer.DialContext. It is given a server as it is in the connection string, name and port, and a context that ends
// with the connect timeout. With it names are not resolved, unless there is WithResolver too: a name counts as one server then, though it
// may stand for several. dial may be called by several goroutines at a time.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) error {
		if dial == nil {
			return fmt.Errorf("dialer is nil")
		}
		c.dial = dial
		return nil
	}
}

// WithResolver replaces net.DefaultResolver.LookupHost. It is given the name of a server, and a context that ends with the connect timeout, and
// returns the addresses that the name stands for. Each attempt to connect resolves anew and tries another address of them. With WithDialer
// the dialer is given the address. resolve may be called by several goroutines at a time.
func WithResolver(resolve func(ctx context.Context, host string) (addresses []string, err error)) Option {
	return func(c *config) error {
		if resolve == nil {
			return fmt.Errorf("resolver is nil")
		}
		c.resolve = resolve
		return nil
	}
}

// WithRandom replaces the random numbers that decide about the order of servers and the lengths of pauses, so that a simulation can
// repeat itself. It is given n and returns one of 0 to n-1, and is called once at a time. The default is rand.Int64N of math/rand/v2. The
// random ids in node names are not of its making.
func WithRandom(random func(n int64) int64) Option {
	return func(c *config) error {
		if random == nil {
			return fmt.Errorf("source of random numbers is nil")
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
