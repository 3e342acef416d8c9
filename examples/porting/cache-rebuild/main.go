// Cache-rebuild places orders, and after each order reads all orders from a cache that all
// processes share. A read-write lock protects the cache. A process that misses orders in the cache
// rebuilds it, and then keeps a read hold on what it wrote.
//
// It is a port of CacheRebuild.java in the same folder. Both can run at the same time, with the
// same -path and -dir.
//
//	go run ./examples/porting/cache-rebuild -dir /tmp/cache
//	go run ./examples/porting/cache-rebuild -dir /tmp/cache -connect 127.0.0.1:2181
//
// The first command starts a ZooKeeper server for tests in the same process. The second one uses a
// real server; start it several times at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

func main() { program.Main(newCacheRebuild(flag.CommandLine).run) }

type cacheRebuild struct {
	name    string
	path    string
	dir     string
	rounds  int
	lock    *rwlock.RWLock
	rebuilt int
}

func newCacheRebuild(flags *flag.FlagSet) *cacheRebuild {
	c := &cacheRebuild{name: fmt.Sprintf("go-%d", os.Getpid())}
	flags.StringVar(&c.path, "path", "/docent-examples/porting/cache-rebuild", "`node` of the lock")
	flags.StringVar(&c.dir, "dir", "", "`folder` of the orders and the cache")
	flags.IntVar(&c.rounds, "rounds", 10, "how many orders to place")
	return c
}

func (c *cacheRebuild) run(ctx context.Context, connect string, out io.Writer) (err error) {
	if c.dir == "" {
		return errors.New("-dir is missing")
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "orders"), 0o755); err != nil {
		return err
	}
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if c.lock, err = rwlock.New(client, c.path); err != nil {
		return err
	}
	for i := range c.rounds {
		if err := c.order(ctx, i); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s has placed %d orders and rebuilt the cache %d times\n", c.name, c.rounds, c.rebuilt)
	return nil
}

func (c *cacheRebuild) order(ctx context.Context, number int) error {
	order := fmt.Sprintf("%s-%d", c.name, number)
	if err := os.WriteFile(filepath.Join(c.dir, "orders", order), nil, 0o644); err != nil {
		return err
	}
	all, err := c.get(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(all, order) {
		return fmt.Errorf("%s is not among the %d orders in the cache", order, len(all))
	}
	return nil
}

// get returns at least all orders that were placed before the call.
func (c *cacheRebuild) get(ctx context.Context) ([]string, error) {
	cached, fresh, err := c.readFresh(ctx)
	if fresh || err != nil {
		return cached, err
	}
	return c.rebuild(ctx)
}

// readFresh reads the cache and reports whether it is fresh. The original does that in get, between
// acquire and finally.
func (c *cacheRebuild) readFresh(ctx context.Context) (cached []string, fresh bool, err error) {
	err = c.lock.Read().Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		var orders []string
		if cached, err = c.read(ctx); err == nil {
			orders, err = c.orders()
		}
		fresh = err == nil && slices.Equal(cached, orders)
		return err
	})
	return cached, fresh, err
}

func (c *cacheRebuild) rebuild(ctx context.Context) (cached []string, err error) {
	written, reading, err := c.writeThenRead(ctx)
	if err != nil {
		return nil, err
	}
	defer release(reading, &err)
	cached, err = c.read(reading.Context(ctx)) // from ctx, because the context of the write hold has ended
	if err != nil {
		return nil, err
	}
	if !slices.Equal(cached, written) {
		return nil, fmt.Errorf("another process has written the cache: %d orders, and it had %d",
			len(cached), len(written))
	}
	return cached, nil
}

// writeThenRead returns what it wrote, and a read hold. The read hold begins before the write hold
// is released, so no other writer gets the lock in between. The holds overlap, and one of them
// outlives the function, so Do does not fit.
func (c *cacheRebuild) writeThenRead(ctx context.Context) (written []string, reading *recipes.Hold, err error) {
	writing, err := c.lock.Write().Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	ctx = writing.Context(ctx)
	if written, err = c.write(ctx); err == nil {
		// Acquire does not wait, because ctx carries the write hold. Curator looks at the thread
		// instead.
		reading, err = c.lock.Read().Acquire(ctx)
	}
	if err = errors.Join(err, writing.Release()); err != nil && reading != nil {
		release(reading, &err)
	}
	return written, reading, err
}

// write brings the cache up to date, unless another process has done so since readFresh.
func (c *cacheRebuild) write(ctx context.Context) ([]string, error) {
	orders, err := c.orders()
	if err != nil {
		return nil, err
	}
	cached, err := c.read(ctx)
	if err != nil || slices.Equal(cached, orders) {
		return orders, err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "list"), []byte(strings.Join(orders, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	if err := pause(ctx, 2*time.Millisecond); err != nil {
		return nil, err
	}
	c.rebuilt++
	return orders, os.WriteFile(filepath.Join(c.dir, "size"), []byte(strconv.Itoa(len(orders))), 0o644)
}

// read returns the cache. The cache is in two files, which are written one after the other. So a
// read fails during a write, and after a write that was stopped in between.
func (c *cacheRebuild) read(ctx context.Context) ([]string, error) {
	list, err := os.ReadFile(filepath.Join(c.dir, "list"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, time.Millisecond); err != nil {
		return nil, err
	}
	size, err := os.ReadFile(filepath.Join(c.dir, "size"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cached := strings.Fields(string(list))
	if string(size) != strconv.Itoa(len(cached)) {
		return nil, fmt.Errorf("the cache is being written: %d orders, and a size of '%s'", len(cached), size)
	}
	return cached, nil
}

// orders returns all orders, from which the cache is made.
func (c *cacheRebuild) orders() (names []string, err error) {
	files, err := os.ReadDir(filepath.Join(c.dir, "orders"))
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release releases a hold and adds the error, which reports a loss before the end of the work, to
// err. It is for the read hold of writeThenRead. For a hold of one function call Do.
func release(hold *recipes.Hold, err *error) { *err = errors.Join(*err, hold.Release()) }
