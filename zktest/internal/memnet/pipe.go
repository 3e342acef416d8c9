package memnet

import (
	"net"
	"sync"
	"time"
)

// Schedule says when something arrives that is sent now. It is called once for each Write, end of stream and reset, in
// their order, under the connection's lock: it must not use the connection. An answer that lies before now, or before
// the previous arrival in that direction, is moved there, since nothing overtakes.
//
// For the reset that answers data sent to a closed end, now is when that data arrives, which may lie ahead.
type Schedule func(now time.Time) time.Time

// Pipe makes a connection and returns both ends. A nil Schedule means at once.
func Pipe(clientAddr, serverAddr *net.TCPAddr, toServer, toClient Schedule) (client, server *Conn) {
	var pair struct { // one allocation: there may be thousands
		mu             sync.Mutex
		client, server Conn
	}
	client, server = &pair.client, &pair.server
	*client = Conn{mu: &pair.mu, peer: server, local: clientAddr, remote: serverAddr, in: inbound{schedule: toClient}}
	*server = Conn{mu: &pair.mu, peer: client, local: serverAddr, remote: clientAddr, in: inbound{schedule: toServer}}
	return client, server
}
