package inspect

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/internal/option"
)

// Option configures what is read.
type Option func(*config) error

type config struct {
	depth     int // of the deepest nodes below the root; -1: any
	limit     int // nodes to read; 0: any number
	maxNodes  int // of one object
	all       bool
	offset    time.Duration
	limitNode func(path string) string
}

func newConfig(opts []Option) (config, error) {
	cfg := config{depth: -1, maxNodes: 1000}
	return cfg, option.Apply(&cfg, opts)
}

// WithDepth ends a walk depth levels below its root: 0 is the root alone, 1 its children, too. The
// nodes of an object do not count.
func WithDepth(depth int) Option {
	return func(c *config) error {
		if depth < 0 {
			return fmt.Errorf("WithDepth: %d is negative", depth)
		}
		c.depth = depth
		return nil
	}
}

// WithLimit ends a walk with ErrLimit before it reads more nodes than that. The default is no limit.
func WithLimit(nodes int) Option {
	return func(c *config) error {
		if nodes < 1 {
			return fmt.Errorf("WithLimit: %d is not positive", nodes)
		}
		c.limit = nodes
		return nil
	}
}

// WithMaxNodes sets how many nodes of one object are read: the first ones of a queue. Object.Unread
// has the number of the others. The default is 1000.
func WithMaxNodes(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("WithMaxNodes: %d is not positive", n)
		}
		c.maxNodes = n
		return nil
	}
}

// WithAll also yields nodes that are no object of a recipe: KindEmpty, among which are locks that are
// free, and KindUnknown.
func WithAll() Option {
	return func(c *config) error {
		c.all = true
		return nil
	}
}

// WithClockOffset says how far the clock of the ZooKeeper leader is ahead of the local one, so that
// Object.At can be compared with the times of nodes. The default is 0. A program can measure the
// offset only by creating a node, whose Stat has the time: this package creates none.
func WithClockOffset(d time.Duration) Option {
	return func(c *config) error {
		c.offset = d
		return nil
	}
}

// WithLimitNode names the node with the shared limit of the semaphore at a path, as
// semaphore.WithSharedLimit does for its users: the servers do not know it. "" is none. Then
// Object.Limit is the fixed limit that docent records.
func WithLimitNode(node func(semaphore string) string) Option {
	return func(c *config) error {
		if node == nil {
			return errors.New("WithLimitNode: the function is nil")
		}
		c.limitNode = node
		return nil
	}
}
