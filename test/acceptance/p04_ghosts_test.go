package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/proxy"
)

// p04Step is a request of a contended acquire, or of the end of it.
type p04Step struct {
	name   string
	op     proxy.Op
	path   string // below the lock's path
	locked bool   // the parent's data must not be written
	sought bool   // the reply to the enqueue is lost before
	leaves bool   // it comes when the caller leaves, or releases
}

var p04Steps = []p04Step{
	{name: "enqueue", op: proxy.OpCreate, path: "/*-lock-"},
	{name: "enqueue below data", op: proxy.OpCreate, path: "/*-lock-", locked: true},
	{name: "sync after a lost reply", op: proxy.OpSync, sought: true},
	{name: "list", op: proxy.OpGetChildren2},
	{name: "watch", op: proxy.OpGetData, path: "/*-lock-*"},
	{name: "delete", op: proxy.OpDelete, path: "/*-lock-*", leaves: true},
}

// p04Fault is what happens to that request.
type p04Fault struct {
	name        string
	action      func() proxy.Action
	late        bool // it lasts until the session is over
	replyIsLate bool // the request has been carried out by then
}

var p04Faults = []p04Fault{
	{name: "request lost", action: proxy.DropBefore},
	{name: "reply lost", action: proxy.DropAfter},
	{name: "connection reset", action: proxy.Reset},
	{name: "request late", action: proxy.Hold, late: true},
	{name: "reply late", action: proxy.Hold, late: true, replyIsLate: true},
}

// p04Caller is how the caller of Acquire waits.
type p04Caller struct {
	name    string
	cancels bool          // as soon as the request is on its way
	within  time.Duration // 0: there is no deadline
}

var p04Callers = []p04Caller{
	{name: "no deadline"},
	{name: "cancelled", cancels: true},
	{name: "deadline", within: 500 * time.Millisecond},
}

func (c p04Caller) stays() bool { return !c.cancels && c.within == 0 }

const (
	p04Soon   = 2 * time.Second        // from the moment on at which the client can reach the servers
	p04Longer = 300 * time.Millisecond // for which what is late is so after the end of the session
	p04Once   = 32                     // cells at a time: they wait more than they compute
)

// Every request of a mutex is lost, answered in vain, reset, or held back until after the session is over, while its caller
// waits without end, cancels or runs out of time: 90 cases. In each of them the line holds only who holds or waits within 2 s of
// the network's recovery, and a newcomer gets the lock.
func TestP04_NoFaultAtAnyStepLeavesANodeThatNobodyOwns(t *testing.T) {
	t.Parallel()
	bystander := testzk.Connected(t, testzk.Connect(), framework.WithSessionTimeout(30*time.Second))
	ctx := testzk.Context(t)
	slots := make(chan struct{}, p04Once)
	var cells []*p04Cell
	for _, step := range p04Steps {
		for _, fault := range p04Faults {
			for _, caller := range p04Callers {
				c := &p04Cell{p04Step: step, p04Fault: fault, p04Caller: caller, bystander: bystander, path: testzk.Path(t)}
				c.result = make(chan error, 1)
				cells = append(cells, c)
			}
		}
	}
	for _, c := range cells {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := c.run(ctx)
			for again := 0; again < 3 && errors.Is(err, errP04Missed); again++ {
				err = c.run(ctx)
			}
			c.result <- err
		}()
	}
	for _, c := range cells {
		t.Run(c.name(), func(t *testing.T) { require.NoError(t, <-c.result) })
	}
}

func (c *p04Cell) name() string {
	return fmt.Sprintf("%s/%s/%s", c.p04Step.name, c.p04Fault.name, c.p04Caller.name)
}

// run plays a cell: somebody holds the lock, the victim acquires it and is struck, the network recovers, and all is well.
func (c *p04Cell) run(ctx context.Context) (err error) {
	if err := c.open(ctx); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	defer c.close(&err)
	c.acquire(ctx)
	if err := c.strike(ctx); err != nil {
		return fmt.Errorf("during the fault: %w", err)
	}
	c.heal()
	if err := c.settles(ctx); err != nil {
		return fmt.Errorf("after the fault: %w", err)
	}
	return c.goesOn(ctx)
}
