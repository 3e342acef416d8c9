package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/listen"
	"github.com/docent-zk/docent/internal/signal"
)

var (
	// ErrClosed means that a Cache is closed.
	ErrClosed = errors.New("cache: closed")
	// ErrTooLarge means that a cache has ended because it would exceed WithLimit.
	ErrTooLarge = errors.New("cache: too large")

	// errGoroutineEnded means that code of the program, such as a filter, has ended the goroutine.
	errGoroutineEnded = errors.New("cache: code of the program ended the goroutine of the cache")
)

// errZero is the error of a zero Cache.
var errZero = fmt.Errorf("%w: cache.Cache", framework.ErrZeroValue)

// Cache keeps a subtree in memory. It is safe for concurrent use. Curator: CuratorCache.
type Cache struct {
	client *framework.Client
	root   string
	cfg    config
	log    *zap.Logger
	stop   context.CancelFunc // asks run to end
	done   chan struct{}      // closed when run has ended
	err    error              // why it has; set before done is closed

	mu        sync.RWMutex // held while an event is queued for the listeners, so that they get all in order
	tree      tree
	listeners listen.Listeners[Event]
	current   chan struct{} // closed while the cache is current
	stale     time.Time     // since when; zero: the cache is current, or was never ready
}

// New makes a cache of path, and starts to read in the background. It makes no request itself, and
// returns an error for an unusable client, an invalid path or option, and framework.ErrClosed if
// the client is closed. The cache works through lost connections and sessions until Close is
// called, the client is closed, or a limit is exceeded.
func New(client *framework.Client, path string, opts ...Option) (*Cache, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("new cache: %w", err)
	}
	if err := bridge.Of(client).Validate(); err != nil {
		return nil, fmt.Errorf("new cache: %w", err)
	}
	if err := framework.CheckPath(path); err != nil {
		return nil, fmt.Errorf("new cache: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Cache{
		client: client, root: path, cfg: cfg, stop: stop, done: make(chan struct{}),
		log:     client.Logger().Named("cache").With(zap.String("path", path)),
		tree:    tree{root: path, entries: map[string]*entry{}, names: cfg.namesOnly},
		current: make(chan struct{}),
	}
	for _, fn := range cfg.listeners {
		c.listeners.Listen(fn)
	}
	if !bridge.Of(client).Go(func() { c.run(ctx) }) {
		stop()
		return nil, fmt.Errorf("new cache: %w", framework.ErrClosed)
	}
	return c, nil
}

// Close ends the cache, removes its watch and waits, for at most a second, until the listeners have
// handled all events. The content stays readable. Close may be called from a listener, and more
// than once. On a server without persistent watches, those that the cache has set stay on the
// server until they fire or the connection ends.
func (c *Cache) Close() {
	if c.client == nil {
		return
	}
	c.stop()
	<-c.done
	c.listeners.Close(listen.Wait)
}

// Done returns a channel that is closed when the cache has ended.
func (c *Cache) Done() <-chan struct{} {
	if c.client == nil {
		return signal.Closed
	}
	return c.done
}

// Err returns nil until Done is closed. Then it returns ErrClosed after Close, framework.ErrClosed
// after the end of the client, an error that matches ErrTooLarge if a limit was exceeded, or another
// one if a filter has ended the goroutine of the cache.
func (c *Cache) Err() error {
	if c.client == nil {
		return errZero
	}
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// WaitReady waits until the cache is current, and returns nil then. It fails with the error of Err
// once the cache has ended, with that of ctx if that ends first or has ended, and with
// framework.ErrNilContext.
func (c *Cache) WaitReady(ctx context.Context) error {
	switch {
	case c.client == nil:
		return errZero
	case ctx == nil:
		return framework.ErrNilContext
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the cache of %s: %w", c.root, ctxerr.Of(ctx))
	}
	c.mu.RLock()
	current := c.current
	c.mu.RUnlock()
	select {
	case <-current:
		return nil
	default:
	}
	select {
	case <-current:
		return nil
	case <-c.done:
		return fmt.Errorf("wait for the cache of %s: %w", c.root, c.Err())
	case <-ctx.Done():
		return fmt.Errorf("wait for the cache of %s: %w", c.root, ctxerr.Of(ctx))
	}
}

// StaleSince reports whether the cache is stale, and since when: since the connection was lost, or
// since the cache has ended. A cache that was never ready is not stale.
func (c *Cache) StaleSince() (since time.Time, stale bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.stale, !c.stale.IsZero()
}

// Get returns the node at path. It makes no request.
func (c *Cache) Get(path string) (*Node, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, there := c.tree.entries[path]
	if !there {
		return nil, false
	}
	return e.node, true
}

// Children returns the names of the children of path in the cache, sorted. It reports false if
// there is no node at path. It makes no request.
func (c *Cache) Children(path string) (names []string, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, there := c.tree.entries[path]
	if !there {
		return nil, false
	}
	return e.names(), true
}

// Len returns the number of nodes in the cache.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.tree.entries)
}

// All returns the nodes that are in the cache when the loop begins, by path, in the order of the
// paths. It makes no request.
func (c *Cache) All() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		for _, n := range c.nodes() {
			if !yield(n.Path, n) {
				return
			}
		}
	}
}

// nodes returns all nodes, in the order of their paths.
func (c *Cache) nodes() []*Node {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tree.nodes()
}

// Listen calls fn with each event, in order, in a goroutine of its own: a slow listener delays
// neither the cache nor other listeners. Its events wait in memory, without a bound. The first
// calls are Added for each node that is in the cache already, and Ready if it is current. After
// stop fn is not called again; stop does not wait for a running call. Once the cache has ended, fn
// is not called at all. Listen panics if fn is nil.
func (c *Cache) Listen(fn func(Event)) (stop func()) {
	if fn == nil {
		panic("cache: Listen: nil function")
	}
	if c.client == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var first []Event
	for _, n := range c.tree.nodes() {
		first = append(first, Event{Kind: Added, New: n})
	}
	select {
	case <-c.current:
		first = append(first, Event{Kind: Ready})
	default:
	}
	return c.listeners.ListenFrom(first, fn)
}

// apply changes the tree, and notifies the listeners of the differences.
func (c *Cache) apply(change func(t *tree) []Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range change(&c.tree) {
		c.listeners.Tell(e)
	}
}

// setCurrent notes that everything was read.
func (c *Cache) setCurrent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = time.Time{}
	close(c.current)
	c.listeners.Tell(Event{Kind: Ready})
}

// setStale notes that changes may have been missed since a time, if the cache is current.
func (c *Cache) setStale(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.current:
	default:
		return
	}
	c.current = make(chan struct{})
	c.stale = since
	c.listeners.Tell(Event{Kind: Stale, Since: since})
}

// end ends the cache: it is not current any more, and its listeners end when they have handled all
// events.
func (c *Cache) end() {
	if c.err == nil {
		c.err = errGoroutineEnded
	}
	if errors.Is(c.err, ErrTooLarge) {
		c.log.Warn("the cache has ended", zap.Error(c.err))
	}
	c.mu.Lock()
	select {
	case <-c.current:
		c.current = make(chan struct{})
		c.stale = time.Now()
	default:
	}
	c.mu.Unlock()
	close(c.done)
	c.listeners.Close(0)
}

// full returns an error if the cache exceeds a multiple of a limit.
func (c *Cache) full(times int) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	nodes, bytes := len(c.tree.entries), c.tree.bytes
	switch {
	case c.cfg.maxNodes > 0 && nodes > times*c.cfg.maxNodes:
		return fmt.Errorf("%w: %d nodes at and below %s, the limit is %d", ErrTooLarge, nodes, c.root, c.cfg.maxNodes)
	case c.cfg.maxBytes > 0 && bytes/int64(times) > c.cfg.maxBytes:
		return fmt.Errorf("%w: %d bytes at and below %s, the limit is %d", ErrTooLarge, bytes, c.root, c.cfg.maxBytes)
	}
	return nil
}

// sorted returns the keys of a set, sorted.
func sorted(set map[string]struct{}) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
