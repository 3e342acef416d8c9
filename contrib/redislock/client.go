package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/option"
)

// ErrClosed means that the Client is closed, which ends its holds and waits.
var ErrClosed = errors.New("redislock: client closed")

// Client makes locks on one Redis. It owns the goroutines of its locks and holds, and one connection
// for messages, from the first wait for a lock until Close. It does not own the client of Redis. A Client
// is safe for concurrent use.
type Client struct {
	redis   Redis // nil in that of a Redlock
	cfg     config
	process string // what its owner values begin with
	wakeups *wakeups

	mu     sync.Mutex
	closed bool
	open   context.Context // ends when Close begins
	close  context.CancelFunc
	ended  chan struct{}  // closed when Close is done
	work   sync.WaitGroup // acquires, holds and cleanups
	asking sync.WaitGroup // requests, which work starts
}

// NewClient returns a client that uses rdb: a redis.Client, also one with Sentinel, or a
// redis.ClusterClient. It makes no request. It returns an error for nil, for a redis.Ring, which may
// move a key while its lock is held, and for options that are not valid. Close the Client before rdb.
//
// go-redis regards deadlines of contexts only with redis.Options.ContextTimeoutEnabled. Without it a
// request takes up to ReadTimeout for each of its tries, 3 s by default, and Close waits for that.
func NewClient(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	r, err := ofGoRedis(rdb)
	if err != nil {
		return nil, err
	}
	return NewClientOf(r, opts...)
}

// ofGoRedis returns the Redis of a client of go-redis.
func ofGoRedis(rdb redis.UniversalClient) (Redis, error) {
	if _, ring := rdb.(*redis.Ring); ring {
		return nil, errRing
	}
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errNilRedis
	}
	return goRedis{rdb}, nil
}

var errNilRedis = errors.New("redislock: the client of Redis is nil")

// NewClientOf is NewClient for another client of Redis than go-redis.
func NewClientOf(r Redis, opts ...Option) (*Client, error) {
	if r == nil {
		return nil, errNilRedis
	}
	c, err := newClient(r, opts)
	if err == nil {
		c.work.Go(func() { c.wakeups.run(c.open) })
	}
	return c, err
}

func newClient(r Redis, opts []Option) (*Client, error) {
	cfg := defaults()
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	c := &Client{
		redis: r, cfg: cfg, process: process(), wakeups: newWakeups(r, cfg), ended: make(chan struct{}),
	}
	c.open, c.close = context.WithCancel(context.Background())
	return c, nil
}

// process returns the host and the process, for people that look at the keys.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/", host, os.Getpid())
}

func (c *Client) newOwner() string { return c.process + rand.Text() }

// Close ends all holds and waits of the client, releases its locks, and waits for its goroutines. A
// request that fails is not made again: then the lock is free after its time to live. Close takes as
// long as the requests that are under way, at most. Further calls wait for the first one and do
// nothing. Close must not be called by what it waits for: the Metrics and the Logger of the Client. It
// returns an error only for the zero value.
func (c *Client) Close() error {
	if c.open == nil {
		return fmt.Errorf("redislock: close: %w", framework.ErrZeroValue)
	}
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		c.close()
		c.work.Wait()
		c.asking.Wait()
		close(c.ended)
	}
	<-c.ended
	return nil
}

// enter begins an acquire, which Close waits for until leave.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.work.Add(1)
	return nil
}

func (c *Client) leave() { c.work.Done() }

// result is what became of a request.
type result[T any] struct {
	answer T
	err    error
}

// start makes a request in the background. Only what Close waits for may call it.
func start[T any](ctx context.Context, c *Client, request func(context.Context) (T, error)) <-chan result[T] {
	results := make(chan result[T], 1)
	c.asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.ttl/3)
		defer cancel()
		answer, err := request(ctx)
		results <- result[T]{answer, err}
	})
	return results
}

// ask makes a request that may also be executed after ask has returned, because ctx has ended.
func ask[T any](ctx context.Context, c *Client, request func(context.Context) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ttl/4)
	defer cancel()
	select {
	case r := <-start(ctx, c, request):
		return r.answer, r.err
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// until returns the local time until which a key lives that was set by a request sent at begun, by a
// server whose clock may be faster by a tenth, or may be set forward by that part of the time to live.
func (c *Client) until(begun time.Time) time.Time { return begun.Add(c.cfg.ttl - c.cfg.ttl/10) }

func (c *Client) ttl() int64 { return c.cfg.ttl.Milliseconds() }
