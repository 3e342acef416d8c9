package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/zktest"
)

// dial is a client in memory of an example.
func dial(srv *zktest.Server, name string) *zk.Conn {
	conn, events, err := zk.Connect([]string{srv.MemAddr()}, 10*time.Second,
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

// In a test it is srv := zktest.Start(t), which also closes the server.
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
	for range events { // until nothing of the client runs any more
	}
	// Output:
	// /greeting <nil>
	// /greeting "hello"
}

// A test runs in no time in a bubble: there it is
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.Start(t)
//		...
//
// and time.Sleep in place of Advance.
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
	srv.Advance(time.Minute) // the worker has not pinged for that long, for all that the server knows
	fmt.Println("worker is there:", srv.Exists("/worker"))
	// Output:
	// /worker ephemeral of worker
	// worker is there: false
}

// The client cannot know what has become of its request.
func ExampleServer_On() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	conn := dial(srv, "alice")
	defer conn.Close()

	lost := srv.On(zktest.Match{Op: zktest.OpCreate, Path: "/orders/*", Client: "alice"}, zktest.DropAfter())
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

// A session that expires takes its ephemeral nodes along, whatever its client believes.
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

// The state can be made and looked at without a client.
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

// A client whose network is cut does not know what the server does meanwhile.
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
	srv.Advance(11 * time.Second) // longer than her session's timeout
	fmt.Printf("%q %v\n", srv.Tree(), alice.State())
	// Output:
	// /here ephemeral of alice
	// "" StateHasSession
}

// What is held stands still until the test has seen what it wants to see.
func ExampleHold() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	conn := dial(srv, "alice")
	defer conn.Close()

	rule := srv.On(zktest.Match{Op: zktest.OpCreate, Path: "/slow"}, zktest.Hold())
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

// A follower shows what the leader had before; sync waits until it has everything.
func ExampleFollower() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	follower := srv.Follower(0)
	conn, _, err := zk.Connect([]string{follower.MemAddr()}, 10*time.Second, zk.WithDialer(srv.Dialer()), zk.WithLogger(quiet{}))
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
