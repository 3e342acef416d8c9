// Package ensemble runs the real ZooKeeper server for tests: one standalone server, or an ensemble
// of three or five. The servers are child processes on free loopback ports, with their data in a
// temporary folder.
//
//	e := ensemble.Start(t, 3) // fails the test if it cannot; cleans up by itself
//	conn, events, err := zk.Connect(strings.Split(e.Connect(), ","), 10*time.Second)
//	...
//	leader, err := e.Leader(ctx)
//	err = leader.Kill()      // kill -9; the other two elect a new leader
//	err = e.WaitReady(ctx)   // they serve again
//	err = leader.Start(ctx)  // it comes back with its port and its data
//
// [Start] fails the test if ZooKeeper is not installed. A suite that skips instead calls [Find]
// first.
//
// ZooKeeper is taken from the binary distribution in ZOOKEEPER_HOME, or else from Debian's package
// (apt-get install zookeeper). Java is taken from JAVA_HOME, or else from PATH. No shell script of
// either is used.
//
// # Configuration
//
// The servers are set up for speed, not for safety: a short tick, no fsync. All four-letter words
// are enabled, the admin server is off, extended types (TTL nodes) are on, and a client may open
// any number of connections. [WithConfig] and [WithProperty] are applied last and override all of
// these.
//
// # Limits
//
// All servers share one machine and its disk, and the package makes neither slow. For faults on the
// network, put the proxy of the sibling package in front of a server. For a disk that fails, put a
// library in front of the C library of one server with [WithServerEnvironment]. On Linux the servers
// are killed with the process that started them, however it ends. Elsewhere a killed test binary
// leaves them running. Pausing needs a Unix.
package ensemble
