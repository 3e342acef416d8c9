package rwlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
)

// A writer becomes a reader and then a writer again. No other client writes meanwhile.
func Example() {
	if err := rebuild(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// written
	// a reader may come in: true
	// a writer may come in: false
	// the same position: true
	// written again
}

func rebuild(ctx context.Context) (err error) {
	srv, err := zktest.New()
	if err != nil {
		return err
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	rw, err := rwlock.New(client, "/locks/catalogue")
	if err != nil {
		return err
	}

	written, err := rw.Write().Acquire(ctx) // not Do, because the write hold ends before the read hold
	if err != nil {
		return err
	}
	fmt.Println("written")
	reading, err := rw.Read().Acquire(written.Context(ctx)) // at the position of the write hold
	if err != nil {
		return errors.Join(err, written.Release())
	}
	defer func() { err = errors.Join(err, reading.Release()) }()
	if err := written.Release(); err != nil {
		return err
	}
	fmt.Println("a reader may come in:", mayComeIn(ctx, rw.Read()))
	fmt.Println("a writer may come in:", mayComeIn(ctx, rw.Write()))

	again, err := rw.TryUpgrade(reading.Context(ctx))
	if err != nil {
		return err // rwlock.ErrUpgrade if other clients read too
	}
	fmt.Println("the same position:", again.Token() == written.Token())
	fmt.Println("written again")
	return again.Release()
}

// mayComeIn tries to acquire without a hold: ctx carries none.
func mayComeIn(ctx context.Context, side *rwlock.Side) bool {
	hold, err := side.TryAcquire(ctx)
	return err == nil && hold.Release() == nil
}

// An upgrade never waits for other readers, because they may want to upgrade too. It fails at once.
func ExampleRWLock_TryUpgrade() {
	srv, err := zktest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rw, err := rwlock.New(client, "/locks/catalogue")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	one, err := rw.Read().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	other, err := rw.Read().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = rw.TryUpgrade(one.Context(ctx))
	fmt.Println("refused:", errors.Is(err, rwlock.ErrUpgrade), "still reading:", one.Err() == nil)
	_ = other.Release()
	written, err := rw.TryUpgrade(one.Context(ctx))
	fmt.Println("alone:", err)
	fmt.Println(written.Release(), one.Release())
	// Output:
	// refused: true still reading: true
	// alone: <nil>
	// <nil> <nil>
}
