// Striped counts the orders of many customers. Each customer is a key, and all customers share a few
// locks. Then the number of locks is changed while programs run.
//
//	go run ./examples/striped                          # starts a test server in this process
//	go run ./examples/striped -connect 127.0.0.1:2181  # uses a real one
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/striped"
)

func main() { program.Main(run) }

const (
	path      = "/docent-examples/striped"
	customers = 20
	each      = 5 // orders of each customer with each program
)

// run replaces programs with 4 stripes by programs with 16, one after another.
func run(ctx context.Context, connect string, out io.Writer) error {
	shop := &shop{orders: map[string]int{}}
	fleets := []struct {
		text string
		opts [2][]striped.Option // of two programs that run at the same time
		n    [2]int
	}{
		{"4 stripes", [2][]striped.Option{}, [2]int{4, 4}},
		{"4 stripes, and 16 with previous 4", [2][]striped.Option{nil, {striped.WithPrevious(4)}}, [2]int{4, 16}},
		{"16 with previous 4, and 16 stripes", [2][]striped.Option{{striped.WithPrevious(4)}, nil}, [2]int{16, 16}},
	}
	for _, f := range fleets {
		ended := make(chan error, 1)
		go func() { ended <- serve(ctx, connect, shop, f.n[0], f.opts[0]...) }()
		err := serve(ctx, connect, shop, f.n[1], f.opts[1]...)
		if err := errors.Join(err, <-ended); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d orders, %d lost\n", f.text, shop.total(), shop.want()-shop.total())
	}
	return skip(ctx, connect, out)
}

// serve is one program: it adds orders of all customers.
func serve(ctx context.Context, connect string, s *shop, n int, opts ...striped.Option) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	locks, err := striped.New(client, path, n, opts...)
	if err != nil {
		return err
	}
	for i := range customers * each {
		customer := fmt.Sprint("customer ", i%customers)
		err := locks.For(customer).Do(ctx, func(context.Context, *recipes.Hold) error {
			s.add(customer)
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.served()
	return nil
}

// skip shows what a program gets that skips the step with both numbers.
func skip(ctx context.Context, connect string, out io.Writer) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	locks, err := striped.New(client, path, 16)
	if err != nil {
		return err
	}
	return locks.For("customer 1").Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		if err := program.Expect(serve(ctx, connect, &shop{}, 4), striped.ErrStripes); err != nil {
			return err
		}
		fmt.Fprintln(out, "a program with 4 stripes beside one with 16 is refused")
		return nil
	})
}

// shop is what the locks protect: it reads a number and writes it later.
type shop struct {
	mu       sync.Mutex
	orders   map[string]int
	programs int // that have served all customers
}

func (s *shop) get(customer string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders[customer]
}

func (s *shop) set(customer string, orders int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[customer] = orders
}

// add loses an order if two programs add one for the same customer at the same time.
func (s *shop) add(customer string) { s.set(customer, s.get(customer)+1) }

func (s *shop) served() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.programs++
}

func (s *shop) want() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.programs * customers * each
}

func (s *shop) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, orders := range s.orders {
		n += orders
	}
	return n
}
