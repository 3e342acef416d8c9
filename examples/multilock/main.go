// Multilock moves money between two accounts, each of which has a lock of its own. The class of
// Curator is InterProcessMultiLock.
//
//	go run ./examples/multilock                          # starts a test server in this process
//	go run ./examples/multilock -connect 127.0.0.1:2181  # uses a real one; two processes take turns
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
)

func main() { program.Main(run) }

// transfers is how often Ann and Bob each move money.
const transfers = 10

// run moves money from A to B for Ann while it moves money from B to A for Bob. Each of them has a
// client of its own, as two processes would.
func run(ctx context.Context, connect string, out io.Writer) error {
	b := newBank()
	bob := make(chan error, 1)
	go func() { bob <- move(ctx, connect, b, "B", "A", 1) }()
	err := move(ctx, connect, b, "A", "B", 3)
	if err := errors.Join(err, <-bob); err != nil {
		return err
	}
	fmt.Fprintf(out, "Ann and Bob have moved money %d times each, in opposite directions\n", transfers)
	fmt.Fprintf(out, "A has %d, B has %d\n", b.balance("A"), b.balance("B"))

	const old = 1 // the token of a former holder that was paused for long
	if err := program.Expect(b.write(entry{"B", 1_000_000, old}), fence.ErrStale); err != nil {
		return err
	}
	fmt.Fprintln(out, "a write that comes too late is refused: "+
		"its token is older than others that the account has seen")
	return nil
}

// move makes transfers of an amount. If the locks were acquired one after the other in the order of
// the arguments, there could be a deadlock: Ann holds the lock of A and waits for that of B, and
// Bob holds the lock of B and waits for that of A.
func move(ctx context.Context, connect string, b *bank, from, to string, amount int) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	const folder = "/docent-examples/multilock/"
	both, err := multilock.New(client, []string{folder + from, folder + to})
	if err != nil {
		return err
	}
	for range transfers {
		if err := transfer(ctx, both, b, from, to, amount); err != nil {
			return err
		}
	}
	return nil
}

func transfer(ctx context.Context, both *multilock.MultiLock, b *bank, from, to string, amount int) error {
	return both.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error { // this ctx ends if a lock is lost
		entries := []entry{ // a token for each lock, in the order of the paths
			{from, b.balance(from) - amount, hold.Tokens()[0]},
			{to, b.balance(to) + amount, hold.Tokens()[1]},
		}
		if err := think(ctx); err != nil {
			return err
		}
		return b.write(entries...)
	}) // also reports a loss before the end of the work
}

// think waits between reading and writing. In this time, a broken lock would do harm.
func think(ctx context.Context) error {
	select {
	case <-time.After(2 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
