package port

import (
	"runtime"
	"strings"
	"syscall"
)

// keeper is a socket that is bound and does not listen. It shares the port only with sockets that
// set SO_REUSEPORT.
type keeper int

// reusePort is SO_REUSEPORT, which package syscall does not have on all platforms.
var reusePort = map[bool]int{false: 0xf, true: 0x200}[strings.HasPrefix(runtime.GOARCH, "mips")]

func take() (keeper, int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	number, err := bind(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return -1, 0, err
	}
	return keeper(fd), number, nil
}

func bind(fd int) (number int, err error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, reusePort, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}

func (k keeper) close() { _ = syscall.Close(int(k)) }

func share(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, reusePort, 1)
	})
	if err != nil {
		return err
	}
	return failed
}
