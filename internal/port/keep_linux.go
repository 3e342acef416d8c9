package port

import "syscall"

// keeper is a socket that is bound and does not listen. The kernel gives its port neither to a
// socket that connects nor to one that asks for any port.
type keeper int

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

// bind sets SO_REUSEADDR last: until then the port cannot be one that another socket has.
func bind(fd int) (number int, err error) {
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return name.(*syscall.SockaddrInet4).Port, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
}

func (k keeper) close() { _ = syscall.Close(int(k)) }
