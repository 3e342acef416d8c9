// Counter shows numbers and values that processes share. The classes of Curator are
// DistributedAtomicLong, CachedAtomicLong and SharedCount.
//
//	go run ./examples/counter                          # starts a test server in this process
//	go run ./examples/counter -connect 127.0.0.1:2181  # uses a real one
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
)

func main() { program.Main(run) }

func run(ctx context.Context, connect string, out io.Writer) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	// The path is random so that no other program uses these numbers.
	s := &shop{client: client, connect: connect, path: "/docent-examples/counter-" + rand.Text(), out: out}
	// A real program would not delete its numbers.
	defer func() {
		err = errors.Join(err, client.DeleteRecursive(context.WithoutCancel(ctx), s.path))
	}()
	for _, part := range []func(context.Context) error{s.sell, s.number, s.limit} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shop has numbers that all its tills share.
type shop struct {
	client  *framework.Client
	connect string
	path    string
	out     io.Writer
}

// sell shows that clients which add at the same time all get another sum, and that no addition is
// lost or made twice. The clients could be processes on several machines.
func (s *shop) sell(ctx context.Context) error {
	const tills, sales = 3, 20
	errs := make([]error, tills)
	var selling sync.WaitGroup
	for i := range tills {
		selling.Go(func() { errs[i] = s.till(ctx, sales) })
	}
	selling.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	sold, err := counter.NewAtomic(s.client, s.path+"/sold")
	if err != nil {
		return err
	}
	sum, err := sold.Add(ctx, 0) // as Get, but not of a server that is behind
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "atomic: %d tills have sold %d tickets each, %d in all\n", tills, sales, sum)
	return nil
}

// till is one client that sells.
func (s *shop) till(ctx context.Context, sales int) (err error) {
	client, err := framework.New(s.connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	sold, err := counter.NewAtomic(client, s.path+"/sold")
	if err != nil {
		return err
	}
	for range sales {
		_, err := sold.Add(ctx, 1)
		switch {
		case err == nil:
		case framework.OutcomeOf(err) == framework.NotApplied:
			return fmt.Errorf("not sold: %w", err)
		default:
			return fmt.Errorf("perhaps sold: %w", err) // to sell again could count twice
		}
	}
	return nil
}

// number shows numbers for orders, ten of them with one request.
func (s *shop) number(ctx context.Context) error {
	orders, err := counter.NewAtomic(s.client, s.path+"/orders")
	if err != nil {
		return err
	}
	numbers, err := counter.NewSequence(orders, 10)
	if err != nil {
		return err
	}
	var handed []int64
	for range 12 {
		n, err := numbers.Next(ctx)
		if err != nil {
			return err
		}
		handed = append(handed, n)
	}
	taken, err := orders.Get(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "sequence: orders %v, of %d numbers taken\n", handed, taken)
	return nil
}

// limit shows a setting that a program follows while another one changes it.
func (s *shop) limit(ctx context.Context) error {
	limit, err := counter.NewCount(s.client, s.path+"/limit", 4)
	if err != nil {
		return err
	}
	for n, err := range limit.Observe(ctx) {
		if err != nil {
			return err // a program that goes on would only log it
		}
		fmt.Fprintln(s.out, "count: the limit is", n)
		if n == 6 {
			return nil
		}
		if err := limit.Set(ctx, n+1); err != nil { // as an operator would
			return err
		}
	}
	return ctx.Err()
}
