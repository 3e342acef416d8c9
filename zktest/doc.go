// Package zktest is a ZooKeeper server for tests, inside the test's own process. It speaks the protocol of ZooKeeper 3.9 (or 3.8, see
// [WithCompat]), so that any client can use it; it starts in a moment and needs no Java; it fails on purpose where a test wants it
// to; and its time can be that of a bubble of testing/synctest.
//
//	srv := zktest.Start(t)                                     // closes itself
//	conn, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second) // any client, over TCP
//
// Or without sockets, which is what a bubble needs:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.Start(t)
//		alice := srv.Client("alice") // a name, for faults and traces
//		conn, _, err := zk.Connect([]string{srv.MemAddr()}, 10*time.Second, zk.WithDialer(alice.Dialer()))
//		...
//		alice.Cut()                  // the network
//		time.Sleep(time.Minute)      // takes no time; the session has expired
//	})
//
// # Faults
//
// [Server.On] does something to chosen requests: loses them or their answers, delays or holds them, makes them fail. A [Client] is
// cut off, frozen, refused, or gets its events late. A [Session] expires, moves, or loses its connection. The server is stopped and
// started, paused, read-only, or forgets everything; a [Follower] lags behind it. What cannot happen with TCP and a real server
// cannot be made to happen: nothing is reordered or doubled on a connection, and no event comes after an answer that shows the
// change.
//
// # State and insight
//
// [Server.Get], [Server.Create] and the like need no client; [Server.Tree] is the whole tree as text. [Server.Trace] is what
// happened, [Server.Requests] how often; [Server.Sessions] who is there.
//
// # Time and chance
//
// A server made inside a bubble of testing/synctest follows the bubble's clock. For clients outside, [Server.Advance] moves the
// server's clock. [WithSeed] gives every delivery a latency out of a generator, and package sim runs a test over many seeds.
// Mind that a bubble's clock stands still while anything in it waits for a socket, or for a name to be looked up: use the
// in-memory dialers and the addresses of [Server.MemAddr].
//
// # What is and what is not there
//
// All requests of 3.9's clients are answered as a server that is alone answers them. There are no SASL logins (accepted, and without
// effect, as without a configuration), no reconfiguration (refused as disabled), no TLS, no JMX and no admin server. Nothing is throttled. Nothing is written to disk: the state lives as long as the [Server]. The order
// of children is, as with the real server, none to rely on.
package zktest
