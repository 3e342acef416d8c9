package redislock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/metrics"
)

// Option configures a Client.
type Option func(*config) error

type config struct {
	ttl     time.Duration
	poll    time.Duration
	prefix  string
	log     *zap.Logger
	metrics metrics.Metrics
}

func defaults() config {
	return config{
		ttl: 30 * time.Second, poll: time.Second, prefix: "docent:", log: zap.NewNop(),
	}
}

// WithTTL sets for how long Redis keeps the key of a lock after the last renewal. A holder that
// crashed keeps the others waiting for that time. A holder that is cut off loses its hold after nine
// tenths of it. It is a second at least. The default is 30 s.
func WithTTL(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Second {
			return fmt.Errorf("WithTTL: %v is less than a second", d)
		}
		c.ttl = d.Truncate(time.Millisecond)
		return nil
	}
}

// WithPollInterval sets after how long a waiter asks again at the latest. It usually asks when the
// release is published, or when the key of a holder that crashed expires. The interval only matters
// where a message was lost, the key was deleted by hand, or locks of one name are fair in some programs and
// not in others. It is 10 ms at least. The default is 1 s.
func WithPollInterval(d time.Duration) Option {
	return func(c *config) error {
		if d < 10*time.Millisecond {
			return fmt.Errorf("WithPollInterval: %v is less than 10ms", d)
		}
		c.poll = d
		return nil
	}
}

// WithPrefix sets what the keys of all locks begin with. The default is "docent:". Clients with other
// prefixes have other locks. With "" the name of a lock is its key, which other programs may use as a
// lock, too: see "Other Redis locks" in the documentation of the package. The prefix must not contain
// a brace.
func WithPrefix(prefix string) Option {
	return func(c *config) error {
		if strings.ContainsAny(prefix, "{}") {
			return fmt.Errorf("WithPrefix: %q contains a brace", prefix)
		}
		c.prefix = prefix
		return nil
	}
}

// WithLogger sets the logger, which gets the name docent. By default nothing is logged.
func WithLogger(log *zap.Logger) Option {
	return func(c *config) error {
		if log == nil {
			return errors.New("WithLogger: nil logger")
		}
		c.log = log.Named("docent")
		return nil
	}
}

// WithMetrics has waits, waiters, holds and losses measured: metrics.LockWait, LockWaiters, LockHold
// and LockLosses. The recipe is "foreign", and the path is the key of the lock.
func WithMetrics(m metrics.Metrics) Option {
	return func(c *config) error {
		if m == nil {
			return errors.New("WithMetrics: nil Metrics")
		}
		c.metrics = m
		return nil
	}
}
