package group

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes/persistent"
)

// Option configures a member, or what is read of a group.
type Option func(*config) error

type config struct {
	kazoo bool
	node  []persistent.Option // of members only
}

func newConfig(opts []Option) (cfg config, err error) {
	return cfg, option.Apply(&cfg, opts)
}

// newReader returns the configuration of what is read of a group.
func newReader(opts []Option) (config, error) {
	cfg, err := newConfig(opts)
	if err == nil && len(cfg.node) > 0 {
		err = errors.New("WithWait is for Join: a reader does not wait for an id")
	}
	return cfg, err
}

// WithKazooNames uses the nodes of kazoo's Party: the name is random and ends in "__party__", and
// the data is the id. There is no payload, and an id may be used twice. All members and readers of
// the group must use it.
func WithKazooNames() Option {
	return func(c *config) error {
		c.kazoo = true
		return nil
	}
}

// WithWait sets for how long a member waits while its id is in use by another process, before it
// ends with ErrIDInUse. 0 is not to wait. The default is twice the session timeout. It is for Join:
// Members and Observe refuse it.
func WithWait(d time.Duration) Option {
	return func(c *config) error {
		if d < 0 {
			return fmt.Errorf("WithWait: %v is negative", d)
		}
		c.node = append(c.node, persistent.WithOccupiedTimeout(d))
		return nil
	}
}
