package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
)

// fragment start-stay
// stay has the lock for a minute, or until the lock is lost.
func stay(ctx context.Context, token int64) error {
	fmt.Println("process", os.Getpid(), "has the lock, with the token", token)
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end

// fragment start-connect
// connect returns a client that is connected through a network of its own.
func connect(t *testing.T, srv *zktest.Server, name string) *framework.Client {
	t.Helper()
	client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// end

// fragment start-cut
func TestTheLockIsLostBeforeItIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time passes only while all goroutines wait
		srv := zktest.Start(t)
		alice, bob := connect(t, srv, "alice"), connect(t, srv, "bob")

		var lost, free time.Time
		held, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- process(t.Context(), alice, func(ctx context.Context, _ int64) error {
				close(held)
				<-ctx.Done() // a long write, which stops when the lock is lost
				lost = time.Now()
				return context.Cause(ctx)
			})
		}()
		<-held
		srv.Client("alice").Cut() // alice and the servers do not reach each other any more
		err := process(t.Context(), bob, func(context.Context, int64) error {
			free = time.Now()
			return nil
		})
		if err != nil {
			t.Errorf("bob: %v", err)
		}
		if err := <-ended; !errors.Is(err, framework.ErrSessionLost) {
			t.Errorf("alice: %v", err)
		}
		if !lost.Before(free) {
			t.Errorf("alice lost the lock at %v, and it was free at %v", lost, free)
		}
	})
}

// end

// fragment start-paused
func TestTheWriteOfAPausedHolderIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		alice, bob := connect(t, srv, "alice"), connect(t, srv, "bob")
		var resource fence.Register // refuses a token that is smaller than one it has seen
		var data string             // of the resource

		held, late := make(chan struct{}), make(chan error, 1)
		ended := make(chan error)
		go func() {
			ended <- process(t.Context(), alice, func(_ context.Context, token int64) error {
				close(held)
				time.Sleep(time.Hour) // a pause: alice looks neither at a clock nor at the context
				late <- resource.Do(token, func() error { data = "alice"; return nil })
				return nil
			})
		}()
		<-held
		srv.Client("alice").Cut() // as if the process had stopped
		err := process(t.Context(), bob, func(_ context.Context, token int64) error {
			return resource.Do(token, func() error { data = "bob"; return nil })
		})
		if err != nil {
			t.Errorf("bob: %v", err)
		}
		if err := <-late; !errors.Is(err, fence.ErrStale) {
			t.Errorf("the late write of alice: %v", err)
		}
		if err := <-ended; !errors.Is(err, framework.ErrSessionLost) {
			t.Errorf("alice: %v", err)
		}
		if data != "bob" {
			t.Errorf("the data is that of %s", data)
		}
	})
}

// end

func TestStayEndsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, zktest.Start(t), "alice")
		begin := time.Now()
		err := process(t.Context(), client, stay)
		if lasted := time.Since(begin); err != nil || lasted < time.Minute {
			t.Errorf("after %v: %v", lasted, err)
		}
	})
}

func TestStayEndsWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "alice")
		err := process(t.Context(), client, func(ctx context.Context, token int64) error {
			srv.Client("alice").Cut()
			return stay(ctx, token)
		})
		if !errors.Is(err, framework.ErrSessionLost) {
			t.Error(err)
		}
	})
}

// The program itself, on the server that it names, is the function main. This is the rest of it.
func TestProcessHasALargerTokenEachTime(t *testing.T) {
	srv := zktest.Start(t)
	client, err := framework.New(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var last int64
	for range 2 {
		err := process(t.Context(), client, func(_ context.Context, token int64) error {
			if token <= last {
				t.Errorf("%d after %d", token, last)
			}
			last = token
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
