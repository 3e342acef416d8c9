package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
)

// Client acquires locks of one cluster. All of its holds share one lease, which it renews from the
// first acquire until Close. When the lease is lost, the holds are, and the next acquire gets another
// lease. Safe for concurrent use. The zero value is not usable.
type Client struct {
	etcd  *clientv3.Client
	conf  config
	ctx   context.Context // ends with Close
	ended chan struct{}   // closed after that, when all holds have the reason
	close func() error
	busy  sync.WaitGroup // goroutines

	mu      sync.Mutex
	closed  bool
	current *session                  // nil before the first acquire
	holds   map[*recipes.Hold]*record // those that have not ended
	revoked error                     // errors of Close
}

// NewClient returns a Client that makes its requests through etcd. The caller closes etcd, after the
// Client. The options DialKeepAliveTime and DialKeepAliveTimeout of etcd should be set, the latter to
// less than a third of the time to live: without them a connection that lets nothing through is
// noticed after many minutes. With them Linux closes it when a request is not confirmed for
// DialKeepAliveTimeout. Other systems notice it by a ping of gRPC, which it sends after
// DialKeepAliveTime, and after 10 s at the earliest: there the time to live should be 30 s or more, or
// there should be several endpoints.
//
// It makes no request. It returns an error if etcd is nil or an option is bad.
func NewClient(etcd *clientv3.Client, opts ...Option) (*Client, error) {
	conf := config{ttl: defaultTTL, log: zap.NewNop()}
	if err := option.Apply(&conf, opts); err != nil {
		return nil, fmt.Errorf("etcdlock: %w", err)
	}
	if etcd == nil || etcd.ActiveConnection() == nil {
		return nil, errors.New("etcdlock: the client of etcd is nil, or has no connection")
	}
	ctx, end := context.WithCancelCause(context.Background())
	c := &Client{etcd: etcd, conf: conf, ctx: ctx, ended: make(chan struct{}), holds: map[*recipes.Hold]*record{}}
	c.close = sync.OnceValue(func() error { return c.shut(end) })
	return c, nil
}

// Close ends all holds and waits of the client, revokes its lease, and waits for its goroutines. The
// locks are free when it returns nil. If the servers do not answer within a third of the time to
// live, and 10 s at most, it returns an error, and the locks are free when the lease expires. Later
// calls return what the first one returned. Close does not close the client of etcd. Do not call it
// from a logger or from metrics of the client: it would wait for itself.
func (c *Client) Close() error {
	if c.close == nil {
		return fmt.Errorf("etcdlock: close: %w", framework.ErrZeroValue)
	}
	return c.close()
}

func (c *Client) shut(end context.CancelCauseFunc) error {
	c.mu.Lock()
	c.closed = true
	clear(c.holds)
	c.mu.Unlock()
	end(ErrClosed)
	close(c.ended)
	c.busy.Wait()
	if c.revoked != nil {
		return fmt.Errorf("etcdlock: close: the locks are free when the lease expires: %w", c.revoked)
	}
	return nil
}

// start calls fn in a goroutine that Close waits for. It reports false if the client is closed.
func (c *Client) start(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startLocked(fn)
}

func (c *Client) startLocked(fn func()) bool {
	if c.closed {
		return false
	}
	c.busy.Go(fn)
	return true
}

// session returns the session for an acquire of a lock, once its lease is granted.
func (c *Client) session(ctx context.Context) (*session, error) {
	c.mu.Lock()
	s := c.current
	if s == nil || s.over() {
		s = newSession(c)
		if !c.startLocked(s.run) {
			c.mu.Unlock()
			return nil, ErrClosed
		}
		c.current = s
	}
	c.mu.Unlock()
	select {
	case <-s.granted:
		return s, s.err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Cmp returns a comparison that holds as long as the key of h exists, for a transaction that must
// not be applied after another client has acquired the lock:
//
//	cmp, err := client.Cmp(hold)
//	...
//	done, err := etcd.Txn(ctx).If(cmp).Then(clientv3.OpPut("orders/7", "shipped")).Commit()
//	if err == nil && !done.Succeeded {
//		// the hold is lost
//	}
//
// The servers make the comparison, so no clock and no pause of this process matters. The transaction
// needs the same namespace as the client of etcd that NewClient got.
//
// Cmp returns the error of h if h has ended, and another error if h is not a hold of this client: nil,
// a hold of a multi-lock, a hold of a client that is closed.
func (c *Client) Cmp(h *recipes.Hold) (clientv3.Cmp, error) {
	if h == nil {
		return clientv3.Cmp{}, errors.New("etcdlock: compare: nil hold")
	}
	if err := h.Err(); err != nil {
		return clientv3.Cmp{}, fmt.Errorf("etcdlock: compare: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.holds[h]
	if r == nil {
		return clientv3.Cmp{}, errors.New("etcdlock: compare: not a hold of this client")
	}
	return r.exists(), nil
}

// add has Cmp know a hold, unless it has ended.
func (c *Client) add(h *recipes.Hold, r *record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && !r.released {
		r.hold = h
		c.holds[h] = r
	}
}

// remove undoes add.
func (c *Client) remove(r *record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.released = true
	delete(c.holds, r.hold)
}
