package clients

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// endSession ends a session of a server that has no means to expire one: it attaches to the session
// and closes it. The session's client cannot tell the difference. The client may reattach before
// the close is read, and so move the session. endSession then tries again.
func endSession(addr string, id int64, password []byte) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		ended, err := closeSession(addr, id, password)
		if err != nil || ended {
			return err
		}
	}
	return fmt.Errorf("session %#x does not end", id)
}

// closeSession sends one close, and reports whether the session had already ended.
func closeSession(addr string, id int64, password []byte) (ended bool, err error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	if _, err := conn.Write(append(attachFrame(id, password), closeFrame()...)); err != nil {
		return false, nil // the client has reattached to the session
	}
	answer, err := io.ReadAll(conn)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return false, fmt.Errorf("attach to session %#x: %w", id, err)
	}
	return refused(answer), nil
}

// refused reports whether a connect response refuses the session: its id is 0.
func refused(answer []byte) bool {
	const idOffset = 4 + 4 + 4 // after the frame's length, the version and the timeout
	return len(answer) >= idOffset+8 && binary.BigEndian.Uint64(answer[idOffset:]) == 0
}

func attachFrame(id int64, password []byte) []byte {
	body := make([]byte, 4+8) // version and last zxid, both 0
	body = binary.BigEndian.AppendUint32(body, 10_000)
	body = binary.BigEndian.AppendUint64(body, uint64(id))
	body = binary.BigEndian.AppendUint32(body, uint32(len(password)))
	return framed(append(body, password...))
}

func closeFrame() []byte {
	const opClose = -11
	body := binary.BigEndian.AppendUint32(nil, 1)
	return framed(binary.BigEndian.AppendUint32(body, uint32(0xffffffff&opClose)))
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}
