package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/retry"
)

var errBusy = errors.New("server busy")

// show prints the waits of a policy that is asked up to five times.
func show(p retry.Policy, elapsed time.Duration) {
	for attempt := range 5 {
		wait, ok := p(attempt, elapsed)
		if !ok {
			fmt.Println("give up")
			return
		}
		fmt.Println("wait", wait)
	}
}

func ExampleDo() {
	attempts := 0
	isBusy := func(err error) bool { return errors.Is(err, errBusy) }
	err := retry.Do(context.Background(), retry.Times(5, time.Millisecond), isBusy, func(context.Context) error {
		attempts++
		if attempts < 3 {
			return errBusy
		}
		return nil
	})
	fmt.Println(attempts, err)
	// Output: 3 <nil>
}

// The error at the end of the context includes the last error of the function.
func ExampleDo_deadline() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := retry.Do(ctx, retry.Forever(time.Hour), nil, func(context.Context) error { return errBusy })
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, errBusy))
	// Output:
	// context deadline exceeded by the next wait (1h0m0s) after 1 attempt: server busy
	// true true
}

// A loop inside a loop makes a single attempt each time: here 3 in all, not 9.
func ExampleDo_nested() {
	attempts := 0
	twice := retry.Times(2, time.Millisecond)
	err := retry.Do(context.Background(), twice, nil, func(ctx context.Context) error {
		return retry.Do(ctx, twice, nil, func(context.Context) error {
			attempts++
			return errBusy
		})
	})
	fmt.Println(attempts, errors.Is(err, errBusy))
	// Output: 3 true
}

// A function can be a policy. Here each wait is a second longer than the one before.
func ExamplePolicy() {
	linear := func(attempt int, _ time.Duration) (time.Duration, bool) {
		return time.Duration(attempt+1) * time.Second, attempt < 3
	}
	show(linear, 0)
	// Output:
	// wait 1s
	// wait 2s
	// wait 3s
	// give up
}

func ExampleNever() {
	show(retry.Never(), 0)
	// Output: give up
}

func ExampleOnce() {
	show(retry.Once(time.Second), 0)
	// Output:
	// wait 1s
	// give up
}

func ExampleTimes() {
	show(retry.Times(2, time.Second), 0)
	// Output:
	// wait 1s
	// wait 1s
	// give up
}

func ExampleForever() {
	wait, again := retry.Forever(time.Second)(1_000_000, 1000*time.Hour)
	fmt.Println(wait, again)
	// Output: 1s true
}

func ExampleUntilElapsed() {
	p := retry.UntilElapsed(time.Minute, time.Second)
	fmt.Println(p(7, 59*time.Second))
	fmt.Println(p(8, 60*time.Second))
	// Output:
	// 1s true
	// 1s false
}

func ExampleExponential() {
	p := retry.Exponential(time.Second, 3)
	first, _ := p(0, 0)
	third, _ := p(2, 0)
	_, again := p(3, 0)
	fmt.Println(first, third >= time.Second && third <= 7*time.Second, again)
	// Output: 1s true false
}

func ExampleBoundedExponential() {
	p := retry.BoundedExponential(time.Second, 2*time.Second, 10)
	last, again := p(9, 0)
	fmt.Println(last <= 2*time.Second, again)
	// Output: true true
}
