package rwlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
)

// A writer becomes a reader, and the reader a writer again, with nobody in between.
func Example() {
	if err := rebuild(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// written
	// a reader may come in: true
	// a writer may come in: false
	// the same place: true
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

	written, err := rw.Write().Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Println("written")
	reading, err := rw.Read().Acquire(written.Context(ctx)) // beside the write hold
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
		return err // rwlock.ErrUpgrade if others read too
	}
	fmt.Println("the same place:", again.Token() == written.Token())
	fmt.Println("written again")
	return again.Release()
}

// mayComeIn tries to acquire as somebody else: ctx carries no hold.
func mayComeIn(ctx context.Context, side *rwlock.Side) bool {
	hold, err := side.TryAcquire(ctx)
	return err == nil && hold.Release() == nil
}

// Upgrades never wait for other readers, who may want the same: they fail at once.
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
