package conn

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// connectRequest is the first frame that a client sends on a connection.
type connectRequest struct {
	zxid    int64         // the largest seen in the session: a server that is behind it refuses the connection
	timeout time.Duration // requested by the client
	session Info          // zero: a new session
}

const (
	passwordSize    = 16
	connectReplyMin = 4 + 4 + 8 + 4 // protocol version, timeout, session, length of the password
	connectReplyMax = 4096
)

func (r connectRequest) frame() []byte {
	password := r.session.Password
	if password == nil {
		password = make([]byte, passwordSize)
	}
	f := make(encoder, lengthSize, lengthSize+4+8+4+8+4+passwordSize+1)
	f.int(0) // protocol version
	f.long(r.zxid)
	f.int(int32(min(r.timeout.Milliseconds(), 1<<31-1)))
	f.long(r.session.ID)
	f.buffer(password)
	f.bool(false) // no read-only connection to a server without a quorum
	binary.BigEndian.PutUint32(f, uint32(len(f)-lengthSize))
	return f
}

// requestSession sends the connect request and reads the reply, both before the deadline. An Info
// without an ID means that the session has expired.
func requestSession(socket net.Conn, deadline time.Time, r connectRequest) (Info, error) {
	if err := socket.SetDeadline(deadline); err != nil {
		return Info{}, err
	}
	if _, err := socket.Write(r.frame()); err != nil {
		return Info{}, fmt.Errorf("connect request not sent: %w", err)
	}
	length := make([]byte, lengthSize)
	if _, err := io.ReadFull(socket, length); err != nil {
		return Info{}, fmt.Errorf("no reply to the connect request: %w", err)
	}
	n := int(binary.BigEndian.Uint32(length))
	if n < connectReplyMin || n > connectReplyMax {
		return Info{}, fmt.Errorf("the reply to the connect request is %d bytes long: not a ZooKeeper server", n)
	}
	reply := make([]byte, n)
	if _, err := io.ReadFull(socket, reply); err != nil {
		return Info{}, fmt.Errorf("short reply to the connect request: %w", err)
	}
	info, err := parseConnectReply(reply)
	if err != nil {
		return Info{}, err
	}
	_ = socket.SetDeadline(time.Time{}) // the next read sets its deadline again and reports an error
	return info, nil
}

func parseConnectReply(reply []byte) (Info, error) {
	d := decoder{rest: reply}
	d.int() // protocol version
	ms, id, n := d.int(), d.long(), d.int()
	if int(n) > len(d.rest) {
		return Info{}, fmt.Errorf(
			"the reply to the connect request has a password of %d bytes: not a ZooKeeper server", n)
	}
	info := Info{ID: id, Timeout: time.Duration(ms) * time.Millisecond}
	if n > 0 {
		info.Password = d.take(int(n))
	}
	return info, nil
}
