package counter

import (
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes/mutex"
)

// Option configures a Value, a Count or an Atomic.
type Option func(*config) error

type config struct {
	lock string
	text bool
}

// WithLock sets the path of the lock, a mutex.Mutex, in whose queue an update waits after three
// tries in which other clients were faster. All programs that use the counter should name the same
// lock. The default is the counter's path with "-lock" appended. Curator: PromotedToLock.lockPath.
func WithLock(path string) Option {
	return func(c *config) error {
		if err := framework.CheckPath(path); err != nil {
			return fmt.Errorf("WithLock: %w", err)
		}
		c.lock = path
		return nil
	}
}

// WithText makes an Atomic hold its number as decimal text, as kazoo's Counter does. It is an error
// for the other types. A kazoo Counter with support_curator=True is a Count.
func WithText() Option {
	return func(c *config) error {
		c.text = true
		return nil
	}
}

// newConfig returns the configuration and the lock of a counter.
func newConfig(c *framework.Client, path string, opts []Option) (config, *mutex.Mutex, error) {
	cfg := config{lock: path + "-lock"}
	if err := bridge.Of(c).Validate(); err != nil {
		return cfg, nil, err
	}
	if err := framework.CheckPath(path); err != nil {
		return cfg, nil, err
	}
	if path == "/" {
		return cfg, nil, fmt.Errorf("%w %q: a counter needs a node of its own", framework.ErrInvalidPath, path)
	}
	if err := option.Apply(&cfg, opts); err != nil {
		return cfg, nil, err
	}
	if cfg.lock == path {
		return cfg, nil, errors.New("WithLock: the lock needs a node of its own")
	}
	lock, err := mutex.New(c, cfg.lock)
	return cfg, lock, err
}
