//go:build unix

package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// readNow reads what has arrived. It does not wait: if nothing has, the error is
// os.ErrDeadlineExceeded.
func readNow(conn net.Conn, b []byte) (n int, err error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Read(func(fd uintptr) bool {
		for n, err = syscall.Read(int(fd), b); errors.Is(err, syscall.EINTR); {
			n, err = syscall.Read(int(fd), b)
		}
		return true
	})
	switch {
	case closed != nil:
		return 0, closed
	case errors.Is(err, syscall.EAGAIN):
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
