// Package conn is the connection of one session with a ZooKeeper ensemble: it dials, shakes hands, presents credentials, sends
// heartbeats and requests, and reads replies and events until the session has ended.
//
// A [Conn] serves one session and never a second one. Its goroutine connects to one server after the other. What it has with one server
// is a link: a socket, the requests that wait for replies on it, and an outbox. Three goroutines serve a link: that of the Conn reads, a
// second one writes what a caller cannot write without waiting, and a third one sends heartbeats. All end with [Conn.Close].
//
// The order of the locks is link.mu, outbox.mu, Conn.mu, hosts.mu. None is held while a [Handler] or the callback of a request is called.
package conn
