//go:build !linux

package port

import "net"

// keeper keeps nothing: another process may take the port while it is not listened on.
type keeper struct{}

func take() (keeper, int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return keeper{}, 0, err
	}
	defer func() { _ = l.Close() }()
	return keeper{}, l.Addr().(*net.TCPAddr).Port, nil
}

func (keeper) close() {}
