package etcdlock

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/metrics"
)

// Option is an option of NewClient.
type Option func(*config) error

type config struct {
	ttl     time.Duration
	log     *zap.Logger
	metrics metrics.Metrics
}

const (
	defaultTTL = 10 * time.Second
	minTTL     = 2 * time.Second
	maxTTL     = 24 * time.Hour
)

// WithTTL sets the time to live of the client's lease: whole seconds, 2 s to 24 h. The default is
// 10 s. After that time the locks of a process that has crashed are free. The servers raise a time
// that is less than one and a half of their election timeout. The lease is renewed at a third of the
// time. Each request may take a third of it, and 10 s at most, before it is made again.
func WithTTL(ttl time.Duration) Option {
	return func(c *config) error {
		if ttl < minTTL || ttl > maxTTL || ttl%time.Second != 0 {
			return fmt.Errorf("WithTTL: %v is not a number of whole seconds from %v to %v", ttl, minTTL, maxTTL)
		}
		c.ttl = ttl
		return nil
	}
}

// WithLogger sets the logger, which gets the name docent. The default is none.
func WithLogger(log *zap.Logger) Option {
	return func(c *config) error {
		if log == nil {
			return errors.New("WithLogger: nil")
		}
		c.log = log.Named("docent")
		return nil
	}
}

// WithMetrics sets the receiver of metrics.LockWait, LockWaiters, LockHold and LockLosses. The recipe
// is "foreign", and the path is the name of the lock. The default is none.
func WithMetrics(m metrics.Metrics) Option {
	return func(c *config) error {
		if m == nil {
			return errors.New("WithMetrics: nil")
		}
		c.metrics = m
		return nil
	}
}
