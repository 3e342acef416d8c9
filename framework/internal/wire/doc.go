// Package wire owns the ZooKeeper driver: everything that has to be worked around in it is worked around here.
//
// A [Conn] is one driver connection for one session, and never for a second one. The driver opens a new session by
// itself when the old one has expired, and runs requests of the old session in it; so the dialer of a Conn refuses to
// dial once the session is known to be over. A shim around the socket does what no option of the driver can: it bounds
// the handshake, learns the session's id, password and negotiated timeout, turns a session id that the server swapped
// into an expiry, hides write errors that would deadlock the driver's re-authentication, keeps the books on what the session
// has seen, which the driver gets wrong when it sets watches again, and records when each request that has been answered was
// sent.
package wire
