package memnet

import (
	"net"
	"sync"
	"time"
)

// Schedule returns the time at which something that is sent now arrives. It is called once for each
// Write, end of stream and reset, in order, under the connection's lock: it must not use the
// connection. An arrival before now, or before the previous arrival in that direction, is moved to
// that time, because nothing overtakes.
//
// For the reset that answers data sent to a closed end, now is the arrival of that data, which may
// be in the future.
type Schedule func(now time.Time) time.Time

// Pipe makes a connection and returns both ends. A nil Schedule means immediate arrival.
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
