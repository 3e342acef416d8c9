// Package zktest provides a ZooKeeper server for tests that runs in the test's own process. It
// speaks the protocol of ZooKeeper 3.9 (or 3.8, see [WithCompat]), so any client can use it. It
// starts at once and needs no Java. It can be made to fail where a test wants it to. Its time can
// be that of a bubble of testing/synctest.
//
//	srv := zktest.Start(t) // closes itself
//	conn, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second) // any client, over TCP
//
// A bubble needs connections without sockets:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.Start(t)
//		alice := srv.Client("alice") // a name, for faults and traces
//		conn, _, err := zk.Connect([]string{srv.MemAddr()}, 10*time.Second, zk.WithDialer(alice.Dialer()))
//		defer conn.Close()      // a client left open in a bubble is a deadlock
//		...
//		alice.Cut()             // the network
//		time.Sleep(time.Minute) // takes no time; the session has expired
//	})
//
// docent's own client takes alice.DialContext, with framework.WithDialer.
//
// # Faults
//
// [Server.On] applies a fault of package zktest/fault to chosen requests: it loses them or their
// answers, delays or holds them, or makes them fail. A [Client] can be cut off, frozen, refused, or
// get its events late. A [Session] can be made to expire, to move, or to lose its connection. The
// server can be stopped and started, paused, made read-only, or wiped. What cannot happen with TCP and a real server
// cannot be made to happen. Nothing is reordered or doubled on a connection. No event comes after
// an answer that shows the change. One server carries out no request after later ones of its
// client.
//
// To test a fault, call this:
//
//	a broken cable                               Client.Cut, and Client.Heal
//	a holder whose process is paused             Client.Cut, while the function of the test sleeps
//	a process that has crashed                   Client.Refuse(true), then Client.Reset
//	a connection that is closed                  Client.Drop: the answers that are due still arrive
//	a connection that is reset                   Client.Reset: what is under way is lost
//	a firewall that discards packets             Client.Blackhole(true)
//	a server that delays one client              Client.Freeze, and Client.Thaw
//	a server whose process is paused             Server.Pause, and Server.Resume
//	a server that stops, or restarts             Server.Stop, and Server.Start; Server.Restart
//	a server without a quorum                    Server.SetReadOnly(true)
//	a lost request, a lost answer                Server.On with fault.DropBefore, with fault.DropAfter
//	events that come late                        Client.HoldEvents, and Client.ReleaseEvents
//	a session that ends while its client relies  Session.Expire
//	on it
//
// After Client.Cut the client's hold ends first, and then the servers expire the session. After
// Client.Reset without Client.Refuse the client connects again and keeps its session.
//
// A rule that never fires makes a test useless: check the Hits of each rule. [Start] lists such
// rules when a test fails.
//
// # Ensembles
//
// A [Follower] is a further server. It lags behind the leader, holds requests on their way to the
// leader, is cut off in one direction or in both, and restarts. The leader can be frozen
// ([Server.FreezeLeader]) or cut off ([Server.IsolateLeader]), and then another is elected.
// [Server.Leader] returns the current leader. A session belongs to the server to which its client
// has connected last. A write that waits at a follower while its session moves to another server
// and back is applied:
//
//	f.HoldRequests()
//	... // the client creates a node through f, and gives up
//	... // it connects to srv, where it syncs and finds nothing, and then to f again
//	f.ReleaseRequests() // the node is created
//
// The tests in test/differential compare with three real servers what becomes of waiting requests,
// of old connections, and of sessions that end or come back meanwhile. Some behaviour is taken from
// the real server's sources and not compared: what the leader hears of sessions and when, and links
// that break after syncLimit ticks. This also holds for the answers of a stale leader or one
// without a majority, and for the timeouts after an election. Elections are simpler than real ones:
// see [Server.FreezeLeader].
//
// # State and insight
//
// [Server.Get], [Server.Create] and the like need no client, and [Server.Tree] returns the whole
// tree as text. [Server.Trace] returns what happened, [Server.Requests] how often, and
// [Server.Sessions] the sessions that exist.
//
// # Time and chance
//
// A server made inside a bubble of testing/synctest follows the bubble's clock. For clients
// outside, [Server.Advance] moves the server's clock. [WithSeed] gives every delivery a latency
// from a generator, and package sim runs a test over many seeds.
//
// A bubble's clock stands still while anything in it waits for a socket or for the lookup of a host
// name: use the in-memory dialers and the addresses of [Server.MemAddr]. The runtime never sees a
// deadlock in a bubble with a client that pings, whatever the test waits for. sim.Once ends such a
// test and prints the trace.
//
// # Other languages
//
// Command cmd/zktest is this server as a program, which tests in other languages start and control
// over a pipe. See docs/testing.md.
//
// # Limits
//
// All requests of 3.9's clients are answered as a standalone server answers them. SASL logins are
// accepted without effect, as by a server without a configuration for them. Reconfiguration is
// refused as disabled. There is no TLS, no JMX and no admin server. There are no local sessions.
// The authentication schemes are fixed: world, ip, auth and digest. Nothing is throttled. What
// a client does not read stays in memory, as with the real server, but the connection ends when that is
// more than 128 MiB, whether the client does not read it or the test keeps it back. Nothing is written
// to disk: the state lives as long as the [Server].
// As with the real server, the order of children is unspecified. The server answers faster than the
// real one, so tests of a client can show races that the real one hides.
package zktest
