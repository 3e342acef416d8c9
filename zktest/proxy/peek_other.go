//go:build !unix

package proxy

import (
	"net"
	"time"
)

// readNow reads what has arrived. If nothing has, the error is os.ErrDeadlineExceeded. It may miss
// what has just arrived.
func readNow(conn net.Conn, b []byte) (int, error) {
	const look = 5 * time.Millisecond
	_ = conn.SetReadDeadline(time.Now().Add(look))
	defer conn.SetReadDeadline(time.Time{})
	return conn.Read(b)
}
