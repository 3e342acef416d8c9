package conn

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// connectRequest is what a client tells a server first.
type connectRequest struct {
	zxid    int64         // the largest that the session has seen: a server that is behind refuses the connection
	timeout time.Duration // that the client asks for
	session Info          // zero: a new one
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
	f.bool(false) // a server without a quorum is not enough
	binary.BigEndian.PutUint32(f, uint32(len(f)-lengthSize))
	return f
}

// greet sends the connect request and reads the reply, both until the deadline. Without a session in it the server has said that the
// session has expired.
func greet(socket net.Conn, deadline time.Time, r connectRequest) (Info, error) {
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
	_ = socket.SetDeadline(time.Time{}) // a socket that refuses is closed, which is noticed when it is read
	return info, nil
}

func parseConnectReply(reply []byte) (Info, error) {
	d := decoder{rest: reply}
	d.int() // protocol version
	ms, id, n := d.int(), d.long(), d.int()
	if int(n) > len(d.rest) {
		return Info{}, fmt.Errorf("the reply to the connect request has a password of %d bytes: not a ZooKeeper server", n)
	}
	info := Info{ID: id, Timeout: time.Duration(ms) * time.Millisecond}
	if n > 0 {
		info.Password = d.take(int(n))
	}
	return info, nil
}
