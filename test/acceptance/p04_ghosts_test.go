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
	"github.com/docent-zk/docent/zktest/fault"
)

// p04Step is a request of a contended acquire, of its cancellation or of the release.
type p04Step struct {
	name   string
	op     fault.Op
	path   string // below the lock's path
	locked bool   // the parent's data cannot be written
	sought bool   // it follows a lost reply to the enqueue
	leaves bool   // it follows a cancellation or a release
}

var p04Steps = []p04Step{
	{name: "enqueue", op: fault.OpCreate, path: "/*-lock-"},
	{name: "enqueue below data", op: fault.OpCreate, path: "/*-lock-", locked: true},
	{name: "sync after a lost reply", op: fault.OpMulti, sought: true},
	{name: "list", op: fault.OpGetChildren2},
	{name: "watch", op: fault.OpGetData, path: "/*-lock-*"},
	{name: "delete", op: fault.OpDelete, path: "/*-lock-*", leaves: true},
}

// p04Fault is a fault of that request.
type p04Fault struct {
	name        string
	action      func() fault.Action
	late        bool // it lasts until the session has ended
	replyIsLate bool // the server processes the request and delays the reply
}

var p04Faults = []p04Fault{
	{name: "request lost", action: fault.DropBefore},
	{name: "reply lost", action: fault.DropAfter},
	{name: "connection reset", action: fault.Reset},
	{name: "request late", action: fault.Hold, late: true},
	{name: "reply late", action: fault.Hold, late: true, replyIsLate: true},
}

// p04Caller is how the caller of Acquire waits.
type p04Caller struct {
	name    string
	cancels bool          // as soon as the request was sent
	within  time.Duration // 0: no deadline
}

var p04Callers = []p04Caller{
	{name: "no deadline"},
	{name: "cancelled", cancels: true},
	{name: "deadline", within: 500 * time.Millisecond},
}

func (c p04Caller) stays() bool { return !c.cancels && c.within == 0 }

const (
	p04Soon   = 2 * time.Second        // after the client can reach the servers again
	p04Longer = 300 * time.Millisecond // of a delay after the end of the session
	p04Once   = 32                     // cells at a time, which mostly wait
)

// Every request of a mutex is lost, loses its reply, is reset, or is delayed until the session has
// ended. Its caller waits without a deadline, cancels, or reaches its deadline. There are 90 cases.
// In each of them, within 2 s of the network's recovery, the queue has only nodes of holders and
// waiters, and a new waiter gets the lock.
func TestP04_NoFaultAtAnyStepLeavesANodeWithoutAnOwner(t *testing.T) {
	t.Parallel()
	other := testzk.Connected(t, testzk.Connect(), framework.WithSessionTimeout(30*time.Second))
	slots := make(chan struct{}, p04Once)
	var cells []*p04Cell
	for _, step := range p04Steps {
		for _, f := range p04Faults {
			for _, caller := range p04Callers {
				c := &p04Cell{p04Step: step, p04Fault: f, p04Caller: caller, other: other, path: testzk.Path(t)}
				c.result = make(chan error, 1)
				cells = append(cells, c)
			}
		}
	}
	for _, c := range cells {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := c.run()
			for again := 0; again < 3 && errors.Is(err, errP04Missed); again++ {
				err = c.run()
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

// run runs a cell. The other client holds the lock, the client under test acquires it and meets the
// fault, and the network recovers. Then the queue must be in order.
func (c *p04Cell) run() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testzk.Patience)
	defer cancel()
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
	return c.passesOn(ctx)
}
