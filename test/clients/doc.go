// Package clients has only tests. They run clients of other projects against a real ZooKeeper and
// against zktest: the Go driver, Curator, kazoo and the real command line. Each does what its users
// do with it, recipes included, while connections are cut, the server is restarted and sessions are
// expired. The output on the two servers must be the same.
//
// # Scripts
//
// Curator's script is in java, kazoo's in kazoo. A script is a process with two arguments: the
// address of the server, and the address of a proxy in front of the same server, for connections
// that are cut. It prints one line for each check that passed, and "done" at the end:
//
//	ok <check>: <what was seen>
//
// To request an action on the server, a script prints a line and waits for the answer "go" on its
// standard input:
//
//	at drop                     close the connections through the proxy
//	at cut                      close them, and refuse new ones
//	at mend                     accept them again
//	at stop                     stop the server; it keeps its data and its sessions
//	at start                    start it again, on the same address
//	at expire <id> <password>   end a session as if it had been silent for too long; both in hexadecimal
//
// Everything else is for the log of a failed test.
package clients
