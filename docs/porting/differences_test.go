package porting

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// fragment reentry
func rebuild(ctx context.Context, mu *mutex.Mutex) error {
	return mu.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return repair(ctx, mu)
	})
}

func repair(ctx context.Context, mu *mutex.Mutex) error {
	// acquires at once: the context carries the hold
	return mu.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return work(ctx)
	})
}

// end

var work = say("working")

func Example_reentry() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		mu, err := mutex.New(client, "/locks/orders")
		if err != nil {
			return err
		}
		return rebuild(ctx, mu)
	})
	// Output:
	// working
}

// fragment loss
func drain(ctx context.Context, mu *mutex.Mutex, steps []step) error {
	return mu.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		for _, step := range steps {
			if err := hold.Err(); err != nil {
				return err // lost: other holders may have worked meanwhile
			}
			// the context ends when the lock is lost
			if err := step(ctx, hold.Token()); err != nil {
				return err
			}
		}
		return nil
	})
}

// end

type step func(ctx context.Context, token int64) error

func Example_loss() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		mu, err := mutex.New(client, "/locks/orders")
		if err != nil {
			return err
		}
		err = drain(ctx, mu, []step{
			func(_ context.Context, token int64) error {
				fmt.Println("first step, with a token:", token > 0)
				return nil
			},
			func(ctx context.Context, _ int64) error {
				fmt.Println("second step: the servers expire the session")
				defer func() { <-ctx.Done() }()
				return srv.Sessions()[0].Expire()
			},
			func(context.Context, int64) error {
				fmt.Println("never reached")
				return nil
			},
		})
		fmt.Println("the lock was lost:", errors.Is(err, framework.ErrSessionLost))
		return nil
	})
	// Output:
	// first step, with a token: true
	// second step: the servers expire the session
	// the lock was lost: true
}

// fragment interrupt
func impatient(ctx context.Context, mu *mutex.Mutex) error {
	err := recipes.DoWithin(ctx, mu, 200*time.Millisecond,
		func(ctx context.Context, _ *recipes.Hold) error {
			return work(ctx)
		})
	if errors.Is(err, recipes.ErrNotAcquired) && ctx.Err() == nil {
		return errBusy // other clients had the lock for 200 ms
	}
	return err // matches context.Canceled if ctx was cancelled
}

// end

var errBusy = errors.New("busy")

// inTime repeats what a busy machine does not do in time.
func inTime(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

func Example_interrupt() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		mu, err := mutex.New(client, "/locks/orders")
		if err != nil {
			return err
		}
		hold, err := mu.Acquire(ctx)
		if err != nil {
			return err
		}
		fmt.Println("held by another:", inTime(func() error { return impatient(ctx, mu) }))
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		fmt.Println("cancelled:", errors.Is(impatient(cancelled, mu), context.Canceled))
		if err := hold.Release(); err != nil {
			return err
		}
		return inTime(func() error {
			err := impatient(ctx, mu)
			if errors.Is(err, errBusy) { // the request to release it took longer
				return context.DeadlineExceeded
			}
			return err
		})
	})
	// Output:
	// held by another: busy
	// cancelled: true
	// working
}

func Example_states() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		back := make(chan struct{})
		note := func(state framework.State, _ error) {
			fmt.Println(state)
			if state == framework.Reconnected {
				close(back)
			}
		}
		// fragment states
		stop := client.Listen(func(c framework.StateChange) {
			note(c.State, c.Cause) // only to inform: holds end by themselves
		})
		defer stop()
		// end
		if err := srv.Sessions()[0].Expire(); err != nil {
			return err
		}
		<-back
		return nil
	})
	// Output:
	// suspended
	// lost
	// reconnected
}

// fragment suspended
// untilSuspended returns a context that ends at SUSPENDED. Call stop.
func untilSuspended(
	ctx context.Context, client *framework.Client,
) (until context.Context, stop func()) {
	until, cancel := context.WithCancelCause(ctx)
	remove := client.Listen(func(c framework.StateChange) {
		if !c.State.IsConnected() {
			cancel(errSuspended)
		}
	})
	if !client.State().IsConnected() {
		cancel(errSuspended) // it was before Listen
	}
	return until, func() { remove(); cancel(nil) }
}

func cautious(
	ctx context.Context, client *framework.Client, mu *mutex.Mutex, do job,
) error {
	return mu.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		ctx, stop := untilSuspended(ctx, client)
		defer stop()
		return do(ctx)
	})
}

// end

var errSuspended = errors.New("suspended")

func TestJobEndsAtSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		require.NoError(t, err)
		defer client.Close()
		mu, err := mutex.New(client, "/locks/orders")
		require.NoError(t, err)
		begun := time.Now()
		err = cautious(t.Context(), client, mu, func(ctx context.Context) error {
			srv.Client("a").Cut()
			defer srv.Client("a").Heal()
			<-ctx.Done()
			require.Less(t, time.Since(begun), 15*time.Second, "a third of the session timeout, and not the hold's end")
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, errSuspended)
		require.NoError(t, client.WaitConnected(t.Context()))
		done := func(ctx context.Context) error { return ctx.Err() }
		require.NoError(t, cautious(t.Context(), client, mu, done))
	})
}

// The context of a hold that a downgrade leaves is one to begin with, too.
func TestReaderAfterADowngradeEndsAtSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := virtual(t, srv, "a")
		rw, err := rwlock.New(client, "/locks/orders")
		require.NoError(t, err)
		written, err := rw.Write().Acquire(t.Context())
		require.NoError(t, err)
		reading, err := rw.Read().Acquire(written.Context(t.Context()))
		require.NoError(t, err)
		ended := written.Context(t.Context())
		require.NoError(t, written.Release())
		ctx, stop := untilSuspended(reading.Context(t.Context()), client)
		defer stop()
		require.NoError(t, ctx.Err())
		require.ErrorIs(t, context.Cause(ended), recipes.ErrNotHeld, "the read hold is valid")
		require.NoError(t, reading.Err())
		srv.Client("a").Cut()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), errSuspended)
		require.NoError(t, reading.Err())
		srv.Client("a").Heal()
		require.NoError(t, reading.Release())
	})
}

func TestUntilSuspendedOfAClientThatIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := virtual(t, srv, "a")
		require.NoError(t, client.WaitConnected(t.Context()))
		suspended := make(chan struct{})
		stop := client.Listen(func(c framework.StateChange) {
			if c.State == framework.Suspended {
				close(suspended)
			}
		})
		srv.Stop()
		<-suspended
		stop()
		ctx, stop := untilSuspended(t.Context(), client)
		defer stop()
		require.ErrorIs(t, context.Cause(ctx), errSuspended)
	})
}

// fragment outcomes
func publish(
	ctx context.Context, client *framework.Client, path string, data []byte,
) error {
	_, err := client.Set(ctx, path, data, -1)
	switch framework.OutcomeOf(err) {
	case framework.Applied:
		return nil
	case framework.NotApplied:
		return err // it was not done, and will not be
	default:
		return fmt.Errorf("read before you repeat it: %w", err)
	}
}

// end

func Example_outcomes() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		if err := srv.Create("/config", nil); err != nil {
			return err
		}
		srv.On(fault.Match{Op: fault.OpSetData, Times: 1}, fault.DropAfter())
		err := publish(ctx, client, "/config", []byte("new"))
		fmt.Println("the answer was lost:", framework.OutcomeOf(err))
		err = publish(ctx, client, "/missing", []byte("new"))
		fmt.Println("there is no such node:", framework.OutcomeOf(err))
		return nil
	})
	// Output:
	// the answer was lost: unknown
	// there is no such node: not applied
}

// fragment fencing
func save(
	ctx context.Context, hold *recipes.Hold, store *table, row string,
) error {
	if err := store.put(row, hold.Token()); err != nil {
		return err // refused: a later holder has written
	}
	last := framework.SetOp("/orders/last", []byte(row), -1)
	_, err := hold.Guard(ctx, last) // writes nodes only while the hold is valid
	return err
}

// end

// table is a resource outside of ZooKeeper.
type table struct{ seen int64 }

var errStale = errors.New("stale token")

func (t *table) put(_ string, token int64) error {
	if token < t.seen {
		return errStale
	}
	t.seen = token
	return nil
}

func Example_fencing() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		if err := srv.Create("/orders/last", nil); err != nil {
			return err
		}
		mu, err := mutex.New(client, "/locks/orders")
		if err != nil {
			return err
		}
		former, err := mu.Acquire(ctx)
		if err != nil {
			return err
		}
		if err := former.Release(); err != nil {
			return err
		}
		hold, err := mu.Acquire(ctx)
		if err != nil {
			return err
		}
		var store table
		fmt.Println("the holder:", save(ctx, hold, &store, "row 1"))
		fmt.Println("a former holder:", save(ctx, former, &store, "row 2"))
		return hold.Release()
	})
	// Output:
	// the holder: <nil>
	// a former holder: stale token
}
