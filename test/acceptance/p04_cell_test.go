package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// p04Cell is one case: a step, a fault, a caller.
type p04Cell struct {
	p04Step
	p04Fault
	p04Caller
	path   string
	other  *framework.Client // its network has no faults
	result chan error        // has room for the result of run

	proxy   *proxy.Proxy
	down    atomic.Bool
	client  *framework.Client // behind the proxy
	session *framework.Session
	queue   *mutex.Mutex  // of the other client
	holder  *recipes.Hold // of the other client; nil if the client under test holds
	fault   *fault.Rule
	entered *fault.Rule // has been hit once the client has sent a node for the queue; nil unless the step leaves

	cancel context.CancelFunc
	done   chan struct{} // closed when the client's call has returned
	hold   *recipes.Hold // of the client
	err    error
}

// errP04Missed reports that the client under test lost its session, and not by the fault: before the
// fault took effect, or after the network had recovered. This happens on a machine that hardly lets
// the process run.
var errP04Missed = errors.New("the fault had no effect")

// DialContext is the dialer of the client under test. It fails while the network is down.
func (c *p04Cell) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if c.down.Load() && (!c.sought || c.fault.Hits() > 0) {
		return nil, errors.New("the network is down")
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (c *p04Cell) open(ctx context.Context) (err error) {
	if c.queue, err = mutex.New(c.other, c.path); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if !c.releases() {
		if c.holder, err = c.queue.Acquire(ctx); err != nil {
			return err
		}
	}
	server, _, _ := strings.Cut(testzk.Connect(), ",")
	if c.proxy, err = proxy.New(server); err != nil {
		return err
	}
	c.down.Store(false)
	c.client, err = framework.New(c.proxy.Addr(),
		framework.WithSessionTimeout(testzk.SessionTimeout), framework.WithDialer(c.DialContext))
	if err != nil {
		return err
	}
	if c.session, err = c.client.Session(ctx); err != nil {
		return err
	}
	if c.sought {
		c.proxy.On(fault.Match{Op: fault.OpCreate, Path: c.path}, fault.DropAfter())
	}
	if c.leaves {
		c.entered = c.proxy.On(fault.Match{Op: fault.OpCreate, Path: c.path + "/*-lock-"}, fault.Pass())
	}
	c.fault = c.proxy.On(fault.Match{Op: c.op, Path: c.path + c.p04Step.path}, c.action())
	c.down.Store(true) // the present connection stays open
	return nil
}

// prepare creates the parent.
func (c *p04Cell) prepare(ctx context.Context) error {
	if err := c.other.CreateContainers(ctx, c.path); err != nil || !c.locked {
		return err
	}
	_, err := c.other.SetACL(ctx, c.path, zk.WorldACL(zk.PermAll&^zk.PermWrite), -1)
	return err
}

// releases reports whether the step is the release of the client under test, which then has the
// lock first.
func (c *p04Cell) releases() bool { return c.leaves && c.stays() }

func (c *p04Cell) close(err *error) {
	c.cancel()
	c.heal()
	*err = errors.Join(*err, c.client.Close())
	<-c.done
	c.proxy.Close()
	if c.holder != nil {
		_ = c.holder.Release()
		c.holder = nil
	}
}

// acquire starts the call of the client under test.
func (c *p04Cell) acquire(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	c.done = make(chan struct{})
	mu, err := mutex.New(c.client, c.path)
	if err != nil {
		panic(err)
	}
	go func() {
		defer close(c.done)
		for {
			c.hold, c.err = c.call(ctx, mu)
			// The call is repeated if its deadline ended before a request was sent.
			sent := c.fault.Hits() > 0 || c.leaves && c.entered.Hits() > 0
			if c.within == 0 || sent || ctx.Err() != nil {
				return
			}
		}
	}()
}

func (c *p04Cell) call(ctx context.Context, mu *mutex.Mutex) (*recipes.Hold, error) {
	if c.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.within)
		defer cancel()
	}
	hold, err := mu.Acquire(ctx)
	if err != nil || !c.releases() {
		return hold, err
	}
	return hold, hold.Release() // the step at hand
}

// strike waits until the fault has had its effect.
func (c *p04Cell) strike(ctx context.Context) error {
	if c.cancels && c.leaves {
		queued := func(ctx context.Context) error { return c.inQueue(ctx, 2) }
		if err := c.inSession(ctx, queued); err != nil {
			return err
		}
		c.cancel()
	}
	if err := c.inSession(ctx, c.fault.Wait); err != nil {
		return err
	}
	if c.cancels {
		c.cancel()
	}
	if c.replyIsLate {
		c.proxy.BlackholeReplies(true)
		c.fault.Release()
	}
	if err := c.cutOff(ctx); err != nil || c.stays() {
		return err
	}
	select {
	case <-c.done: // the call returned during the outage
		return nil
	case <-ctx.Done():
		return errors.New("Acquire does not return after its context has ended")
	}
}

// inSession waits for what does not occur once the session has ended, because the network is down.
func (c *p04Cell) inSession(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.session.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := wait(ctx)
	if err != nil && c.session.Err() != nil {
		return errP04Missed
	}
	return err
}

// cutOff waits until the client under test has noticed the fault.
func (c *p04Cell) cutOff(ctx context.Context) error {
	if c.late {
		select {
		case <-c.session.Done():
			time.Sleep(p04Longer)
			return nil
		case <-ctx.Done():
			return errors.New("the session does not notice that the servers do not answer")
		}
	}
	return p04Until(ctx, testzk.Patience, func(context.Context) error {
		if s := c.client.State(); s == framework.Connected || s == framework.Reconnected {
			return fmt.Errorf("the client is %v", s)
		}
		return nil
	})
}

func (c *p04Cell) heal() {
	c.fault.Release() // first, so that late requests arrive before the client can act
	c.proxy.BlackholeReplies(false)
	c.down.Store(false)
}
