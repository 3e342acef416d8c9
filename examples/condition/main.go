// Condition moves items through a small buffer between a producer and a consumer. Each waits for the
// other: the producer while the buffer is full, the consumer while it is empty. In Java that is the
// example of java.util.concurrent.locks.Condition.
//
//	go run ./examples/condition                          # starts a test server in this process
//	go run ./examples/condition -connect 127.0.0.1:2181  # uses a real one; two processes share the buffer
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/mutex"
)

func main() { program.Main(run) }

const (
	folder = "/docent-examples/condition"
	room   = 2 // items in the buffer
	items  = 5
)

// run consumes items while another client produces them, as two processes would.
func run(ctx context.Context, connect string, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	produced := make(chan error, 1)
	go func() {
		err := with(ctx, connect, func(b *buffer) error { return produce(ctx, b) })
		if err != nil {
			stop() // nothing more comes
		}
		produced <- err
	}()
	err := with(ctx, connect, func(b *buffer) error { return consume(ctx, b, out) })
	if err != nil {
		stop()
	}
	return errors.Join(err, <-produced)
}

func produce(ctx context.Context, b *buffer) error {
	for i := range items {
		if err := b.put(ctx, fmt.Sprint("item ", i)); err != nil {
			return err
		}
	}
	return nil
}

func consume(ctx context.Context, b *buffer, out io.Writer) error {
	for range items {
		item, err := b.take(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "took", item)
	}
	return nil
}

// with calls use with the buffer of a new client.
func with(ctx context.Context, connect string, use func(*buffer) error) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	b, err := newBuffer(ctx, client)
	if err != nil {
		return err
	}
	return use(b)
}

// buffer is a list in a node. The mutex protects it.
type buffer struct {
	client            *framework.Client
	mutex             *mutex.Mutex
	notFull, notEmpty *condition.Condition
}

func newBuffer(ctx context.Context, client *framework.Client) (*buffer, error) {
	mu, err := mutex.New(client, folder+"/lock")
	if err != nil {
		return nil, err
	}
	notFull, err := condition.New(mu, folder+"/not-full")
	if err != nil {
		return nil, err
	}
	notEmpty, err := condition.New(mu, folder+"/not-empty")
	if err != nil {
		return nil, err
	}
	_, err = client.Create(ctx, folder+"/buffer", []byte("[]"), framework.Parents())
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	return &buffer{client, mu, notFull, notEmpty}, nil
}

// put waits for room and adds an item.
func (b *buffer) put(ctx context.Context, item string) error {
	return b.change(ctx, b.notFull, func(list []string) ([]string, bool) {
		return append(list, item), len(list) < room
	}, b.notEmpty)
}

// take waits for an item and removes it.
func (b *buffer) take(ctx context.Context) (item string, err error) {
	err = b.change(ctx, b.notEmpty, func(list []string) ([]string, bool) {
		if len(list) == 0 {
			return nil, false
		}
		item = list[0]
		return list[1:], true
	}, b.notFull)
	return item, err
}

// change waits on one condition until the list can be changed, changes it, and signals the other.
func (b *buffer) change(ctx context.Context, wait *condition.Condition,
	try func([]string) (changed []string, ok bool), signal *condition.Condition,
) (err error) {
	hold, err := b.mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if released := hold.Release(); !errors.Is(released, recipes.ErrNotHeld) { // a Wait that fails has released it
			err = errors.Join(err, released)
		}
	}()
	for {
		list, err := b.read(ctx)
		if err != nil {
			return err
		}
		if changed, ok := try(list); ok {
			data, err := json.Marshal(changed)
			if err != nil {
				return err
			}
			if _, err := hold.Guard(ctx, framework.SetOp(folder+"/buffer", data, -1)); err != nil {
				return err
			}
			return signal.Signal(ctx, hold)
		}
		if hold, err = wait.Wait(ctx, hold); err != nil {
			return err
		}
	}
}

func (b *buffer) read(ctx context.Context) (list []string, err error) {
	if err := b.client.Sync(ctx, folder); err != nil { // the other client may have written through another server
		return nil, err
	}
	data, _, err := b.client.Get(ctx, folder+"/buffer")
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(data, &list)
}
