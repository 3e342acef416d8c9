// Package zktest is a ZooKeeper server for tests, inside the test's own process. It speaks the
// protocol of ZooKeeper 3.9 (or 3.8, see [WithCompat]), so that any client can use it; it starts in
// a moment and needs no Java; it fails on purpose where a test wants it to; and its time can be
// that of a bubble of testing/synctest.
//
//	srv := zktest.Start(t) // closes itself
//	conn, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second) // any client, over TCP
//
// Or without sockets, which is what a bubble needs:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.Start(t)
//		alice := srv.Client("alice") // a name, for faults and traces
//		conn, _, err := zk.Connect([]string{srv.MemAddr()}, 10*time.Second, zk.WithDialer(alice.Dialer()))
//		defer conn.Close()      // a client left behind in a bubble is a deadlock
//		...
//		alice.Cut()             // the network
//		time.Sleep(time.Minute) // takes no time; the session has expired
//	})
//
// docent's own client takes alice.DialContext, with framework.WithDialer.
//
// # Faults
//
// [Server.On] does something to chosen requests: loses them or their answers, delays or holds them,
// makes them fail. A [Client] is cut off, frozen, refused, or gets its events late. A [Session]
// expires, moves, or loses its connection. The server is stopped and started, paused, read-only, or
// forgets everything. What cannot happen with TCP and a real server cannot be made to happen:
// nothing is reordered or doubled on a connection, no event comes after an answer that shows the
// change, and one server carries out no request after later ones of its client.
//
// A rule that never fires is a test that shows nothing: ask it for its [Rule.Hits]. [Start] lists
// such rules when a test fails.
//
// # Ensembles
//
// A [Follower] is a further server. It lags behind the leader, holds requests on their way there,
// is cut off in one direction or in both, and restarts. The leader is frozen
// ([Server.FreezeLeader]) or cut off ([Server.IsolateLeader]), and another is elected;
// [Server.Leader] is the one that leads. A session belongs to the server to which its client has
// connected last. A write that waited at a follower while its session went to another server and
// came back is applied:
//
//	f.HoldRequests()
//	... // the client creates a node by way of f, and gives up
//	... // it goes to srv, where it syncs and finds nothing, and comes back to f
//	f.ReleaseRequests() // the node is created
//
// What becomes of requests that wait, of old connections, and of sessions that end or come back
// meanwhile is compared with three real servers in test/differential. The following is from the
// real server's sources, and not compared: what the leader hears of sessions and when, links that
// break after syncLimit ticks, what a leader without a majority or a stale one answers, and the
// timeouts after an election. Elections are simpler than real ones: see [Server.FreezeLeader].
//
// # State and insight
//
// [Server.Get], [Server.Create] and the like need no client; [Server.Tree] is the whole tree as
// text. [Server.Trace] is what happened, [Server.Requests] how often; [Server.Sessions] who is
// there.
//
// # Time and chance
//
// A server made inside a bubble of testing/synctest follows the bubble's clock. For clients
// outside, [Server.Advance] moves the server's clock. [WithSeed] gives every delivery a latency out
// of a generator, and package sim runs a test over many seeds.
//
// Mind that a bubble's clock stands still while anything in it waits for a socket, or for a name to
// be looked up: use the in-memory dialers and the addresses of [Server.MemAddr]. And a bubble with
// a client that pings is never stuck for the runtime, whatever the test waits for: sim.Once ends
// such a test, with the trace.
//
// # Other languages
//
// Command cmd/zktest is this server as a program, which tests in other languages start and control
// over a pipe. See docs/testing.md.
//
// # What is and what is not there
//
// All requests of 3.9's clients are answered as a server that is alone answers them. There are no
// SASL logins (accepted, and without effect, as without a configuration), no reconfiguration
// (refused as disabled), no TLS, no JMX and no admin server. There are no local sessions, and the
// authentication schemes are fixed: world, ip, auth and digest. Nothing is throttled, and what a
// client does not read waits in memory. Nothing is written to disk: the state lives as long as the
// [Server]. The order of children is, as with the real server, none to rely on. A server answers
// faster than the real one, which can show races in a client's tests that the real one hides.
package zktest
