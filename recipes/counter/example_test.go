package counter_test

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/zktest"
)

// connect returns a client of a new server.
func connect() (*framework.Client, func()) {
	srv, err := zktest.New() // in a program: the real servers
	if err != nil {
		panic(err)
	}
	client, err := framework.New(srv.Addr())
	if err != nil {
		panic(err)
	}
	return client, func() { _ = client.Close(); srv.Close() }
}

// A number that several processes count up.
func Example() {
	client, stop := connect()
	defer stop()
	orders, err := counter.NewAtomic(client, "/counters/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background() // with a deadline, in a program
	for range 3 {
		number, err := orders.Add(ctx, 1)
		switch {
		case err == nil:
			fmt.Println("order", number)
		case framework.OutcomeOf(err) == framework.NotApplied:
			fmt.Println("try again:", err)
		default: // the number may be used up
			fmt.Println("a gap, perhaps:", err)
		}
	}
	// Output:
	// order 1
	// order 2
	// order 3
}

// A setting that several processes read and change. CompareAndSet returns what others have written.
func ExampleValue() {
	client, stop := connect()
	defer stop()
	setting, err := counter.NewValue(client, "/config/greeting", []byte("hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	now, err := setting.GetVersioned(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for wrote := false; !wrote; {
		now, wrote, err = setting.CompareAndSet(ctx, now, append(now.Value, '!'))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("%s\n", now.Value)
	// Output: hello!
}

// A limit that changes while the program runs.
func ExampleCount_Observe() {
	client, stop := connect()
	defer stop()
	limit, err := counter.NewCount(client, "/config/limit", 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for n, err := range limit.Observe(ctx) {
		if err != nil {
			fmt.Println(err) // it is not known any more; the loop goes on
			continue
		}
		fmt.Println("limit", n)
		if n == 6 {
			break
		}
		_ = limit.Set(ctx, n+1) // in a program, another process does that
	}
	// Output:
	// limit 5
	// limit 6
}

// Numbers for ids, most of them without a request.
func ExampleSequence() {
	client, stop := connect()
	defer stop()
	ids, err := counter.NewAtomic(client, "/counters/ids")
	if err != nil {
		fmt.Println(err)
		return
	}
	sequence, err := counter.NewSequence(ids, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(sequence.Next(context.Background()))
	}
	fmt.Println(ids.Get(context.Background()))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 100 <nil>
}
