// Package conn connects one session to a ZooKeeper ensemble. It dials, performs the handshake,
// sends credentials, heartbeats and requests, and reads replies and events until the session ends.
//
// A [Conn] serves one session and never a second one. Its goroutine connects to one server after
// the other. Its connection to one server is a link: a socket, the requests that wait for replies,
// and an outbox. Three goroutines serve a link. The goroutine of the Conn reads. The second one
// writes what a caller cannot write without waiting. The third one sends heartbeats. [Conn.Close]
// ends them all.
//
// Locks are taken in the order link.mu, outbox.mu, Conn.mu, hosts.mu. None is held during a call of
// a [Handler] or of the callback of a request.
package conn
