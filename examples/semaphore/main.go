// Semaphore shows a lock that has a limited number of permits. The class of Curator is
// InterProcessSemaphoreV2.
//
//	go run ./examples/semaphore                          # starts a test server in this process
//	go run ./examples/semaphore -connect 127.0.0.1:2181  # uses a real one
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func main() { program.Main(run) }

func run(ctx context.Context, connect string, out io.Writer) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	// The path is random so that no other program uses these semaphores.
	o := &office{client: client, path: "/docent-examples/semaphore-" + rand.Text(), out: out}
	for _, part := range []func(context.Context) error{o.limit, o.slots, o.setLimit} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// office has semaphores that Ann, Bob and Carl use. They could be three processes.
type office struct {
	client *framework.Client
	path   string
	out    io.Writer
}

// limit shows that a hold gets all of its permits or none, and that all programs must name the same
// limit.
func (o *office) limit(ctx context.Context) (err error) {
	chairs, err := semaphore.New(o.client, o.path+"/chairs", 3)
	if err != nil {
		return err
	}
	ann, err := chairs.AcquireN(ctx, 2)
	if err != nil {
		return err
	}
	defer release(ann, &err)
	_, err = chairs.TryAcquireN(ctx, 2)
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	bob, err := chairs.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(bob, &err)
	_, err = chairs.TryAcquire(ctx)
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	fmt.Fprintln(o.out, "limit: of 3 chairs Ann has 2; Bob cannot have 2, but 1; Carl gets none")

	five, err := semaphore.New(o.client, o.path+"/chairs", 5)
	if err != nil {
		return err
	}
	_, err = five.Acquire(ctx)
	if err := program.Expect(err, semaphore.ErrLimit); err != nil {
		return err
	}
	fmt.Fprintln(o.out, "limit: a semaphore of 5 chairs at the same path fails")
	return nil
}

// slots shows that each permit has a number that no other permit has at the same time. Curator
// cannot do that.
func (o *office) slots(ctx context.Context) (err error) {
	desks, err := semaphore.New(o.client, o.path+"/desks", 3, semaphore.WithSlots())
	if err != nil {
		return err
	}
	ann, err := desks.AcquireN(ctx, 2)
	if err != nil {
		return err
	}
	defer release(ann, &err)
	bob, err := desks.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(bob, &err)
	fmt.Fprintf(o.out, "slots: of 3 desks Ann has %v, Bob %v\n", semaphore.Slots(ann), semaphore.Slots(bob))
	return nil
}

// setLimit shows that the number of permits can change while they are in use. It is in a node that
// all clients watch. The class of Curator is SharedCount.
func (o *office) setLimit(ctx context.Context) (err error) {
	limit := o.path + "/limit"
	lamps, err := semaphore.New(o.client, o.path+"/lamps", 1, semaphore.WithSharedLimit(limit))
	if err != nil {
		return err
	}
	ann, err := lamps.Acquire(ctx)
	if err != nil {
		return err
	}
	// The node of the limit stays when it is not used. A real program would not delete it.
	defer func() { err = errors.Join(err, o.client.Delete(context.WithoutCancel(ctx), limit, -1)) }()
	defer release(ann, &err)

	if err := o.secondLamp(ctx, lamps); err != nil {
		return err
	}
	_, err = lamps.TryAcquire(ctx)
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	fmt.Fprintln(o.out, "limit: now Bob leaves, and Carl does not get in")
	return nil
}

// secondLamp raises the limit to 2 while Bob has a permit.
func (o *office) secondLamp(ctx context.Context, lamps *semaphore.Semaphore) (err error) {
	raised := make(chan error, 1)
	go func() { raised <- lamps.SetLimit(ctx, 2) }()
	bob, err := lamps.Acquire(ctx) // waits for the second lamp, for Ann keeps hers
	if err := errors.Join(err, <-raised); err != nil {
		return err
	}
	defer release(bob, &err)
	_, err = lamps.TryAcquire(ctx)
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	fmt.Fprintln(o.out, "limit: Ann has the only lamp; with a second one Bob gets in, and Carl does not")

	if err := errors.Join(lamps.SetLimit(ctx, 1), bob.Err()); err != nil {
		return err
	}
	fmt.Fprintln(o.out, "limit: back to 1, which takes nothing away from Ann or Bob")
	return nil
}

// release releases a hold and adds the error, which reports a loss before the end of the work, to
// err. The parts of this example have several holds at a time, which begin and end independently.
// For one hold call Do, which does the same.
func release(hold *recipes.Hold, err *error) { *err = errors.Join(*err, hold.Release()) }
