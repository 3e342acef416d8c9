// Package conn connects one session to a ZooKeeper ensemble. It dials, performs the handshake,
// sends credentials, heartbeats and requests, and reads replies and events until the session ends.
//
// A [Conn] serves one session and never a second one. Its goroutine connects to one server after
// the other. Its connection to one server is a link: a socket, the requests that wait for replies,
// and an outbox. Three goroutines serve a link. The goroutine of the Conn reads. The second one
// writes what a caller cannot write without waiting. The third one sends heartbeats. [Conn.Close]
// ends them all.
//
// A request is sent at most once. If its connection ends before the reply, the reply has the error
// zk.ErrConnectionClosed: the servers may have applied the request, or may still apply it. Package
// framework decides whether to send another one.
//
//	conn.go, dial.go, handshake.go        connect to one server after the other
//	hosts.go                              which server and address is next, and after which pause
//	link.go, outbox.go                    send requests, and deliver replies and events
//	request.go, reads.go, watches.go      make requests, and parse their replies
//	frames.go, jute.go                    the protocol
//	heartbeat.go, contact.go              until when the session can be relied on
//	clock.go, suspension.go               times that include suspensions of the machine
//
// Locks are taken in the order link.mu, outbox.mu, Conn.mu, hosts.mu. None is held during a call of
// a [Handler] or of the callback of a request.
package conn
