package cache

import (
	"errors"
	"fmt"

	"github.com/docent-zk/docent/internal/option"
)

// Option configures a Cache.
type Option func(*config) error

type config struct {
	depth      int // of the deepest nodes below the root; -1: any
	filter     func(path string) bool
	namesOnly  bool
	compressed bool
	maxNodes   int   // 0: any number
	maxBytes   int64 // of data; 0: any number
	listeners  []func(Event)
}

func newConfig(opts []Option) (config, error) {
	cfg := config{depth: -1}
	if err := option.Apply(&cfg, opts); err != nil {
		return config{}, err
	}
	if cfg.namesOnly && cfg.compressed {
		return config{}, errors.New("WithoutData and WithCompression exclude each other")
	}
	return cfg, nil
}

// WithDepth leaves out the nodes that are more than depth levels below the path. 0 is the node at
// the path alone (Curator: NodeCache, SINGLE_NODE_CACHE), 1 is that node and its children (Curator:
// PathChildrenCache). Without WithDepth all levels are in the cache.
func WithDepth(depth int) Option {
	return func(c *config) error {
		if depth < 0 {
			return fmt.Errorf("WithDepth: %d is negative", depth)
		}
		c.depth = depth
		return nil
	}
}

// WithFilter leaves out each node below the path for which keep returns false, with all nodes below
// it. keep must return the same each time. The cache calls it in one goroutine, which waits for it.
func WithFilter(keep func(path string) bool) Option {
	return func(c *config) error {
		if keep == nil {
			return errors.New("WithFilter: the function is nil")
		}
		c.filter = keep
		return nil
	}
}

// WithoutData keeps no data: Node.Data is nil. Then a change of data is no event. Servers send
// small data all the same, and those without persistent watches any data. Curator: cacheData false.
func WithoutData() Option {
	return func(c *config) error {
		c.namesOnly = true
		return nil
	}
}

// WithCompression decompresses the data of each node by gzip. Data that is not gzip, or that would
// be larger than 64 MiB, stays as it is, and Node.Err says why. Curator: COMPRESSED_DATA with
// GzipCompressionProvider.
func WithCompression() Option {
	return func(c *config) error {
		c.compressed = true
		return nil
	}
}

// WithLimit bounds the cache: it ends with ErrTooLarge when the nodes are more, or the bytes of paths
// and data. 0 is no bound. While the cache finds out which of its nodes do not exist any more, it may
// hold up to twice as much.
func WithLimit(nodes int, bytes int64) Option {
	return func(c *config) error {
		if nodes < 0 || bytes < 0 {
			return fmt.Errorf("WithLimit: %d nodes and %d bytes: a limit is negative", nodes, bytes)
		}
		c.maxNodes, c.maxBytes = nodes, bytes
		return nil
	}
}

// WithListener adds a listener, as Listen does, before the cache reads anything. fn may be called
// before New has returned: use Listen if fn uses what New returns.
func WithListener(fn func(Event)) Option {
	return func(c *config) error {
		if fn == nil {
			return errors.New("WithListener: the function is nil")
		}
		c.listeners = append(c.listeners, fn)
		return nil
	}
}
