package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// dial returns a client in memory, for an example.
func dial(srv *zktest.Server, name string) *zk.Conn {
	conn, events, err := zk.Connect([]string{srv.MemAddr()}, 30*time.Second,
		zk.WithDialer(srv.Client(name).Dialer()), zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

// In a test, srv := zktest.Start(t) also closes the server.
func ExampleNew() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	conn, events, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	path, err := conn.Create("/greeting", []byte("hello"), 0, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	fmt.Print(srv.Tree())
	conn.Close()
	for range events { // until the client's goroutines have ended
	}
	// Output:
	// /greeting <nil>
	// /greeting "hello"
}

// In a bubble a test takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.Start(t)
//		...
//
// There, use time.Sleep instead of Advance.
func ExampleServer_Advance() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	conn := dial(srv, "worker")
	defer conn.Close()
	if _, err := conn.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	fmt.Print(srv.Tree())
	srv.Advance(time.Minute) // for the server, the worker has not pinged for a minute
	fmt.Println("worker is there:", srv.Exists("/worker"))
	// Output:
	// /worker ephemeral of worker
	// worker is there: false
}

// The client cannot know whether its request was carried out.
func ExampleServer_On() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	conn := dial(srv, "alice")
	defer conn.Close()

	lost := srv.On(fault.Match{Op: fault.OpCreate, Path: "/orders/*", Client: "alice"}, fault.DropAfter())
	if err := srv.Create("/orders", nil); err != nil {
		log.Fatal(err)
	}
	_, err = conn.Create("/orders/1", []byte("tea"), 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err)
	fmt.Println("rule fired:", lost.Hits())
	fmt.Print(srv.Tree())
	// Output:
	// zk: connection closed
	// rule fired: 1
	// /orders
	// /orders/1 "tea"
}

// The servers delete the ephemeral nodes of an expired session, even if its client does not know
// yet.
func ExampleSession_Expire() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	conn := dial(srv, "alice")
	defer conn.Close()
	if _, err := conn.Create("/leader", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	session := srv.Client("alice").Sessions()[0]
	fmt.Println(session, session.Ephemerals)
	fmt.Println(session.Expire(), srv.Exists("/leader"))
	// Output:
	// s1 [/leader]
	// <nil> false
}

// The state can be created and read without a client.
func ExampleServer_Load() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	if err := srv.Load(map[string]string{"/config/timeout": "5s", "/config/hosts/a": ""}); err != nil {
		log.Fatal(err)
	}
	fmt.Print(srv.Tree())
	_, err = srv.Get("/config/nothing")
	fmt.Println(errors.Is(err, zktest.NoNode), err)
	// Output:
	// /config
	// /config/hosts
	// /config/hosts/a
	// /config/timeout "5s"
	// true zktest: get "/config/nothing": zookeeper: no node (-101)
}

// A client that is cut off does not learn what the server does.
func ExampleClient_Cut() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	alice := dial(srv, "alice")
	defer alice.Close()
	if _, err := alice.Create("/here", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}

	srv.Client("alice").Cut()
	fmt.Print(srv.Tree())
	srv.Advance(31 * time.Second) // longer than the timeout of alice's session
	fmt.Printf("%q %v\n", srv.Tree(), alice.State())
	// Output:
	// /here ephemeral of alice
	// "" StateHasSession
}

// A held request waits until the test releases it.
func ExampleHold() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	conn := dial(srv, "alice")
	defer conn.Close()

	rule := srv.On(fault.Match{Op: fault.OpCreate, Path: "/slow"}, fault.Hold())
	done := make(chan error)
	go func() {
		_, err := conn.Create("/slow", nil, 0, zk.WorldACL(zk.PermAll))
		done <- err
	}()
	fmt.Println(rule.Wait(context.Background()), srv.Exists("/slow"))
	rule.Release()
	fmt.Println(<-done, srv.Exists("/slow"))
	// Output:
	// <nil> false
	// <nil> true
}

// A follower shows an older state of the leader. After a sync it has everything.
func ExampleFollower() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	follower := srv.Follower(0)
	conn, _, err := zk.Connect([]string{follower.MemAddr()}, 10*time.Second,
		zk.WithDialer(srv.Dialer()), zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	before, _, err := conn.Exists("/news")
	fmt.Println(before, err)

	follower.Freeze()
	if err := srv.Create("/news", nil); err != nil {
		log.Fatal(err)
	}
	stale, _, err := conn.Exists("/news")
	fmt.Println(stale, err)

	follower.Thaw()
	_, err = conn.Sync("/news")
	fresh, _, _ := conn.Exists("/news")
	fmt.Println(fresh, err)
	// Output:
	// false <nil>
	// false <nil>
	// true <nil>
}
